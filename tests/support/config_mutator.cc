#include "tests/support/config_mutator.h"

#include <array>
#include <random>
#include <vector>

#include "rapidjson/document.h"
#include "rapidjson/stringbuffer.h"
#include "rapidjson/writer.h"

namespace posenc::testing {
namespace {

using rapidjson::Value;

// Values that some reader somewhere has tripped over.
constexpr std::array<const char*, 30> kHardValues = {
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1",
    "2",
    "3",
    "0.5",
    "1e-300",
    "1e300",
    "-0.0",
    "NaN",
    "Infinity",
    "-Infinity",
    "65537",
    "2147483647",
    "2147483648",
    "9223372036854775807",
    "18446744073709551616",
    "\"\"",
    "\"8\"",
    "\"yarn\"",
    "\"longrope\"",
    "\"dynamic\"",
    "[]",
    "{}",
    "[1,2,3]",
    "{\"full_attention\":null,\"sliding_attention\":{\"rope_type\":\"linear\"}}",
    "{\"rope_type\":\"yarn\",\"factor\":1e9}"};

// Keys that mean something where they did not stand before.
constexpr std::array<const char*, 24> kKeys = {"model_type",
                                               "rope_theta",
                                               "rope_scaling",
                                               "rope_parameters",
                                               "rope_type",
                                               "type",
                                               "factor",
                                               "head_dim",
                                               "hidden_size",
                                               "num_attention_heads",
                                               "layer_types",
                                               "text_config",
                                               "vision_config",
                                               "no_rope_layers",
                                               "num_hidden_layers",
                                               "alpha",
                                               "short_factor",
                                               "mrope_section",
                                               "qk_rope_head_dim",
                                               "rotary_dim",
                                               "position_embedding_type",
                                               "partial_rotary_factor",
                                               "max_position_embeddings",
                                               "original_max_position_embeddings"};

// Families to say that a file is of.
constexpr std::array<const char*, 20> kTypes = {
    "llama", "gemma3_text", "gemma4_text", "deepseek_v3", "deepseek_v4", "qwen",    "phi3",
    "gptj",  "chatglm",     "modernbert",  "llama4_text", "smollm3",     "t5",      "bloom",
    "bert",  "roberta",     "whisper",     "beit",        "wavlm",       "qwen2_vl"};

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string Run(absl::string_view config) {
    if (Below(8) == 0) return Torn(std::string(config));
    document_.Parse<rapidjson::kParseNanAndInfFlag>(config.data(), config.size());
    if (document_.HasParseError() || !document_.IsObject()) return Torn(std::string(config));
    for (uint64_t i = 0, n = 1 + Below(4); i < n; ++i) MutateOnce();
    rapidjson::StringBuffer text;
    rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                      rapidjson::CrtAllocator, rapidjson::kWriteNanAndInfFlag>
        writer(text);
    document_.Accept(writer);
    return std::string(text.GetString(), text.GetSize());
  }

 private:
  uint64_t Below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random_); }
  auto& allocator() { return document_.GetAllocator(); }

  // Bytes removed, doubled or overwritten.
  std::string Torn(std::string text) {
    if (text.empty()) return text;
    const size_t at = Below(text.size());
    switch (Below(4)) {
      case 0:
        return text.substr(0, at);
      case 1:
        text[at] = static_cast<char>(Below(256));
        return text;
      case 2:
        return text + text.substr(at);
      default:
        return text.insert(at, 1 + Below(300), "[{\",:"[Below(5)]);
    }
  }

  // Every object of the document, the root first.
  void Collect(Value& value, std::vector<Value*>* objects) {
    if (value.IsObject()) {
      objects->push_back(&value);
      // Not a range-based for: clang finds rapidjson's == ambiguous in C++20.
      for (auto member = value.MemberBegin(); member < value.MemberEnd(); ++member) {
        Collect(member->value, objects);
      }
    } else if (value.IsArray()) {
      for (Value& element : value.GetArray()) Collect(element, objects);
    }
  }

  Value HardValue() {
    rapidjson::Document parsed(&document_.GetAllocator());
    parsed.Parse<rapidjson::kParseNanAndInfFlag>(kHardValues[Below(kHardValues.size())]);
    Value value;
    value.Swap(parsed);
    return value;
  }

  Value Text(const char* text) { return Value(text, allocator()); }

  void MutateOnce() {
    std::vector<Value*> objects;
    Collect(document_, &objects);
    Value& object = *objects[Below(objects.size())];
    const auto members = object.MemberCount();
    const auto pick = [&] { return object.MemberBegin() + static_cast<long>(Below(members)); };
    const uint64_t kind = members == 0 ? 3 : Below(9);
    switch (kind) {
      case 0:
        object.RemoveMember(pick());
        return;
      case 1:
        pick()->value = HardValue();
        return;
      case 2:
        pick()->name = Text(kKeys[Below(kKeys.size())]);
        return;
      case 3:  // may give a key twice
        object.AddMember(Text(kKeys[Below(kKeys.size())]), HardValue(), allocator());
        return;
      case 4: {  // into a nest, or out of one
        Value copy(*objects[Below(objects.size())], allocator());
        object.AddMember(Text(kKeys[Below(kKeys.size())]), copy, allocator());
        return;
      }
      case 5:
        object.RemoveMember("model_type");
        object.AddMember("model_type", Text(kTypes[Below(kTypes.size())]), allocator());
        return;
      case 6: {  // a number, scaled
        auto member = pick();
        if (member->value.IsNumber()) {
          constexpr std::array<double, 6> kScales = {-1, 0.5, 1.5, 1e3, 1e-9, 1e12};
          member->value.SetDouble(member->value.GetDouble() * kScales[Below(kScales.size())]);
        }
        return;
      }
      case 7: {  // a list, longer or shorter
        auto member = pick();
        if (!member->value.IsArray()) return;
        if (Below(2) == 0 && !member->value.Empty()) {
          member->value.PopBack();
        } else {
          member->value.PushBack(HardValue(), allocator());
        }
        return;
      }
      default:
        pick()->value.Swap(pick()->value);
    }
  }

  std::mt19937_64 random_;
  rapidjson::Document document_;
};

}  // namespace

std::string MutateConfig(absl::string_view config, uint64_t seed) {
  return Mutator(seed).Run(config);
}

}  // namespace posenc::testing
