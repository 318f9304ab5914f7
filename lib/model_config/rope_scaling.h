// The parameters of a RoPE scaling: read, completed from beside the map, checked.
#ifndef POSENC_LIB_MODEL_CONFIG_ROPE_SCALING_H_
#define POSENC_LIB_MODEL_CONFIG_ROPE_SCALING_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "lib/model_config/rope_keys.h"
#include "lib/model_config/tower.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// What the rules need to know of the layers that the scaling is for.
struct ScalingInput {
  const Tower& tower;
  const RopeKeys& keys;
  RopeTypeName type;
  int64_t max_position_embeddings;  // 0: not known
  int64_t head_dim;
  int64_t rotary_dim;
  std::optional<double> attention_factor;  // the family's, where the map has none
};

// Sets spec's scaling. Refuses missing and impossible parameters, notes odd ones.
absl::Status SetScaling(const ScalingInput& input, v1::RopeSpec* spec);

// m(factor, mscale_all_dim)^2 of a family with latent attention: multiplies the
// softmax scale, beside the table. 1 where the map has no mscale_all_dim.
double MlaSoftmaxScale(const ScalingInput& input);

// original_max_position_embeddings: inside the map, else beside it, else the
// family's, else the length that the file has (with a finding).
absl::StatusOr<int64_t> OriginalLength(const ScalingInput& input);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_ROPE_SCALING_H_
