// Image encoders of SAM 2 and SAM 3.
#ifndef POSENC_LIB_MODEL_CONFIG_SEGMENT_RULES_H_
#define POSENC_LIB_MODEL_CONFIG_SEGMENT_RULES_H_

#include "absl/status/status.h"
#include "lib/model_config/tower.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

// The encoder of `backbone_config`, and tower `neck`: DETR's sines.
absl::Status ResolveSamVision(const Tower& tower, v1::ResolveModelConfigResponse* response);

// Two learned grids that are added: `background`, stretched over the image, and `window`, laid
// side by side.
absl::Status ResolveSam2Hiera(const Tower& tower, v1::ResolveModelConfigResponse* response);

// A RoPE in windows, one over the whole image in some layers, whose coordinates are those of one
// window, and a learned grid that is laid side by side.
absl::Status ResolveSam3Vit(const Tower& tower, v1::ResolveModelConfigResponse* response);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_SEGMENT_RULES_H_
