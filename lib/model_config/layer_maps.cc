#include "lib/model_config/layer_maps.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/layer_groups.h"
#include "lib/model_config/layer_types.h"

namespace posenc {
namespace {

using Groups = std::vector<LayerGroup>;
using Names = std::vector<std::string>;

// What nested maps call each layer: the rule's group of it, else its layer_types; "" for a layer
// that the rule does not rotate.
Names MapNames(const Tower& tower, const Groups& by_rule, Names types) {
  for (const LayerGroup& group : by_rule) {
    for (const int64_t layer : group.nope_layers) {
      if (static_cast<size_t>(layer) < types.size()) types[static_cast<size_t>(layer)].clear();
    }
    if (!IsLayerType(tower, group.layer_type)) continue;
    for (const int64_t layer : group.layers) {
      const size_t i = static_cast<size_t>(layer);
      if (i >= types.size()) types.resize(i + 1);
      types[i] = group.layer_type;
    }
  }
  return types;
}

// Refuses layers that no map holds for: their key is left out or misspelt. transformers 5 has a
// KeyError, or in some classes a base that the file does not say.
absl::Status CheckEveryLayerHasMap(const RopeKeys& keys, const Names& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty() || IsWithoutAttention(names[i]) || keys.map[names[i]].present()) continue;
    return FieldError(keys.map.FieldOf(names[i]),
                      absl::StrCat("is required beside the maps of other layers: layer ", i,
                                   " is of this type; null says that it does not rotate"));
  }
  return absl::OkStatus();
}

// Several maps, and nothing that says which layers each is for.
absl::Status CheckTypesAreKnown(const Tower& tower, const RopeKeys& keys, const Groups& by_rule,
                                const Names& names) {
  const bool by_class = !FirstOf(tower.keys, "rope_scaling rope_parameters").present();
  const bool rule_knows = std::any_of(by_rule.begin(), by_rule.end(), [&](const LayerGroup& g) {
    return IsLayerType(tower, g.layer_type);
  });
  if (by_class || rule_knows || !names.empty()) return absl::OkStatus();
  const std::vector<JsonValue> maps = keys.map.children();
  const auto count = std::count_if(maps.begin(), maps.end(), [&](const JsonValue& map) {
    return (map.is_object() || !map.has_value()) && IsLayerType(tower, map.key());
  });
  ASSIGN_OR_RETURN(const std::optional<int64_t> layers, NumLayers(tower));
  const bool any_rotates =
      std::any_of(maps.begin(), maps.end(), [](const JsonValue& map) { return map.is_object(); });
  if (count < 2 || !layers.has_value() || !any_rotates) return absl::OkStatus();
  return FieldError(tower.keys.FieldOf("layer_types"),
                    absl::StrCat("is required beside maps by layer type: which of the ", *layers,
                                 " layers each of the ", count, " holds for is not said"));
}

void NoteMapsOfNoType(const Tower& tower, const RopeKeys& keys) {
  for (const JsonValue& map : keys.map.children()) {
    if (!map.is_object() || IsLayerType(tower, map.key())) continue;
    tower.findings.Add(Rule::kRopeKeyIgnored, map,
                       {.message = absl::StrCat(map.key(),
                                                " is no type of layer, so no layer rotates by "
                                                "this map.")});
  }
}

// What each map holds for where the file does not name its layers' types and has one map alone:
// what the rule knows of the layers (which rotate, and by which base) is all there is.
Groups OnlyMap(const JsonValue& map, Groups by_rule) {
  for (LayerGroup& group : by_rule) group.keys = RopeKeys{map};
  if (by_rule.size() == 1 && by_rule.front().layer_type == "all") {
    by_rule.front().layer_type = std::string(map.key());
  }
  return by_rule;
}

// The only map by layer type; absent where there are several, or it is null.
JsonValue OnlyMapOf(const Tower& tower, const RopeKeys& keys) {
  JsonValue only;
  for (const JsonValue& map : keys.map.children()) {
    if (!IsLayerType(tower, map.key()) || (map.has_value() && !map.is_object())) continue;
    if (only.present() || !map.has_value()) return JsonValue();
    only = map;
  }
  return only;
}

// The layers that do not rotate whatever the maps say: their class, or a list of the file, says so.
std::vector<int64_t> Unrotated(const RopeKeys& keys, const Groups& by_rule, const Names& types) {
  std::vector<int64_t> layers;
  for (const LayerGroup& group : by_rule) {
    layers.insert(layers.end(), group.nope_layers.begin(), group.nope_layers.end());
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const bool mapped = keys.map[types[i]].present();
    if (!mapped && IsWithoutAttention(types[i])) layers.push_back(static_cast<int64_t>(i));
  }
  return layers;
}

bool Contains(const std::vector<int64_t>& layers, int64_t layer) {
  return std::find(layers.begin(), layers.end(), layer) != layers.end();
}

