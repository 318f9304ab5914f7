#include "lib/model_config/family_table.h"

#include <array>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_split.h"

namespace posenc {
namespace {

constexpr std::array kFamilies = {
    ModelFamily{.model_types = "llama mistral qwen2 qwen3"},
    ModelFamily{.model_types = "gpt_neox",
                .partial_rotary_factor = 0.25,
                .theta_keys = "rotary_emb_base rope_theta rotary_base",
                .partial_keys = "rotary_pct partial_rotary_factor"},
    ModelFamily{.model_types = "phi", .partial_rotary_factor = 0.5},
    ModelFamily{.model_types = "bloom", .kind = Kind::kBloom},
    ModelFamily{.model_types = "mpt", .kind = Kind::kMpt},
    ModelFamily{.model_types = "t5", .kind = Kind::kT5},
};

using Index = absl::flat_hash_map<absl::string_view, const ModelFamily*>;

// Never destroyed: it is read until the process ends.
const Index& FamilyIndex() {
  static const Index& index = *[] {
    auto* built = new Index;
    for (const ModelFamily& family : kFamilies) {
      for (absl::string_view type : absl::StrSplit(family.model_types, ' ', absl::SkipEmpty())) {
        built->emplace(type, &family);
      }
    }
    return built;
  }();
  return index;
}

}  // namespace

std::span<const ModelFamily> FamilyTable() { return kFamilies; }

const ModelFamily* FindFamily(absl::string_view model_type) {
  const auto found = FamilyIndex().find(model_type);
  return found == FamilyIndex().end() ? nullptr : found->second;
}

}  // namespace posenc
