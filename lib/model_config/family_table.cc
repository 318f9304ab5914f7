#include "lib/model_config/family_table.h"

#include <initializer_list>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace posenc {
namespace {

using Index = absl::flat_hash_map<std::string, const ModelFamily*>;

// Of all names in tables, each as `spelled` writes it. The first row wins.
Index* BuildIndex(std::initializer_list<std::span<const ModelFamily>> tables,
                  std::string (*spelled)(absl::string_view name)) {
  auto* index = new Index;
  for (const std::span<const ModelFamily> table : tables) {
    for (const ModelFamily& family : table) {
      for (absl::string_view type : absl::StrSplit(family.model_types, ' ', absl::SkipEmpty())) {
        index->emplace(spelled(type), &family);
      }
    }
  }
  return index;
}

std::string Verbatim(absl::string_view name) { return std::string(name); }

// deepseek_v4, grounding-dino and DeepseekV4, GroundingDino alike.
std::string Bare(absl::string_view name) {
  return absl::AsciiStrToLower(absl::StrReplaceAll(name, {{"_", ""}, {"-", ""}}));
}

const ModelFamily* Find(const Index& index, absl::string_view name) {
  const auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

}  // namespace

// The indexes are never destroyed: they are read until the process ends.

const ModelFamily* FindFamily(absl::string_view model_type) {
  static const Index& index = *BuildIndex({DecoderRows(), LayeredRows(), EncoderRows()}, &Verbatim);
  return Find(index, model_type);
}

const ModelFamily* FindVisionFamily(absl::string_view model_type) {
  static const Index& index = *BuildIndex({VisionRows()}, &Verbatim);
  return Find(index, model_type);
}

const ModelFamily* FindFamilyOfArchitecture(absl::string_view architecture) {
  static const Index& index = *BuildIndex({DecoderRows(), LayeredRows(), EncoderRows()}, &Bare);
  // What the class is for, cut off word by word: LlamaForCausalLM, MarianMTModel.
  for (absl::string_view suffix : {"For", "LMHead", "MTModel", "EncoderModel", "Model"}) {
    const size_t at = architecture.find(suffix);
    if (at == absl::string_view::npos || at == 0) continue;
    if (const ModelFamily* family = Find(index, Bare(architecture.substr(0, at)))) return family;
  }
  return nullptr;
}

}  // namespace posenc