// The layers of one map, without those that do not rotate.
LayerGroup GroupOfMap(const Tower& tower, const JsonValue& map, const Groups& by_rule,
                      const Names& types, const std::vector<int64_t>& unrotated) {
  const auto rule = std::find_if(by_rule.begin(), by_rule.end(),
                                 [&](const LayerGroup& g) { return g.layer_type == map.key(); });
  LayerGroup group = rule != by_rule.end() ? *rule : GroupOf(types, map.key(), RopeKeys{});
  std::erase_if(group.layers, [&](int64_t layer) { return Contains(unrotated, layer); });
  if (group.layers.empty() && !unrotated.empty() && map.is_object()) {
    tower.findings.Add(Rule::kRopeKeyIgnored, map,
                       {.message = absl::StrCat("No layer of type ", map.key(),
                                                " rotates in this model, so this map changes "
                                                "nothing.")});
  }
  return group;
}

// Which form of map a family's class reads in transformers 5.16.
enum class MapForm : uint8_t {
  kOne,         // maps by layer type are unknown keys of one map
  kByType,      // a single one is left beside maps of the class's own
  kByTypeOnly,  // without maps by layer type the class fails
  kEither,      // or the class is not known
};

MapForm FormOf(const RopeTraits& traits) {
  switch (traits.layers) {
    case LayerRule::kGemma3:
    case LayerRule::kModernBert:
    case LayerRule::kOlmo3:
      return MapForm::kByType;
    case LayerRule::kGemma4:
    case LayerRule::kMimoV2:
      return MapForm::kByTypeOnly;
    case LayerRule::kByLayerType:
      return traits.default_map.empty() ? MapForm::kEither : MapForm::kByTypeOnly;
    case LayerRule::kDeepseekV4:
    case LayerRule::kMimoV2Own:
    case LayerRule::kByKeys:
      return MapForm::kEither;
    case LayerRule::kAll:
    case LayerRule::kFullOnly:
    case LayerRule::kNoRopeLayers:
    case LayerRule::kSlidingOnly:
    case LayerRule::kExaone4:
    case LayerRule::kLayerThetas:
    case LayerRule::kCrossAttention:
    case LayerRule::kGraniteHybrid:
      return MapForm::kOne;
  }
  return MapForm::kEither;
}

// `lost` says what 5.16 makes of the map.
RopeKeys Lost(const Tower& tower, const RopeKeys& keys, absl::string_view lost) {
  const bool as_here = tower.compat() == v1::COMPAT_V5_16;
  tower.findings.Add(Rule::kCompatDiffers, keys.map,
                     {.message = absl::StrCat(
                          "transformers 5.16 ", lost, as_here ? ", as here; " : "; ",
                          "the latest reading is that of the map", as_here ? "." : ", as here.")});
  return as_here ? RopeKeys{} : keys;
}

}  // namespace

absl::StatusOr<RopeKeys> MapsAsRead(const Tower& tower, const RopeKeys& keys) {
  if (!keys.present() || !IsGiven(keys.map)) return keys;
  const bool nested = IsNested(tower, keys);
  switch (FormOf(tower.family.rope)) {
    case MapForm::kEither:
      return keys;
    case MapForm::kOne:
      if (!nested) return keys;
      return Lost(tower, keys,
                  "knows no maps by layer type in this family: every layer rotates by its "
                  "default base, or the one beside the map, without a scaling");
    case MapForm::kByType:
      if (nested || keys.map.key() != "rope_parameters") return keys;
      return Lost(tower, keys,
                  "reads maps by layer type alone in this family: a single one is ignored, its "
                  "base and its scaling too");
    case MapForm::kByTypeOnly:
      if (nested) return keys;
      if (tower.compat() == v1::COMPAT_V5_16) {
        return FieldError(keys.map.field(),
                          "must hold a map for each type of layers: transformers 5.16 fails on a "
                          "single one in this family");
      }
      return Lost(tower, keys, "fails on a single map in this family");
  }
  return keys;
}

absl::StatusOr<Groups> NestedGroups(const Tower& tower, const RopeKeys& keys,
                                    const Groups& by_rule) {
  ASSIGN_OR_RETURN(const Names types, LayerTypes(tower, {}));
  const Names names = MapNames(tower, by_rule, types);
  RETURN_IF_ERROR(CheckTypesAreKnown(tower, keys, by_rule, names));
  RETURN_IF_ERROR(CheckEveryLayerHasMap(keys, names));
  NoteMapsOfNoType(tower, keys);
  if (const JsonValue only = OnlyMapOf(tower, keys); names.empty() && only.present()) {
    return OnlyMap(only, by_rule);
  }
  Groups groups;
  std::vector<int64_t> nope_layers = Unrotated(keys, by_rule, types);
  const std::vector<int64_t> unrotated = nope_layers;
  for (const JsonValue& map : keys.map.children()) {
    if (map.has_value() && !map.is_object()) continue;  // beside the maps, ignored
    if (!IsLayerType(tower, map.key())) continue;
    LayerGroup group = GroupOfMap(tower, map, by_rule, types, unrotated);
    if (!map.has_value()) {
      nope_layers.insert(nope_layers.end(), group.layers.begin(), group.layers.end());
      continue;
    }
    group.keys = RopeKeys{map};
    groups.push_back(std::move(group));
  }
  std::sort(nope_layers.begin(), nope_layers.end());
  nope_layers.erase(std::unique(nope_layers.begin(), nope_layers.end()), nope_layers.end());
  for (LayerGroup& group : groups) group.nope_layers = nope_layers;
  return groups;
}

}  // namespace posenc
