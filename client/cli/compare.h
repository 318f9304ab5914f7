// A model against its base: what differs in its positions, with the effect in numbers.
#ifndef POSENC_CLIENT_CLI_COMPARE_H_
#define POSENC_CLIENT_CLI_COMPARE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "posenc/client.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc::cli {

// One finding a difference, tower by tower and layer type by layer type. Rule ids:
//   base-encoding-missing   the base has an encoding that the model has not
//   base-encoding-added     the other way round (warning)
//   base-kind-differs       RoPE against ALiBi and so on
//   base-scheme-differs     rope_type, or the variant of it
//   base-theta-differs      rope_theta
//   base-scaling-differs    a parameter of the scaling
//   base-rotary-dim-differs how many channels rotate, or of how many
//   base-pairing-differs    which channels rotate together
//   base-mrope-differs      which axis turns which frequency
//   base-layers-differ      which layers have this encoding, or none
//   base-attention-differs  what multiplies cos and sin, or the softmax scale
//   base-spec-differs       a parameter of an encoding that is not RoPE; a warning where two
//                           ALiBis attend alike but for their roundings
//   base-length-differs     max_position_embeddings (warning)
// All are errors but for the warnings. Fails only when the client does.
absl::StatusOr<std::vector<v1::Finding>> CompareWithBase(
    const Client& client, const v1::ResolveModelConfigResponse& base,
    const v1::ResolveModelConfigResponse& model);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_COMPARE_H_
