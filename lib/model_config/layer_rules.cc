#include "lib/model_config/layer_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/status.h"
#include "lib/model_config/default_maps.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/layer_groups.h"
#include "lib/model_config/layer_lists.h"
#include "lib/model_config/layer_maps.h"
#include "lib/model_config/layer_types.h"

namespace posenc {
namespace {

using Groups = std::vector<LayerGroup>;
using Names = std::vector<std::string>;

// All types of layers in families that have these two alone.
constexpr absl::string_view kFullOrSliding = "full_attention sliding_attention";

// Full layers have the scaling; sliding ones a base of their own.
absl::StatusOr<Groups> Gemma3(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const Names types,
                   LayerTypes(tower, {.every = "sliding_window_pattern _sliding_window_pattern",
                                      .period = tower.family.rope.full_every,
                                      .names = kFullOrSliding}));
  Groups groups = {GroupOf(types, kFull, keys), GroupOf(types, kSliding, RopeKeys{})};
  groups[1].theta_keys = "rope_local_base_freq";
  groups[1].theta = 10000;
  return groups;
}

absl::StatusOr<Groups> ModernBert(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const Names types, LayerTypes(tower, {.every = "global_attn_every_n_layers",
                                                         .period = tower.family.rope.full_every,
                                                         .full_first = true,
                                                         .names = kFullOrSliding}));
  Groups groups = {GroupOf(types, kFull, keys), GroupOf(types, kSliding, keys)};
  groups[0].theta_keys = "global_rope_theta rope_theta";
  groups[0].theta = 160000;
  // Null means the global base (transformers 4; 5 fails on it).
  const JsonValue local = tower.keys["local_rope_theta"];
  groups[1].theta_keys = local.is_null() ? groups[0].theta_keys : "local_rope_theta";
  groups[1].theta = local.is_null() ? groups[0].theta : 10000;
  return groups;
}

// transformers 5.16 has used up the base of the file when it comes to the sliding layers.
void NoteBaseOfOlmo3(const Tower& tower, LayerGroup* sliding) {
  const JsonValue theta = tower.keys["rope_theta"];
  const double by_class = tower.family.rope.theta;
  const RopeKeys maps{FirstOf(tower.keys, "rope_scaling rope_parameters")};
  if (!theta.is_number() || theta.number() == by_class || IsNested(tower, maps)) return;
  const bool as_here = tower.compat() == v1::COMPAT_V5_16;
  tower.findings.Add(
      Rule::kCompatDiffers, theta,
      {.message = absl::StrCat("transformers 5.16 reads this base for full layers alone; sliding "
                               "ones have its default, ",
                               NumberText(by_class),
                               as_here ? ", as here."
                                       : ". Here it is that of all, as in "
                                         "transformers 4.")});
  if (as_here) sliding->theta_value = DefaultMap(R"({"rope_theta": 500000})")["rope_theta"];
}

absl::StatusOr<Groups> Olmo3(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const Names types, LayerTypes(tower, {.period = 4, .names = kFullOrSliding}));
  Groups groups = {GroupOf(types, kFull, keys), GroupOf(types, kSliding, RopeKeys{})};
  NoteBaseOfOlmo3(tower, &groups[1]);
  return groups;
}

absl::StatusOr<Groups> Gemma4(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const Names types,
                   LayerTypes(tower, {.period = 6, .last_full = true, .names = kFullOrSliding}));
  Groups groups = {GroupOf(types, kFull, keys), GroupOf(types, kSliding, RopeKeys{})};
  if (!keys.present())
    groups[0].keys.map = DefaultMap(R"({"rope_type": "proportional",
                                                          "partial_rotary_factor": 0.25})");
  groups[0].theta = 1e6;
  groups[0].head_dim_key = "global_head_dim";
  groups[0].head_dim = 512;
  // What transformers 5.17 makes of that key when it saves.
  if (!groups[0].layers.empty()) {
    const JsonValue own = tower.keys["per_layer_config"][absl::StrCat(groups[0].layers.front())];
    ASSIGN_OR_RETURN(const std::optional<int64_t> head_dim, ReadPositiveInt(own["head_dim"]));
    groups[0].head_dim = head_dim.value_or(groups[0].head_dim);
  }
  groups[1].theta = 10000;
  return groups;
}

