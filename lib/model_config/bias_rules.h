// Encodings that are added to attention scores: ALiBi and T5's buckets.
#ifndef POSENC_LIB_MODEL_CONFIG_BIAS_RULES_H_
#define POSENC_LIB_MODEL_CONFIG_BIAS_RULES_H_

#include "absl/status/status.h"
#include "lib/model_config/tower.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

// BLOOM: causal ALiBi, no limit of length (seq_length is what it was trained on).
absl::Status ResolveBloom(const Tower& tower, v1::ResolveModelConfigResponse* response);

// MPT: ALiBi unless attn_config says otherwise.
absl::Status ResolveMpt(const Tower& tower, v1::ResolveModelConfigResponse* response);

// T5: buckets of both directions in the encoder, of the past in the decoder.
absl::Status ResolveT5(const Tower& tower, v1::ResolveModelConfigResponse* response);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_BIAS_RULES_H_
