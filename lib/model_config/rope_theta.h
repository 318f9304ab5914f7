// The base of the frequencies: which of its many places in a config holds.
#ifndef POSENC_LIB_MODEL_CONFIG_ROPE_THETA_H_
#define POSENC_LIB_MODEL_CONFIG_ROPE_THETA_H_

#include "absl/status/statusor.h"
#include "lib/model_config/layer_rules.h"
#include "lib/model_config/tower.h"

namespace posenc {

// Inside the map, else beside it, else the family's default, with a finding where
// readers would disagree. Refuses two names beside the map that differ.
absl::StatusOr<double> RopeTheta(const Tower& tower, const LayerGroup& group);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_ROPE_THETA_H_
