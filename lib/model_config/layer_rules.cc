#include "lib/model_config/layer_rules.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/default_maps.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/layer_types.h"

namespace posenc {
namespace {

using Groups = std::vector<LayerGroup>;
using Names = std::vector<std::string>;

// No model comes near; each is an encoding of its own.
constexpr size_t kMaxGroups = 64;

constexpr char kFull[] = "full_attention";
constexpr char kSliding[] = "sliding_attention";

// Indexes of the layers whose type is `name`, or (wanted false) is not.
std::vector<int64_t> LayersOf(const Names& types, absl::string_view name, bool wanted = true) {
  std::vector<int64_t> layers;
  for (size_t i = 0; i < types.size(); ++i) {
    if ((types[i] == name) == wanted) layers.push_back(static_cast<int64_t>(i));
  }
  return layers;
}

LayerGroup Group(const Names& types, absl::string_view name, const RopeKeys& keys) {
  LayerGroup group;
  group.layer_type = std::string(name);
  group.layers = LayersOf(types, name);
  group.keys = keys;
  return group;
}

// A group that rotates, beside layers that do not.
Groups OnlyOf(const Names& types, absl::string_view name, const RopeKeys& keys) {
  LayerGroup group = Group(types, name, keys);
  group.nope_layers = LayersOf(types, name, false);
  return {std::move(group)};
}

// Full layers have the scaling; sliding ones a base of their own.
absl::StatusOr<Groups> Gemma3(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const Names types,
                   LayerTypes(tower, {.every = "sliding_window_pattern _sliding_window_pattern",
                                      .period = tower.family.rope.full_every}));
  Groups groups = {Group(types, kFull, keys), Group(types, kSliding, RopeKeys{})};
  groups[1].theta_keys = "rope_local_base_freq";
  groups[1].theta = 10000;
  return groups;
}

absl::StatusOr<Groups> ModernBert(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(
      const Names types,
      LayerTypes(tower, {.every = "global_attn_every_n_layers", .period = 3, .full_first = true}));
  Groups groups = {Group(types, kFull, keys), Group(types, kSliding, keys)};
  groups[0].theta_keys = "global_rope_theta rope_theta";
  groups[0].theta = 160000;
  // Null means the global base (transformers 4; 5 fails on it).
  const JsonValue local = tower.keys["local_rope_theta"];
  groups[1].theta_keys = local.is_null() ? groups[0].theta_keys : "local_rope_theta";
  groups[1].theta = local.is_null() ? groups[0].theta : 10000;
  return groups;
}

absl::StatusOr<Groups> Olmo3(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const Names types, LayerTypes(tower, {.period = 4}));
  return Groups{Group(types, kFull, keys), Group(types, kSliding, RopeKeys{})};
}

absl::StatusOr<Groups> Gemma4(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const Names types, LayerTypes(tower, {.period = 6, .last_full = true}));
  Groups groups = {Group(types, kFull, keys), Group(types, kSliding, RopeKeys{})};
  if (!keys.present())
    groups[0].keys.map = DefaultMap(R"({"rope_type": "proportional",
                                                          "partial_rotary_factor": 0.25})");
  groups[0].theta = 1e6;
  groups[0].head_dim_key = "global_head_dim";
  groups[0].head_dim = 512;
  groups[1].theta = 10000;
  return groups;
}

absl::StatusOr<Groups> MimoV2(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(
      const Names types,
      LayerTypes(tower, {.period = 6, .zeroth_full = true, .pattern = "hybrid_layer_pattern"}));
  Groups groups = {Group(types, kFull, keys), Group(types, kSliding, keys)};
  groups[1].theta_keys = "swa_rope_theta";
  groups[1].theta = 10000;
  groups[1].head_dim_key = "swa_head_dim";
  return groups;
}

absl::Status TooManyGroups(const JsonValue& list) {
  return FieldError(list.field(),
                    absl::StrCat("must not tell more than ", kMaxGroups, " kinds of layers apart"));
}

