#include "lib/model_config/layer_groups.h"

#include <utility>

namespace posenc {

std::vector<int64_t> LayersOf(const std::vector<std::string>& types, absl::string_view name,
                              bool wanted) {
  std::vector<int64_t> layers;
  for (size_t i = 0; i < types.size(); ++i) {
    if ((types[i] == name) == wanted) layers.push_back(static_cast<int64_t>(i));
  }
  return layers;
}

LayerGroup GroupOf(const std::vector<std::string>& types, absl::string_view name,
                   const RopeKeys& keys) {
  LayerGroup group;
  group.layer_type = std::string(name);
  group.layers = LayersOf(types, name);
  group.keys = keys;
  return group;
}

std::vector<LayerGroup> OnlyOf(const std::vector<std::string>& types, absl::string_view name,
                               const RopeKeys& keys) {
  LayerGroup group = GroupOf(types, name, keys);
  group.nope_layers = LayersOf(types, name, false);
  return {std::move(group)};
}

}  // namespace posenc
