// How a refusal carries its place in the file: as a payload, which gRPC's error details carry on.
#ifndef POSENC_LIB_MODEL_CONFIG_FACT_PLACE_H_
#define POSENC_LIB_MODEL_CONFIG_FACT_PLACE_H_

#include "absl/status/status.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

inline constexpr char kFactPlaceUrl[] = "type.googleapis.com/posenc.v1.FactPlace";

// The status with `place` under kFactPlaceUrl.
absl::Status WithFactPlace(absl::Status status, const v1::FactPlace& place);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_FACT_PLACE_H_
