#include "lib/model_config/layer_lists.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/layer_groups.h"
#include "lib/model_config/layer_types.h"

namespace posenc {
namespace {

using Groups = std::vector<LayerGroup>;
using Names = std::vector<std::string>;

// No model comes near; each is an encoding of its own.
constexpr size_t kMaxGroups = 64;

// Lists of 0 and 1 a layer. The first's name misleads: 1 uses RoPE in all, in transformers and in
// every port that was checked. The others are SmallThinker's and Step's.
constexpr absl::string_view kFlagLists = "no_rope_layers rope_layout use_rope_layers";

absl::Status TooManyGroups(const JsonValue& list) {
  return FieldError(list.field(),
                    absl::StrCat("must not tell more than ", kMaxGroups, " kinds of layers apart"));
}

// A list of true and false, or 1 and 0.
absl::StatusOr<std::vector<bool>> ReadFlags(const JsonValue& list) {
  if (!list.is_array()) {
    return FieldError(list.field(), absl::StrCat("must be a list, got ", list.Describe()));
  }
  std::vector<bool> flags;
  for (const JsonValue& element : list.children()) {
    const bool one =
        element.is_bool() ? element.bool_value() : element.is_number() && element.number() == 1;
    if (!element.is_bool() && !one && !(element.is_number() && element.number() == 0)) {
      return FieldError(element.field(),
                        absl::StrCat("must be 1 for a layer with RoPE or 0 for one without, got ",
                                     element.Describe()));
    }
    flags.push_back(one);
  }
  return flags;
}

// More entries than any model has layers; each group reads the list.
absl::Status CheckLength(const JsonValue& list) {
  if (list.size() <= static_cast<size_t>(kMaxLayers)) return absl::OkStatus();
  return FieldError(list.field(),
                    absl::StrCat("must have at most ", kMaxLayers, " entries, has ", list.size()));
}

// What a list with an entry a layer says of the group; absent where there is no list. Each type
// is one encoding, so its layers must agree.
absl::StatusOr<JsonValue> SharedEntry(const Tower& tower, const JsonValue& list,
                                      const LayerGroup& group) {
  if (!list.is_array()) return JsonValue();
  if (group.layers.empty()) {
    return FieldError(
        tower.keys.FieldOf("num_hidden_layers"),
        absl::StrCat("is required beside ", list.key(), ", which has an entry for each layer"));
  }
  RETURN_IF_ERROR(CheckLength(list));
  const std::vector<JsonValue> entries = list.children();
  const size_t last = static_cast<size_t>(group.layers.back());
  if (last >= entries.size()) return ListTooShort(list, last + 1);
  const JsonValue first = entries[static_cast<size_t>(group.layers.front())];
  for (const int64_t layer : group.layers) {
    const JsonValue entry = entries[static_cast<size_t>(layer)];
    ASSIGN_OR_RETURN(const std::optional<double> number, ReadNumber(entry));
    if (number.has_value() && first.is_number() && *number == first.number()) continue;
    return FieldError(entry.field(),
                      absl::StrCat("must be that of the other layers of type ", group.layer_type,
                                   ", ", first.Text(), ", got ", entry.Describe()));
  }
  return first;
}

// A flat map is for the types that the family's list names, in families that have one.
absl::StatusOr<bool> IsScaled(const Tower& tower, absl::string_view layer_type) {
  const absl::string_view key = tower.family.rope.scaled_types_key;
  if (key.empty()) return true;
  const JsonValue list = tower.keys[key];
  if (!list.truthy()) return layer_type == kFull;
  RETURN_IF_ERROR(CheckLength(list));
  const std::vector<JsonValue> names = list.children();
  return std::any_of(names.begin(), names.end(), [&](const JsonValue& name) {
    return name.is_string() && name.string() == layer_type;
  });
}

absl::StatusOr<LayerGroup> TypeGroup(const Tower& tower, const Names& types, absl::string_view name,
                                     const RopeKeys& keys) {
  LayerGroup group = GroupOf(types, name, keys);
  ASSIGN_OR_RETURN(group.theta_value, SharedEntry(tower, tower.keys["rope_theta"], group));
  ASSIGN_OR_RETURN(group.partial_value,
                   SharedEntry(tower, tower.keys["partial_rotary_factors"], group));
  ASSIGN_OR_RETURN(const bool scaled, IsScaled(tower, name));
  if (!scaled) {
    // Its base is every layer's.
    if (!group.theta_value.has_value()) group.theta_value = keys.Find("rope_theta");
    group.keys = RopeKeys{};
  }
  return group;
}

// use_rope_layers: takes the layers with a 0 out of the groups.
absl::Status TakeOutUnrotated(const Tower& tower, size_t num_layers, Groups* groups) {
  const JsonValue list = tower.keys["use_rope_layers"];
  if (!list.truthy()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<bool> flags, ReadFlags(list));
  if (flags.size() < num_layers) return ListTooShort(list, num_layers);
  std::vector<int64_t> nope_layers;
  for (size_t i = 0; i < num_layers; ++i) {
    if (!flags[i]) nope_layers.push_back(static_cast<int64_t>(i));
  }
  for (LayerGroup& group : *groups) {
    std::erase_if(group.layers, [&](int64_t layer) { return !flags[static_cast<size_t>(layer)]; });
    group.nope_layers = nope_layers;
  }
  std::erase_if(*groups, [](const LayerGroup& group) { return group.layers.empty(); });
  return absl::OkStatus();
}

// Muse Glimmer without its list: the last layer, and every so many before it, does not rotate.
absl::StatusOr<Groups> LastOfRunsUnrotated(const Tower& tower, const RopeKeys& keys) {
  LayerGroup group{.keys = keys};
  ASSIGN_OR_RETURN(const std::optional<int64_t> count, NumLayers(tower));
  const int64_t period = tower.family.rope.full_every;
  for (int64_t i = 0; period > 0 && i < count.value_or(0); ++i) {
    ((*count - 1 - i) % period == 0 ? group.nope_layers : group.layers).push_back(i);
  }
  return Groups{std::move(group)};
}

// Two lists that share the layers out, as Kimi's: together they say whether they count from 0 or 1.
absl::StatusOr<int64_t> FirstListed(const Tower& tower) {
  const JsonValue full = FirstOf(tower.keys, "linear_attn_config/full_attn_layers");
  if (!full.present()) return 0;
  ASSIGN_OR_RETURN(std::vector<int64_t> numbers, ReadInts(full));
  if (const JsonValue rest = FirstOf(tower.keys, "linear_attn_config/kda_layers"); rest.present()) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> others, ReadInts(rest));
    numbers.insert(numbers.end(), others.begin(), others.end());
  }
  const auto first = std::min_element(numbers.begin(), numbers.end());
  if (first != numbers.end() && *first <= 1) return *first;
  return FieldError(full.field(),
                    "does not say whether it counts from 0 or from 1: kda_layers beside it must "
                    "have the rest of the layers");
}

