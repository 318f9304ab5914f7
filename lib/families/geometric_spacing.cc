#include "lib/families/geometric_spacing.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/numeric/elementary.h"

namespace posenc {
namespace {

double PartialSum(double q, int64_t terms) {
  return (1.0 - Pow(q, static_cast<double>(terms))) / (1.0 - q);
}

double RatioOf(int64_t size, int64_t new_size) {
  const auto reach = static_cast<double>(new_size / 2);
  double low = 1.01;
  double high = 1.5;
  double q = low;
  while (high - low > 1e-6) {
    q = (low + high) / 2;
    (PartialSum(q, size / 2) > reach ? high : low) = q;
  }
  return q;
}

}  // namespace

absl::Status CheckOffsets(absl::string_view field, int64_t offsets, int64_t min) {
  RETURN_IF_ERROR(CheckInRange(field, offsets, min, kMaxOffsets));
  if (offsets % 2 == 1) return absl::OkStatus();
  return FieldError(field, absl::StrCat("must be odd (2 window - 1), got ", offsets));
}

std::vector<double> GeometricCoordinates(int64_t size, int64_t new_size) {
  const double q = RatioOf(size, new_size);
  const auto middle = static_cast<size_t>(size / 2);
  std::vector<double> coordinates(static_cast<size_t>(size));
  double coordinate = 1;
  for (size_t i = 1; i <= middle; ++i) {
    coordinates[middle + i] = coordinate;
    coordinates[middle - i] = -coordinate;
    coordinate += Pow(q, static_cast<double>(i));
  }
  return coordinates;
}

}  // namespace posenc
