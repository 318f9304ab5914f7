// Scalings whose table depends on the length of the sequence, and the fixed base
// change that shares a key with one of them.
#ifndef POSENC_LIB_MODEL_CONFIG_LENGTH_SCALING_H_
#define POSENC_LIB_MODEL_CONFIG_LENGTH_SCALING_H_

#include "absl/status/status.h"
#include "lib/model_config/scaling_input.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// dynamic; with `alpha` the fixed change of base that HunYuan means by it.
absl::Status SetDynamic(const ScalingInput& input, v1::RopeSpec* spec);

// ntk: a fixed change of base.
absl::Status SetNtk(const ScalingInput& input, v1::NtkScaling* ntk);

// longrope: a list for short sequences, one for long ones.
absl::Status SetLongRope(const ScalingInput& input, v1::LongRopeScaling* longrope);

// Qwen 1: the base grows past seq_length, where use_dynamic_ntk says so.
absl::StatusOr<bool> SetQwenDynamic(const ScalingInput& input, v1::RopeSpec* spec);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_LENGTH_SCALING_H_