bool IsAttention(absl::string_view type) {
  return (absl::StrContains(type, "attention") || type == "hybrid") && !IsWithoutAttention(type);
}

constexpr absl::string_view kFeedForward = "moe mlp dense sparse";

// A misspelt type of attention looks the same.
void NoteUnknownType(const Tower& tower, const std::string& type, size_t layer) {
  const std::vector<JsonValue> elements = FirstOf(tower.keys,
                                                  "layer_types layers_block_type "
                                                  "block_types")
                                              .children();
  if (IsWithoutAttention(type) || HasName(kFeedForward, type) || elements.empty()) return;
  tower.findings.Add(Rule::kLayerTypeUnknown, elements[layer % elements.size()],
                     {.message = absl::StrCat("Layers of type ", type,
                                              " are taken to have no "
                                              "attention, and not to rotate, since others say it "
                                              "in their type.")});
}

// Whether layers of this type have a map of their own.
bool HasMap(const Tower& tower, absl::string_view type) {
  return FirstOf(tower.keys, "rope_scaling rope_parameters")[type].is_object();
}

// The types without attention; the rest rotates. The lists are those of all hybrids that are known.
absl::StatusOr<Groups> ByAttention(const Tower& tower, const RopeKeys& keys) {
  ASSIGN_OR_RETURN(const int64_t first_layer, FirstListed(tower));
  ASSIGN_OR_RETURN(
      const Names types,
      LayerTypes(tower, {.every = "full_attention_interval",
                         .other = "linear_attention",
                         .pattern = "attn_type_list",
                         .full_number = 1,
                         .cycle = "block_types",
                         .listed = "linear_attn_config/full_attn_layers attn_layer_indices "
                                   "hybrid_layer_ids full_attn_idxs",
                         .first_layer = first_layer}));
  LayerGroup group{.keys = keys};
  std::optional<std::string> only;  // the one type that rotates, empty where there are several
  // Where some types say attention, those that do not have none (moe beside attention).
  const bool said = std::any_of(types.begin(), types.end(), IsAttention);
  for (size_t i = 0; i < types.size(); ++i) {
    const bool rotates =
        HasMap(tower, types[i]) || (said ? IsAttention(types[i]) : !IsWithoutAttention(types[i]));
    (rotates ? group.layers : group.nope_layers).push_back(static_cast<int64_t>(i));
    const bool first = std::find(types.begin(), types.end(), types[i]) - types.begin() ==
                       static_cast<std::ptrdiff_t>(i);
    if (!rotates && first) NoteUnknownType(tower, types[i], i);
    if (rotates) only = !only.has_value() || *only == types[i] ? types[i] : "";
  }
  if (group.nope_layers.empty()) return Groups{LayerGroup{.keys = keys}};
  if (group.layers.empty()) return Groups{};
  if (!only->empty()) group.layer_type = *only;
  return Groups{std::move(group)};
}

}  // namespace