// A group for each type there is; a rope_theta that is a list has a base a layer.
absl::StatusOr<Groups> ByLayerType(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const Names types, LayerTypes(tower, {}));
  const std::vector<JsonValue> thetas = tower.keys["rope_theta"].children();
  Groups groups;
  for (const std::string& name : types) {
    if (std::any_of(groups.begin(), groups.end(),
                    [&](const LayerGroup& g) { return g.layer_type == name; })) {
      continue;
    }
    if (groups.size() == kMaxGroups) return TooManyGroups(tower.keys["layer_types"]);
    groups.push_back(Group(types, name, keys));
    const size_t first = static_cast<size_t>(groups.back().layers.front());
    if (first < thetas.size()) groups.back().theta_value = thetas[first];
  }
  if (groups.empty()) groups.push_back(LayerGroup{.keys = keys});
  return groups;
}

// A list of 0 and 1 a layer. The name misleads: 1 uses RoPE, in transformers and
// in every port that was checked.
absl::StatusOr<Groups> NoRopeLayers(const Tower& tower, const RopeKeys& keys) {
  LayerGroup group{.keys = keys};
  ASSIGN_OR_RETURN(const Names types,
                   LayerTypes(tower, {.every = "no_rope_layer_interval", .period = 4}));
  const JsonValue list = tower.keys["no_rope_layers"];
  if (!list.truthy()) {
    // The interval's last layer does not rotate, which is where the pattern of
    // full and sliding has its full one.
    ASSIGN_OR_RETURN(const Names pattern,
                     PatternOfLayers(tower, {.every = "no_rope_layer_interval", .period = 4}));
    group.layers = LayersOf(pattern, kFull, false);
    group.nope_layers = LayersOf(pattern, kFull);
    return Groups{group};
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> flags, ReadInts(list));
  if (flags.size() < types.size()) return ListTooShort(list, types.size());
  for (size_t i = 0; i < flags.size(); ++i) {
    (flags[i] != 0 ? group.layers : group.nope_layers).push_back(static_cast<int64_t>(i));
  }
  if (4 * group.nope_layers.size() >= 3 * flags.size()) {
    tower.findings.Add(
        Rule::kNopeListInverted, list,
        {.message = absl::StrCat(group.nope_layers.size(), " of ", flags.size(),
                                 " layers would "
                                 "not rotate. In this list 1 means that a layer uses RoPE; it "
                                 "may be the wrong way round."),
         .expected = "1 for a layer with RoPE"});
  }
  return Groups{group};
}

absl::StatusOr<Groups> SlidingOnly(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const Names types,
                   LayerTypes(tower, {.every = "sliding_window_pattern global_attn_every_n_layers",
                                      .period = 4}));
  return OnlyOf(types, kSliding, keys);
}

// Without a sliding window every layer rotates; a file that does not speak of it has the
// class's, of 4096.
absl::StatusOr<Groups> Exaone4(const Tower& tower, const RopeKeys& keys) {
  const JsonValue window = tower.keys["sliding_window"];
  if (window.present() && !window.truthy()) return Groups{LayerGroup{.keys = keys}};
  return SlidingOnly(tower, keys);
}

absl::StatusOr<Groups> FullOnly(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const Names types, LayerTypes(tower, {.every = "full_attention_interval",
                                                         .period = 4,
                                                         .other = "linear_attention"}));
  return OnlyOf(types, kFull, keys);
}

absl::StatusOr<Groups> GraniteHybrid(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const Names types, LayerTypes(tower, {}));
  return OnlyOf(types, "attention", keys);
}

// Layers whose compression ratio is 0 attend to a window, with the plain base.
absl::StatusOr<Groups> DeepseekV4(const Tower& tower, const RopeKeys& keys) {
  LayerGroup main{.layer_type = "main", .keys = RopeKeys{}};
  LayerGroup compress{.layer_type = "compress", .keys = keys};
  compress.theta_keys = "compress_rope_theta";
  compress.theta = 160000;
  compress.attention_factor = 1;
  ASSIGN_OR_RETURN(const std::optional<int64_t> num_layers, NumLayers(tower));
  if (const JsonValue list = tower.keys["compress_ratios"]; list.has_value()) {
    ASSIGN_OR_RETURN(std::vector<int64_t> ratios, ReadInts(list));
    const size_t count = static_cast<size_t>(num_layers.value_or(0));
    if (ratios.size() < count) return ListTooShort(list, count);
    if (count > 0) ratios.resize(count);  // what follows is for the prediction layers
    for (size_t i = 0; i < ratios.size(); ++i) {
      (ratios[i] == 0 ? main : compress).layers.push_back(static_cast<int64_t>(i));
    }
  }
  return Groups{std::move(main), std::move(compress)};
}

