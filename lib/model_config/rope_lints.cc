#include "lib/model_config/rope_lints.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/rope_theta.h"

namespace posenc {
namespace {

constexpr std::array<absl::string_view, 4> kWidthKeys = {"rotary_dim", "rotary_pct", "rope_pct",
                                                         "rotary_emb_fraction"};
constexpr std::array<absl::string_view, 5> kLayerKeys = {"no_rope_layers", "rope_local_base_freq",
                                                         "global_rope_theta", "local_rope_theta",
                                                         "layer_rope_theta"};

// Classes whose validate_architecture asks for it in 5.16; those of Qwen 2, Granite and Phi do not.
constexpr absl::string_view kWholeHeads = "llama arcee gpt_neox";

// The sizes of Llama 3.1 to 3.3: their factors are not the same.
struct Llama3Size {
  int64_t hidden_size;
  int64_t num_layers;
  absl::string_view name;
  absl::string_view factor;
};
constexpr double kLlama3Theta = 500000;
constexpr std::array kLlama3Sizes = {
    Llama3Size{2048, 16, "Llama 3.2 1B", "32.0"},
    Llama3Size{3072, 28, "Llama 3.2 3B", "32.0"},
    Llama3Size{4096, 32, "Llama 3.1 8B", "8.0"},
    Llama3Size{8192, 80, "Llama 3.1 70B or 3.3 70B", "8.0"},
    Llama3Size{16384, 126, "Llama 3.1 405B", "8.0"},
};

// Null: the sizes are of no Llama 3.
const Llama3Size* FindLlama3Size(const Tower& tower) {
  const JsonValue hidden_size = tower.keys["hidden_size"];
  const JsonValue num_layers = tower.keys["num_hidden_layers"];
  const auto* const size = absl::c_find_if(kLlama3Sizes, [&](const Llama3Size& row) {
    return hidden_size.integer() == row.hidden_size && num_layers.integer() == row.num_layers;
  });
  return size == kLlama3Sizes.end() ? nullptr : size;
}

void NoteUnread(const Tower& tower, absl::string_view key, absl::string_view what) {
  const JsonValue value = tower.keys[key];
  if (!value.present()) return;
  tower.findings.Add(Rule::kRopeKeyIgnored, value,
                     {.message = absl::StrCat("No reader of this family takes ", what, " from ",
                                              key, "; it changes nothing here.")});
}

}  // namespace

void NoteUnreadBase(const Tower& tower, double rope_theta) {
  const RopeTraits& traits = tower.family.rope;
  for (absl::string_view key : absl::StrSplit(kBaseNames, ' ')) {
    const JsonValue base = tower.keys[key];
    if (HasName(traits.theta_keys, key)) continue;
    if (key == "rope_theta" && traits.layers != LayerRule::kAll) continue;  // of some layers
    if (base.is_number() && base.number() == rope_theta) continue;
    NoteUnread(tower, key, "a base");
  }
}

void NoteUnreadKeys(const Tower& tower) {
  const RopeTraits& traits = tower.family.rope;
  for (absl::string_view key : kWidthKeys) {
    if (HasName(traits.partial_keys, key) || key == traits.rotary_dim_key) continue;
    NoteUnread(tower, key, "a width");
  }
  if (traits.layers != LayerRule::kAll) return;
  for (absl::string_view key : kLayerKeys) NoteUnread(tower, key, "what layers rotate by");
}

void NoteUnevenHeads(const Tower& tower) {
  const JsonValue type = tower.keys["model_type"];
  const std::optional<int64_t> hidden_size = tower.keys["hidden_size"].integer();
  const std::optional<int64_t> heads = tower.keys["num_attention_heads"].integer();
  if (!type.is_string() || !HasName(kWholeHeads, type.string()) || tower.reads_as_v4()) return;
  if (hidden_size.value_or(0) <= 0 || heads.value_or(0) <= 0 || *hidden_size % *heads == 0) return;
  tower.findings.Add(
      Rule::kHiddenSizeUneven, tower.keys["hidden_size"],
      {.message = absl::StrCat("hidden_size ", *hidden_size, " is no multiple of ", *heads,
                               " num_attention_heads: transformers 5 refuses the file, whatever "
                               "head_dim says; without one it is ",
                               *hidden_size / *heads, " here.")});
}

void NoteMisplacedKeys(const Tower& tower, const RopeKeys& keys) {
  for (absl::string_view name : {"factor", "rope_condense_ratio", "rope_type"}) {
    const JsonValue value = tower.keys[name];
    if (!value.has_value()) continue;
    const bool scaled = keys.Find("factor").has_value();
    if (name == "rope_condense_ratio" && scaled) continue;  // the same, said in both ways
    tower.findings.Add(
        Rule::kRopeKeyIgnored, value,
        {.message = absl::StrCat(name,
                                 " stands outside rope_scaling, where no reader applies "
                                 "it; it is ignored here too."),
         .expected = "inside rope_scaling, beside its rope_type"});
  }
}

void NoteLostScaling(const Tower& tower, const v1::ResolvedEncoding& encoding) {
  const JsonValue type = tower.keys["model_type"];
  if (encoding.rope_type() != "default" || !type.is_string() || type.string() != "llama" ||
      encoding.spec().rope().rope_theta() != kLlama3Theta ||
      encoding.max_position_embeddings() < 131072) {
    return;
  }
  const Llama3Size* const size = FindLlama3Size(tower);
  if (size == nullptr) return;
  // A map of the new form keeps its base; one of the old form beside it would replace it whole.
  const JsonValue scaling = tower.keys["rope_scaling"];
  const JsonValue parameters = tower.keys["rope_parameters"];
  const bool new_form = parameters.has_value() && !scaling.has_value() && !tower.reads_as_v4();
  const absl::string_view key = new_form ? "rope_parameters" : "rope_scaling";
  const JsonValue there = new_form ? parameters : scaling;
  FindingText text = {
      .message = absl::StrCat("These are the sizes, the base and the length of ", size->name,
                              ", whose llama3 scaling is missing; without it long texts degrade."),
      .expected = "rope_type llama3",
      .fix = absl::StrCat("\"", key, "\": {", new_form ? R"("rope_theta": 500000.0, )" : "",
                          R"("rope_type": "llama3", "factor": )", size->factor,
                          R"(, "low_freq_factor": 1.0, "high_freq_factor": 4.0, )",
                          R"("original_max_position_embeddings": 8192})")};
  if (there.present()) {
    absl::StrAppend(&text.message, " The fix replaces the ", key, " that is there.");
    tower.findings.Add(Rule::kScalingLost, there, std::move(text));
  } else {
    tower.findings.AddMissing(Rule::kScalingLost, tower.keys, key, std::move(text));
  }
}

void NoteForeignBase(const Tower& tower, const RopeKeys& keys, const v1::RopeSpec& rope) {
  const JsonValue type = tower.keys["model_type"];
  const v1::Llama3Scaling& llama3 = rope.llama3();
  const Llama3Size* const size = FindLlama3Size(tower);
  double factor = 0;
  if (!rope.has_llama3() || size == nullptr || !absl::SimpleAtod(size->factor, &factor) ||
      !type.is_string() || type.string() != "llama" || rope.rope_theta() == kLlama3Theta ||
      llama3.factor() != factor || llama3.low_freq_factor() != 1 ||
      llama3.high_freq_factor() != 4 || llama3.original_max_position_embeddings() != 8192) {
    return;
  }
  constexpr absl::string_view kKey = "rope_theta";
  // transformers 4 takes no base from a map.
  const JsonValue inner = tower.reads_as_v4() ? JsonValue() : keys.Find(kKey);
  const JsonValue outer = tower.keys[kKey];
  const bool twice = inner.has_value() && outer.has_value();
  const FindingText text = {
      .message =
          absl::StrCat("These are the sizes and the scaling of ", size->name,
                       ", whose base is 500000; here it is ", NumberText(rope.rope_theta()), "."),
      .expected = "500000",
      .fix = twice ? "" : MemberText(kKey, "500000.0")};
  const JsonValue value = inner.has_value() ? inner : outer;
  if (value.present()) {
    tower.findings.Add(Rule::kThetaUnlikeModel, value, text);
  } else {
    tower.findings.AddMissing(Rule::kThetaUnlikeModel, tower.keys, kKey, text);
  }
}

void NoteScalingOnlyNewForm(const Tower& tower, const RopeKeys& keys, absl::string_view rope_type) {
  if (rope_type == "default" || tower.family.since_v5 || keys.map.line() == 0 ||
      tower.keys["rope_scaling"].has_value() ||
      !absl::StrContains(keys.map.pointer(), "/rope_parameters")) {
    return;
  }
  const std::string map = MapText(keys.map);
  tower.findings.Add(
      Rule::kScalingOnlyNewForm, keys.map,
      {.message = absl::StrCat("The ", rope_type,
                               " scaling stands only inside rope_parameters; a reader of the old "
                               "form takes none."),
       .found = std::string(rope_type),
       .expected = "the same in rope_scaling",
       // In the old form one map has no place for each layer type.
       .fix = keys.map.key() == "rope_parameters" && !map.empty() ? MemberText("rope_scaling", map)
                                                                  : ""});
}

namespace {

// The base's own key of the family; none in an object of its own.
absl::string_view KeyBesideMap(const Tower& tower) {
  const absl::string_view keys = tower.family.rope.theta_keys;
  const absl::string_view first = keys.substr(0, keys.find(' '));
  return absl::StrContains(first, '/') ? "" : first;
}

}  // namespace

void NoteUnreadParameters(const Tower& tower) {
  const JsonValue parameters = tower.keys["rope_parameters"];
  if (!tower.reads_as_v4() || !parameters.is_object()) return;
  const RopeTraits& traits = tower.family.rope;
  const double by_class = traits.theta_v4 != 0 ? traits.theta_v4 : traits.theta;
  std::vector<JsonValue> maps = parameters.children();
  std::erase_if(maps, [](const JsonValue& map) { return !map.is_object(); });
  const bool nested = !maps.empty();
  if (!nested) maps.push_back(parameters);
  for (const JsonValue& map : maps) {
    const JsonValue theta = map["rope_theta"];
    const bool beside = !nested && FirstOf(tower.keys, kBaseNames).has_value();
    // Of layers of one type it is that of others with a default of their own.
    const bool default_of_some = nested && theta.is_number() && theta.number() == 10000;
    if (theta.is_number() && theta.number() != by_class && !beside && !default_of_some) {
      tower.findings.Add(
          Rule::kThetaOnlyNewForm, theta,
          {.message = "The base stands only inside rope_parameters; a reader of the old form takes "
                      "its default instead, as here.",
           .expected = "the same beside it",
           .fix = nested ? "" : MemberText(KeyBesideMap(tower), theta.Text()),
           .fix_object = tower.keys});
    }
    const JsonValue type = FirstOf(map, "rope_type type");
    const bool scaled = type.is_string() && !HasName("default mrope none openpangu", type.string());
    if (scaled) NoteScalingOnlyNewForm(tower, RopeKeys{map}, type.string());
  }
}

void NotePositionType(const Tower& tower) {
  const JsonValue type = tower.keys["position_embedding_type"];
  if (!type.is_string() || type.string() == "rope" || type.string() == "rotary") return;
  tower.findings.Add(Rule::kPositionTypeIgnored, type,
                     {.message = "This family has RoPE whatever position_embedding_type says."});
}

}  // namespace posenc
