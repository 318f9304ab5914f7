// Learned biases over relative positions: weights that are only counted here, with
// what indexes them; and families that carry no position, or one by convolution.
#ifndef POSENC_LIB_MODEL_CONFIG_RELATIVE_RULES_H_
#define POSENC_LIB_MODEL_CONFIG_RELATIVE_RULES_H_

#include "absl/status/status.h"
#include "lib/model_config/tower.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

absl::Status ResolveDeberta(const Tower& tower, v1::ResolveModelConfigResponse* response);
absl::Status ResolveXlnet(const Tower& tower, v1::ResolveModelConfigResponse* response);
// One table for all layers, one in each, learned rows, or nothing, by three switches.
absl::Status ResolveBeit(const Tower& tower, v1::ResolveModelConfigResponse* response);
absl::Status ResolveSwin(const Tower& tower, v1::ResolveModelConfigResponse* response);
// Swin in the backbone, DETR's sines in the encoder.
absl::Status ResolveGroundingDino(const Tower& tower, v1::ResolveModelConfigResponse* response);
// A grouped convolution over the signal.
absl::Status ResolveConvolution(const Tower& tower, v1::ResolveModelConfigResponse* response);
// The same, and gated T5 buckets.
absl::Status ResolveWavlm(const Tower& tower, v1::ResolveModelConfigResponse* response);
absl::Status ResolveNone(const Tower& tower, v1::ResolveModelConfigResponse* response);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_RELATIVE_RULES_H_
