// Scalings whose table depends on the length of the sequence, and the fixed base
// change that shares a key with one of them.
#ifndef POSENC_LIB_MODEL_CONFIG_LENGTH_SCALING_H_
#define POSENC_LIB_MODEL_CONFIG_LENGTH_SCALING_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/model_config/scaling_input.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// dynamic; with `alpha` the fixed change of base that HunYuan means by it.
absl::Status SetDynamic(const ScalingInput& input, v1::RopeSpec* spec);

// ntk: a fixed change of base.
absl::Status SetNtk(const ScalingInput& input, v1::NtkScaling* ntk);

// longrope: a list for short sequences, one for long ones.
absl::Status SetLongRope(const ScalingInput& input, v1::LongRopeScaling* longrope);

// Scalings by keys of the family's own, outside any map: the rope_type that they
// mean, "" where the file has none. Qwen 1: use_dynamic_ntk (on where it is missing), a
// base that grows past seq_length. Phi-3-small: rope_position_scale.
absl::StatusOr<std::string> SetOwnScaling(const ScalingInput& input, v1::RopeSpec* spec);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_LENGTH_SCALING_H_
