// Places of a file: where facts of an encoding stand, findings at them, and how a refusal
// carries its own, as a payload, which gRPC's error details carry on.
#ifndef POSENC_LIB_MODEL_CONFIG_FACT_PLACE_H_
#define POSENC_LIB_MODEL_CONFIG_FACT_PLACE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

inline constexpr char kFactPlaceUrl[] = "type.googleapis.com/posenc.v1.FactPlace";

// The status with `place` under kFactPlaceUrl.
absl::Status WithFactPlace(absl::Status status, const v1::FactPlace& place);

// The place of a fact; null where the file has none.
const v1::FactPlace* FindPlace(const v1::ResolvedEncoding& encoding, absl::string_view fact);

// Sets pointer, line, column and in_overrides.
void PointAt(const v1::FactPlace& place, v1::Finding* finding);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_FACT_PLACE_H_
