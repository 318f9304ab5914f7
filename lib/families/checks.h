// The rules that many fields of a spec share, worded once.
#ifndef POSENC_LIB_FAMILIES_CHECKS_H_
#define POSENC_LIB_FAMILIES_CHECKS_H_

#include <cmath>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/base/status.h"

namespace posenc {

// "t5.num_buckets: must be in [2, 65536], got 1"
inline absl::Status CheckInRange(absl::string_view field, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return FieldError(field, absl::StrCat("must be in [", min, ", ", max, "], got ", value));
}

// "alibi.alibi_bias_max: must be above 0 and at most 100, got nan"
inline absl::Status CheckPositive(absl::string_view field, double value, double max) {
  if (value > 0 && value <= max) return absl::OkStatus();  // NaN fails both
  return FieldError(field, absl::StrCat("must be above 0 and at most ", max, ", got ", value));
}

// "sinusoidal_grid.base: must be in [1, 1e+30], got nan"
inline absl::Status CheckInRange(absl::string_view field, double value, double min, double max) {
  if (value >= min && value <= max) return absl::OkStatus();  // NaN fails both
  return FieldError(field, absl::StrCat("must be in [", min, ", ", max, "], got ", value));
}

// Base of the geometric frequencies of a grid: none exceeds a radian per position.
inline absl::Status CheckFrequencyBase(absl::string_view field, double value) {
  return CheckInRange(field, value, 1.0, 1e30);
}

// Sines and cosines of one coordinate, interleaved, as the DETR family has them.
inline absl::Status CheckPositionFeatures(absl::string_view field, bool is_set, int64_t value) {
  if (!is_set) return FieldError(field, "is required");
  RETURN_IF_ERROR(CheckInRange(field, value, 2, 32768));
  if (value % 2 == 0) return absl::OkStatus();
  return FieldError(field, absl::StrCat("must be even, got ", value));
}

// A divisor or multiplier of coordinates.
inline absl::Status CheckCoordinateScale(absl::string_view field, double value) {
  return CheckInRange(field, value, 0x1p-20, 0x1p20);
}

// "sinusoidal.base: must be finite and above 0, got inf"
inline absl::Status CheckFinitePositive(absl::string_view field, double value) {
  if (std::isfinite(value) && value > 0) return absl::OkStatus();
  return FieldError(field, absl::StrCat("must be finite and above 0, got ", value));
}

// Proto3 enums are open: a number that this version does not know is refused.
inline absl::Status CheckEnum(absl::string_view field, bool is_known, int value) {
  if (is_known) return absl::OkStatus();
  return FieldError(field, absl::StrCat("unknown value ", value));
}

// The same for an enum whose values run from 1 to `last` here.
inline absl::Status CheckEnumUpTo(absl::string_view field, int value, int last) {
  return CheckEnum(field, value >= 1 && value <= last, value);
}

// "window.window_height: is required"
inline absl::Status CheckPresent(absl::string_view field, bool is_present) {
  return is_present ? absl::OkStatus() : FieldError(field, "is required");
}

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_CHECKS_H_
