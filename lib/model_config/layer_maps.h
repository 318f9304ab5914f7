// Maps by layer type, as transformers 5 saves them:
//
//   {"full_attention": {...}, "sliding_attention": null}
#ifndef POSENC_LIB_MODEL_CONFIG_LAYER_MAPS_H_
#define POSENC_LIB_MODEL_CONFIG_LAYER_MAPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "lib/model_config/layer_rules.h"

namespace posenc {

// `keys` as the compat mode's version reads it: 5.16 knows maps by layer type in some families
// alone, and in these no single one. Refused where its class fails; a finding where it differs.
absl::StatusOr<RopeKeys> MapsAsRead(const Tower& tower, const RopeKeys& keys);

// Each map holds for its layers, and null means that they do not rotate. What the family's rule
// knows of a group (its pattern, its head_dim, which layers never rotate) holds still: `by_rule`
// are its groups, without a map. Refuses layers that no map holds for.
absl::StatusOr<std::vector<LayerGroup>> NestedGroups(const Tower& tower, const RopeKeys& keys,
                                                     const std::vector<LayerGroup>& by_rule);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_LAYER_MAPS_H_
