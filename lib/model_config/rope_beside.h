// What a model does with positions beside its table: several axes, a scale on the
// queries.
#ifndef POSENC_LIB_MODEL_CONFIG_ROPE_BESIDE_H_
#define POSENC_LIB_MODEL_CONFIG_ROPE_BESIDE_H_

#include "absl/status/status.h"
#include "lib/model_config/scaling_input.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

// The sections of M-RoPE: the map's, else the family's. Refuses sections that do
// not use every frequency.
absl::Status SetMrope(const ScalingInput& input, v1::ResolvedEncoding* encoding);

// What multiplies queries by their position: Llama 4, Ministral, Qwen 1.
absl::Status SetQueryScale(const ScalingInput& input, v1::ResolvedEncoding* encoding);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_ROPE_BESIDE_H_
