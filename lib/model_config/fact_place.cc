#include "lib/model_config/fact_place.h"

#include "absl/strings/cord.h"

namespace posenc {

absl::Status WithFactPlace(absl::Status status, const v1::FactPlace& place) {
  status.SetPayload(kFactPlaceUrl, absl::Cord(place.SerializeAsString()));
  return status;
}

}  // namespace posenc
