// The RoPE of a tower: width, base, pairing and scaling, from the file and the
// family's row.
#ifndef POSENC_LIB_MODEL_CONFIG_ROPE_RULES_H_
#define POSENC_LIB_MODEL_CONFIG_ROPE_RULES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/model_config/tower.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

// Adds an encoding for each layer type of the tower.
absl::Status ResolveRope(const Tower& tower, v1::ResolveModelConfigResponse* response);

// As ResolvedEncoding.rotation names it.
absl::string_view RotationName(Rotation rotation);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_ROPE_RULES_H_