absl::StatusOr<Groups> MimoV2(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const Names types, LayerTypes(tower, {.period = 6,
                                                         .zeroth_full = true,
                                                         .pattern = "hybrid_layer_pattern",
                                                         .names = kFullOrSliding}));
  Groups groups = {GroupOf(types, kFull, keys), GroupOf(types, kSliding, keys)};
  groups[1].theta_keys = "swa_rope_theta";
  groups[1].theta = 10000;
  groups[1].head_dim_key = "swa_head_dim";
  return groups;
}

// All layers are full, and alike, but for what the file says.
absl::StatusOr<Groups> MimoV2Own(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const Names types, LayerTypes(tower, {.every = "hybrid_block_size",
                                                         .period = 1,
                                                         .pattern = "hybrid_layer_pattern",
                                                         .names = kFullOrSliding}));
  Groups groups = {GroupOf(types, kFull, keys), GroupOf(types, kSliding, keys)};
  if (tower.keys["swa_rope_theta"].has_value()) groups[1].theta_keys = "swa_rope_theta";
  if (tower.keys["swa_head_dim"].has_value()) groups[1].head_dim_key = "swa_head_dim";
  return groups;
}

absl::StatusOr<Groups> SlidingOnly(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const Names types,
                   LayerTypes(tower, {.every = "sliding_window_pattern global_attn_every_n_layers",
                                      .period = 4,
                                      .names = kFullOrSliding}));
  return OnlyOf(types, kSliding, keys);
}

// Without a sliding window every layer rotates; a file that does not speak of it has the
// class's, of 4096.
absl::StatusOr<Groups> Exaone4(const Tower& tower, const RopeKeys& keys) {
  const JsonValue window = tower.keys["sliding_window"];
  if (window.present() && !window.truthy()) return Groups{LayerGroup{.keys = keys}};
  return SlidingOnly(tower, keys);
}

// What the layers with attention are called where the others have none that could rotate.
constexpr std::array<absl::string_view, 3> kAttentionTypes = {kFull, "attention", "hybrid"};

