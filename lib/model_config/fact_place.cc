#include "lib/model_config/fact_place.h"

#include "absl/strings/cord.h"

namespace posenc {

absl::Status WithFactPlace(absl::Status status, const v1::FactPlace& place) {
  status.SetPayload(kFactPlaceUrl, absl::Cord(place.SerializeAsString()));
  return status;
}

const v1::FactPlace* FindPlace(const v1::ResolvedEncoding& encoding, absl::string_view fact) {
  for (const v1::FactPlace& place : encoding.places()) {
    if (place.fact() == fact) return &place;
  }
  return nullptr;
}

void PointAt(const v1::FactPlace& place, v1::Finding* finding) {
  finding->set_pointer(place.pointer());
  finding->set_line(place.line());
  finding->set_column(place.column());
  finding->set_in_overrides(place.in_overrides());
}

}  // namespace posenc