// A base a layer; 0 does not rotate.
absl::StatusOr<Groups> LayerThetas(const Tower& tower, const RopeKeys& keys) {
  const JsonValue list = tower.keys["layer_rope_theta"];
  if (!list.truthy()) return Groups{LayerGroup{.keys = keys}};
  ASSIGN_OR_RETURN(const std::vector<double> thetas, ReadNumbers(list));
  const std::vector<JsonValue> values = list.children();
  Groups groups;
  std::vector<int64_t> nope_layers;
  for (size_t i = 0; i < thetas.size(); ++i) {
    const int64_t layer = static_cast<int64_t>(i);
    if (thetas[i] == 0) {
      nope_layers.push_back(layer);
      continue;
    }
    auto group = std::find_if(groups.begin(), groups.end(), [&](const LayerGroup& g) {
      return g.theta_value.number() == thetas[i];
    });
    if (group == groups.end()) {
      if (groups.size() == kMaxGroups) return TooManyGroups(list);
      group = groups.insert(
          groups.end(),
          LayerGroup{.layer_type = absl::StrCat("theta_", NumberText(thetas[i])), .keys = keys});
      group->theta_value = values[i];
    }
    group->layers.push_back(layer);
  }
  if (groups.empty()) return Groups{};
  for (LayerGroup& group : groups) group.nope_layers = nope_layers;
  if (groups.size() == 1) groups[0].layer_type = "all";
  return groups;
}

absl::StatusOr<Groups> CrossAttention(const Tower& tower, const RopeKeys& keys) {
  LayerGroup group{.keys = keys};
  const JsonValue list = tower.keys["cross_attention_layers"];
  if (!list.truthy()) return Groups{group};
  ASSIGN_OR_RETURN(group.nope_layers, ReadInts(list));
  ASSIGN_OR_RETURN(const std::optional<int64_t> num_layers, NumLayers(tower));
  for (int64_t i = 0; i < num_layers.value_or(0); ++i) {
    if (std::find(group.nope_layers.begin(), group.nope_layers.end(), i) ==
        group.nope_layers.end()) {
      group.layers.push_back(i);
    }
  }
  return Groups{group};
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
    case LayerRule::kCrossAttention:
      return CrossAttention(tower, keys);
    case LayerRule::kByLayerType:
      return ByLayerType(tower, keys);
    case LayerRule::kGraniteHybrid:
      return GraniteHybrid(tower, keys);
  }
  return absl::InternalError("layer_rules: a rule without a case");
}

// {"full_attention": {...}, "sliding_attention": null}: each map holds for its
// layers, and null means that they do not rotate. What the family's rule knows of
// a group (its pattern, its head_dim) holds still.
absl::StatusOr<Groups> NestedGroups(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const Groups by_rule, GroupsByRule(tower, RopeKeys{}));
  ASSIGN_OR_RETURN(const Names types, LayerTypes(tower, {}));
  Groups groups;
  std::vector<int64_t> nope_layers;
  for (const JsonValue& map : keys.map.children()) {
    if (map.has_value() && !map.is_object()) continue;  // beside the maps, ignored
    if (!IsLayerType(tower, map.key())) continue;
    const auto rule = std::find_if(by_rule.begin(), by_rule.end(),
                                   [&](const LayerGroup& g) { return g.layer_type == map.key(); });
    LayerGroup group = rule != by_rule.end() ? *rule : Group(types, map.key(), RopeKeys{});
    if (!map.has_value()) {
      nope_layers.insert(nope_layers.end(), group.layers.begin(), group.layers.end());
      continue;
    }
    group.keys = RopeKeys{map, JsonValue()};
    groups.push_back(std::move(group));
  }
  for (LayerGroup& group : groups) {
    group.nope_layers.insert(group.nope_layers.end(), nope_layers.begin(), nope_layers.end());
  }
  return groups;
}

}  // namespace

absl::StatusOr<Groups> GroupLayers(const Tower& tower, const RopeKeys& keys) {
  return IsNested(tower, keys) ? NestedGroups(tower, keys) : GroupsByRule(tower, keys);
}

}  // namespace posenc