absl::StatusOr<Groups> NoRopeLayers(const Tower& tower, const RopeKeys& keys) {
  LayerGroup group{.keys = keys};
  ASSIGN_OR_RETURN(const Names types,
                   LayerTypes(tower, {.every = "no_rope_layer_interval", .period = 4}));
  const JsonValue list = FirstOf(tower.keys, kFlagLists);
  if (!list.truthy()) {
    // The interval's last layer does not rotate, which is where the pattern of
    // full and sliding has its full one.
    ASSIGN_OR_RETURN(const Names pattern,
                     PatternOfLayers(tower, {.every = "no_rope_layer_interval", .period = 4}));
    group.layers = LayersOf(pattern, kFull, false);
    group.nope_layers = LayersOf(pattern, kFull);
    return Groups{group};
  }
  ASSIGN_OR_RETURN(const std::vector<bool> flags, ReadFlags(list));
  if (flags.size() < types.size()) return ListTooShort(list, types.size());
  for (size_t i = 0; i < flags.size(); ++i) {
    (flags[i] ? group.layers : group.nope_layers).push_back(static_cast<int64_t>(i));
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

absl::StatusOr<Groups> LayerThetas(const Tower& tower, const RopeKeys& keys) {
  const JsonValue list = tower.keys["layer_rope_theta"];
  if (!list.truthy()) return LastOfRunsUnrotated(tower, keys);
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

absl::StatusOr<Groups> ByLayerType(const Tower& tower, const RopeKeys& keys) {
  const RopeTraits& traits = tower.family.rope;
  ASSIGN_OR_RETURN(const Names types,
                   LayerTypes(tower, {.period = traits.full_every, .full = traits.full_name}));
  Groups groups;
  for (const std::string& name : types) {
    if (std::any_of(groups.begin(), groups.end(),
                    [&](const LayerGroup& g) { return g.layer_type == name; })) {
      continue;
    }
    if (groups.size() == kMaxGroups) return TooManyGroups(tower.keys["layer_types"]);
    ASSIGN_OR_RETURN(LayerGroup group, TypeGroup(tower, types, name, keys));
    groups.push_back(std::move(group));
  }
  if (groups.empty()) {
    ASSIGN_OR_RETURN(LayerGroup group, TypeGroup(tower, types, "all", keys));
    return Groups{std::move(group)};
  }
  RETURN_IF_ERROR(TakeOutUnrotated(tower, types.size(), &groups));
  return groups;
}

absl::StatusOr<Groups> CrossAttention(const Tower& tower, const RopeKeys& keys) {
  LayerGroup group{.keys = keys};
  const JsonValue list = tower.keys["cross_attention_layers"];
  if (!list.truthy()) return Groups{group};
  RETURN_IF_ERROR(CheckLength(list));
  ASSIGN_OR_RETURN(group.nope_layers, ReadInts(list));
  ASSIGN_OR_RETURN(const std::optional<int64_t> num_layers, NumLayers(tower));
  std::vector<bool> rotates(static_cast<size_t>(num_layers.value_or(0)), true);
  for (const int64_t layer : group.nope_layers) {
    if (layer < num_layers.value_or(0)) rotates[static_cast<size_t>(layer)] = false;
  }
  for (size_t i = 0; i < rotates.size(); ++i) {
    if (rotates[i]) group.layers.push_back(static_cast<int64_t>(i));
  }
  return Groups{group};
}

constexpr absl::string_view kDeepseekV4Types =
    "sliding_attention compressed_sparse_attention heavily_compressed_attention";

absl::StatusOr<Groups> DeepseekV4(const Tower& tower, const RopeKeys& keys) {
  LayerGroup main{.layer_type = "main", .keys = RopeKeys{}};
  LayerGroup compress{.layer_type = "compress", .keys = keys};
  compress.theta_keys = "compress_rope_theta";
  compress.theta = 160000;
  compress.attention_factor = 1;
  const bool given = FirstOf(tower.keys, kTypesKeys).has_value();
  ASSIGN_OR_RETURN(const Names types, LayerTypes(tower, {.pattern = "compress_ratios",
                                                         .names = given ? kDeepseekV4Types : ""}));
  // Of the ratios 0, which LayerTypes calls full, is the window alone.
  main.layers = LayersOf(types, given ? kSliding : kFull);
  compress.layers = LayersOf(types, given ? kSliding : kFull, false);
  return Groups{std::move(main), std::move(compress)};
}

absl::StatusOr<Groups> ByKeys(const Tower& tower, const RopeKeys& keys) {
  if (FirstOf(tower.keys, kFlagLists).truthy() ||
      tower.keys["no_rope_layer_interval"].has_value()) {
    return NoRopeLayers(tower, keys);
  }
  if (tower.keys["layer_rope_theta"].truthy()) return LayerThetas(tower, keys);
  if (tower.keys["rope_theta"].is_array() || tower.keys["partial_rotary_factors"].is_array()) {
    return ByLayerType(tower, keys);
  }
  return ByAttention(tower, keys);
}

}  // namespace posenc
