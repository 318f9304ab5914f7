// RoPE over a grid: vision towers and diffusion transformers. The spec is complete;
// a table needs the grid of an image or a video beside it.
#ifndef POSENC_LIB_MODEL_CONFIG_AXIAL_RULES_H_
#define POSENC_LIB_MODEL_CONFIG_AXIAL_RULES_H_

#include "absl/status/status.h"
#include "lib/model_config/tower.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

absl::Status ResolveAxialRope(const Tower& tower, v1::ResolveModelConfigResponse* response);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_AXIAL_RULES_H_
