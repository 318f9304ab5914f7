// How wide a head is, how much of it rotates, and which channels together.
#ifndef POSENC_LIB_MODEL_CONFIG_ROPE_WIDTH_H_
#define POSENC_LIB_MODEL_CONFIG_ROPE_WIDTH_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/model_config/json_document.h"
#include "lib/model_config/layer_rules.h"
#include "lib/model_config/tower.h"

namespace posenc {

struct RopeWidth {
  int64_t head_dim;    // of the part that can rotate: qk_rope_head_dim in latent attention
  int64_t rotary_dim;  // even, at least 2, at most head_dim
  Rotation rotation;
  bool channels_last;
  // Where the part that rotates stands; absent where a width of its own, or the class, says it.
  JsonValue partial = {};
};

// Refuses an odd width, one beyond the head, and names of it that contradict.
absl::StatusOr<RopeWidth> WidthOf(const Tower& tower, const LayerGroup& group,
                                  absl::string_view rope_type);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_ROPE_WIDTH_H_
