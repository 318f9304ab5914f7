// The base of the frequencies: which of its many places in a config holds.
#ifndef POSENC_LIB_MODEL_CONFIG_ROPE_THETA_H_
#define POSENC_LIB_MODEL_CONFIG_ROPE_THETA_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/model_config/layer_rules.h"
#include "lib/model_config/tower.h"

namespace posenc {

// The names of the base in all families: two that stand in one file mean one thing.
inline constexpr absl::string_view kBaseNames =
    "rope_theta rotary_emb_base rotary_base rope_base rotary_embedding_base rope_embedding_base";

// Inside the map, else beside it, else the family's default, with a finding where
// readers would disagree. Refuses two names in one place that differ, whichever of
// them the family reads.
absl::StatusOr<double> RopeTheta(const Tower& tower, const LayerGroup& group);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_ROPE_THETA_H_
