// The parameters of a RoPE scaling: read, completed from beside the map, checked.
#ifndef POSENC_LIB_MODEL_CONFIG_ROPE_SCALING_H_
#define POSENC_LIB_MODEL_CONFIG_ROPE_SCALING_H_

#include "absl/status/status.h"
#include "lib/model_config/scaling_input.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// Sets spec's scaling. Refuses missing and impossible parameters, notes odd ones.
absl::Status SetScaling(const ScalingInput& input, v1::RopeSpec* spec);

// m(factor, mscale_all_dim)^2 of a family with latent attention: multiplies the
// softmax scale, beside the table. 1 where the map has no mscale_all_dim.
double MlaSoftmaxScale(const ScalingInput& input);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_ROPE_SCALING_H_
