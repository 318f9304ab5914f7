// Which layers share a RoPE: full and sliding attention with bases of their own,
// layers that do not rotate, maps nested by layer type.
#ifndef POSENC_LIB_MODEL_CONFIG_LAYER_RULES_H_
#define POSENC_LIB_MODEL_CONFIG_LAYER_RULES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/model_config/json_document.h"
#include "lib/model_config/rope_keys.h"
#include "lib/model_config/tower.h"

namespace posenc {

// The layers of one RoPE, and what it has of its own.
struct LayerGroup {
  std::string layer_type = "all";
  std::vector<int64_t> layers = {};       // empty: all, or not known
  std::vector<int64_t> nope_layers = {};  // of the model, without a rotation
  // The map that holds here: the tower's, one nested in it, or none.
  RopeKeys keys = {};
  // Overrides of the family's traits.
  absl::string_view theta_keys = "";
  double theta = 0;
  absl::string_view head_dim_key = "";
  int64_t head_dim = 0;
  std::optional<double> attention_factor = {};  // where the map has none
  // The base and the partial_rotary_factor of these layers, where a list or an own key gives them.
  JsonValue theta_value = {};
  JsonValue partial_value = {};
};

// The groups of a tower, at least one. `keys` are the tower's maps. Refuses lists
// that are shorter than the model has layers.
absl::StatusOr<std::vector<LayerGroup>> GroupLayers(const Tower& tower, const RopeKeys& keys);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_LAYER_RULES_H_