// Refuses a type beside `attention` that is not known to have none: its layers would not rotate,
// and most often it is a misspelling.
absl::Status CheckRest(const Tower& tower, const Names& types, absl::string_view attention) {
  const JsonValue list = FirstOf(tower.keys, kTypesKeys);
  const JsonValue run = FirstOf(tower.keys, tower.family.rope.layer_cycle_key);
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == attention || IsWithoutAttention(types[i])) continue;
    const std::vector<JsonValue> elements = (list.has_value() ? list : run).children();
    const JsonValue element = elements[i % elements.size()];
    return FieldError(
        element.field(),
        absl::StrCat("must be ", attention, " or one of ", absl::StrJoin(kWithoutAttention, ", "),
                     ", whose layers do not rotate, got ", element.Describe()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Groups> FullOnly(const Tower& tower, const RopeKeys& keys) {
  const RopeTraits& traits = tower.family.rope;
  ASSIGN_OR_RETURN(const Names types, LayerTypes(tower, {.every = "full_attention_interval",
                                                         .period = traits.full_every,
                                                         .full_first = traits.full_first,
                                                         .other = "linear_attention",
                                                         .pattern = traits.layer_numbers_key,
                                                         .full_number = 1,
                                                         .cycle = traits.layer_cycle_key,
                                                         .listed = traits.full_layers_key,
                                                         .first_layer = traits.first_layer}));
  const auto name = std::find_first_of(types.begin(), types.end(), kAttentionTypes.begin(),
                                       kAttentionTypes.end());
  const auto unknown = std::find_if_not(types.begin(), types.end(), IsWithoutAttention);
  if (name == types.end() && unknown != types.end()) {
    return FieldError(
        FirstOf(tower.keys, kTypesKeys).field(),
        absl::StrCat("must name layers with attention ", absl::StrJoin(kAttentionTypes, " or "),
                     ", has \"", *unknown, "\""));
  }
  const absl::string_view attention = name == types.end() ? kFull : absl::string_view(*name);
  RETURN_IF_ERROR(CheckRest(tower, types, attention));
  return OnlyOf(types, attention, keys);
}

absl::StatusOr<Groups> GraniteHybrid(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const Names types, LayerTypes(tower, {}));
  RETURN_IF_ERROR(CheckRest(tower, types, "attention"));
  return OnlyOf(types, "attention", keys);
}

// Bases of sliding layers are read as in the families that have these keys, where the file says
// which layers slide.
absl::StatusOr<Groups> OfUnknownFamily(const Tower& tower, const RopeKeys& keys) {
  const JsonValue gemma = tower.keys["rope_local_base_freq"];
  const JsonValue bert = FirstOf(tower.keys, "local_rope_theta global_rope_theta");
  if (!gemma.has_value() && !bert.has_value()) return ByKeys(tower, keys);
  ASSIGN_OR_RETURN(Groups groups,
                   gemma.has_value() ? Gemma3(tower, keys) : ModernBert(tower, keys));
  const JsonValue given = gemma.has_value() ? gemma : bert;
  if (groups[0].layers.empty() && groups[1].layers.empty()) {
    return FieldError(given.field(),
                      "needs layer_types beside it, or how many layers are sliding "
                      "for one that is not, in a family that is not known");
  }
  for (absl::string_view names : {groups[0].theta_keys, groups[1].theta_keys}) {
    if (names.empty() || FirstOf(tower.keys, names).present()) continue;
    return FieldError(tower.keys.FieldOf(names.substr(0, names.find(' '))),
                      absl::StrCat("is required beside ", given.key()));
  }
  return groups;
}

absl::StatusOr<Groups> GroupsByRule(const Tower& tower, const RopeKeys& keys) {
  switch (tower.family.rope.layers) {
    case LayerRule::kAll:
      return Groups{LayerGroup{.keys = keys}};
    case LayerRule::kGemma3:
      return Gemma3(tower, keys);
    case LayerRule::kModernBert:
      return ModernBert(tower, keys);
    case LayerRule::kOlmo3:
      return Olmo3(tower, keys);
    case LayerRule::kGemma4:
      return Gemma4(tower, keys);
    case LayerRule::kFullOnly:
      return FullOnly(tower, keys);
    case LayerRule::kNoRopeLayers:
      return NoRopeLayers(tower, keys);
    case LayerRule::kSlidingOnly:
      return SlidingOnly(tower, keys);
    case LayerRule::kExaone4:
      return Exaone4(tower, keys);
    case LayerRule::kDeepseekV4:
      return DeepseekV4(tower, keys);
    case LayerRule::kLayerThetas:
      return LayerThetas(tower, keys);
    case LayerRule::kMimoV2:
      return MimoV2(tower, keys);
    case LayerRule::kMimoV2Own:
      return MimoV2Own(tower, keys);
    case LayerRule::kCrossAttention:
      return CrossAttention(tower, keys);
    case LayerRule::kByLayerType:
      return ByLayerType(tower, keys);
    case LayerRule::kGraniteHybrid:
      return GraniteHybrid(tower, keys);
    case LayerRule::kByKeys:
      return OfUnknownFamily(tower, keys);
  }
  return absl::InternalError("layer_rules: a rule without a case");
}

// No layers means all of them: of a model whose layers are known, a group without any is left out.
Groups WithLayers(Groups groups) {
  const bool known = std::any_of(groups.begin(), groups.end(), [](const LayerGroup& g) {
    return !g.layers.empty() || !g.nope_layers.empty();
  });
  if (known) std::erase_if(groups, [](const LayerGroup& g) { return g.layers.empty(); });
  return groups;
}

}  // namespace

absl::StatusOr<Groups> GroupLayers(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const RopeKeys maps, MapsAsRead(tower, keys));
  const bool nested = IsNested(tower, maps);
  ASSIGN_OR_RETURN(Groups groups, GroupsByRule(tower, nested ? RopeKeys{} : maps));
  if (nested) {
    ASSIGN_OR_RETURN(groups, NestedGroups(tower, maps, groups));
  }
  return WithLayers(std::move(groups));
}

}  // namespace posenc
