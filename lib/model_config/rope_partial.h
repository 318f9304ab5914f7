// partial_rotary_factor: which of its places in a config holds, and in which version.
#ifndef POSENC_LIB_MODEL_CONFIG_ROPE_PARTIAL_H_
#define POSENC_LIB_MODEL_CONFIG_ROPE_PARTIAL_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/model_config/json_document.h"
#include "lib/model_config/layer_rules.h"
#include "lib/model_config/tower.h"

namespace posenc {

struct PartialRotary {
  double factor;    // above 0, at most 1
  JsonValue value;  // where it stands; absent for the family's default
};

// Inside the map, else beside it, else the family's default, unless the compat mode's version
// reads it otherwise; a finding where versions differ.
absl::StatusOr<PartialRotary> PartialRotaryOf(const Tower& tower, const LayerGroup& group,
                                              absl::string_view rope_type);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_ROPE_PARTIAL_H_
