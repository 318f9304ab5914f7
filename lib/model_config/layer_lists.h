// Rules of lists with an entry for each layer: whether it rotates, its base, its width.
#ifndef POSENC_LIB_MODEL_CONFIG_LAYER_LISTS_H_
#define POSENC_LIB_MODEL_CONFIG_LAYER_LISTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "lib/model_config/layer_rules.h"

namespace posenc {

// no_rope_layers or its kin, a list of 0 and 1, or no_rope_layer_interval.
absl::StatusOr<std::vector<LayerGroup>> NoRopeLayers(const Tower& tower, const RopeKeys& keys);

// layer_rope_theta: a base a layer; 0 does not rotate.
absl::StatusOr<std::vector<LayerGroup>> LayerThetas(const Tower& tower, const RopeKeys& keys);

// A group for each of layer_types. A rope_theta that is a list, partial_rotary_factors and
// use_rope_layers have an entry a layer; those of one type must be the same.
absl::StatusOr<std::vector<LayerGroup>> ByLayerType(const Tower& tower, const RopeKeys& keys);

// cross_attention_layers lists layers that do not rotate.
absl::StatusOr<std::vector<LayerGroup>> CrossAttention(const Tower& tower, const RopeKeys& keys);

// compress_ratios, or layer_types: layers that attend to a window alone, and the others.
absl::StatusOr<std::vector<LayerGroup>> DeepseekV4(const Tower& tower, const RopeKeys& keys);

// Whichever of the lists the file of an unknown family has, else layer_types: those without
// attention do not rotate.
absl::StatusOr<std::vector<LayerGroup>> ByKeys(const Tower& tower, const RopeKeys& keys);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_LAYER_LISTS_H_
