#include "lib/model_config/rope_lints.h"

#include <array>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "lib/model_config/rope_theta.h"

namespace posenc {
namespace {

constexpr std::array<absl::string_view, 4> kWidthKeys = {"rotary_dim", "rotary_pct", "rope_pct",
                                                         "rotary_emb_fraction"};
constexpr std::array<absl::string_view, 5> kLayerKeys = {"no_rope_layers", "rope_local_base_freq",
                                                         "global_rope_theta", "local_rope_theta",
                                                         "layer_rope_theta"};

bool Reads(absl::string_view names, absl::string_view key) {
  return absl::c_linear_search(absl::StrSplit(names, ' '), key);
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
  for (absl::string_view key : absl::StrSplit(kBaseNames, ' ')) {
    const JsonValue base = tower.keys[key];
    if (key == "rope_theta" || Reads(tower.family.rope.theta_keys, key)) continue;
    if (base.is_number() && base.number() == rope_theta) continue;
    NoteUnread(tower, key, "a base");
  }
}

void NoteUnreadKeys(const Tower& tower) {
  const RopeTraits& traits = tower.family.rope;
  for (absl::string_view key : kWidthKeys) {
    if (Reads(traits.partial_keys, key) || key == traits.rotary_dim_key) continue;
    NoteUnread(tower, key, "a width");
  }
  if (traits.layers != LayerRule::kAll) return;
  for (absl::string_view key : kLayerKeys) NoteUnread(tower, key, "what layers rotate by");
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
      encoding.spec().rope().rope_theta() != 500000 ||
      encoding.max_position_embeddings() < 131072) {
    return;
  }
  const FindingText text = {
      .message =
          "This is the base and the length of Llama 3.1, whose llama3 scaling is missing; "
          "without it long texts degrade.",
      .expected = "rope_type llama3",
      .fix = R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, )"
             R"("high_freq_factor": 4.0, "original_max_position_embeddings": 8192})"};
  const JsonValue scaling = tower.keys["rope_scaling"];
  if (scaling.present()) {
    tower.findings.Add(Rule::kScalingLost, scaling, text);
  } else {
    tower.findings.AddMissing(Rule::kScalingLost, tower.keys, "rope_scaling", text);
  }
}

void NotePositionType(const Tower& tower) {
  const JsonValue type = tower.keys["position_embedding_type"];
  if (!type.is_string() || type.string() == "rope" || type.string() == "rotary") return;
  tower.findings.Add(Rule::kPositionTypeIgnored, type,
                     {.message = "This family has RoPE whatever position_embedding_type says."});
}

}  // namespace posenc
