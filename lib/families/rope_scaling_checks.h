// The rules that the rope_types share, and those of each type whose table is made
// for a sequence length. Internal to rope_scaling.cc and rope_scaling_by_length.cc.
#ifndef POSENC_LIB_FAMILIES_ROPE_SCALING_CHECKS_H_
#define POSENC_LIB_FAMILIES_ROPE_SCALING_CHECKS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/family.h"
#include "lib/numeric/rotation.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// Numbers stay normal float32s, so that no step of either arithmetic leaves its range.
inline constexpr double kMinRopeNumber = std::numeric_limits<float>::min();
inline constexpr double kMaxRopeNumber = std::numeric_limits<float>::max();

inline bool IsRopeNumber(double value) {  // false for NaN
  return value >= kMinRopeNumber && value <= kMaxRopeNumber;
}

inline absl::Status CheckNumber(absl::string_view field, bool is_set, double value) {
  if (!is_set) return FieldError(field, "is required");
  if (IsRopeNumber(value)) return absl::OkStatus();
  return FieldError(field,
                    absl::StrCat("must be positive and within the range of float32, got ", value));
}

// Transformers multiplies by whatever it is given.
inline absl::Status CheckAttentionFactor(absl::string_view field, double value) {
  if (value > 0 || std::isnan(value)) return CheckNumber(field, true, value);
  return FieldError(field, absl::StrCat("must be positive: ",
                                        value == 0 ? "0 makes all of the table 0"
                                                   : "a negative one turns every rotation round",
                                        ", got ", value));
}

// Whether a request to divide positions says anything: EXACT has the same real number.
inline bool DividesPositions(const v1::RopeSpec& rope, bool asked) {
  return asked && rope.arithmetic() != v1::ARITHMETIC_EXACT;
}

// Of a number of positions.
inline absl::Status CheckContext(absl::string_view field, bool is_set, int64_t value) {
  if (!is_set) return FieldError(field, "is required");
  return CheckInRange(field, value, 1, kMaxPosition);
}

// Frequencies are at most 1, or 1/rope_theta below 1; a factor below 1 raises them.
inline absl::Status CheckAngles(absl::string_view field, double rope_theta, double factor) {
  const double largest = 1 / (std::min(rope_theta, 1.0) * std::min(factor, 1.0));
  if (largest <= kMaxInvFreq) return absl::OkStatus();
  return FieldError(field, absl::StrCat("makes angles too large: frequencies up to ", largest,
                                        " exceed ", kMaxInvFreq, " radians per position"));
}

// One number a frequency.
inline absl::Status CheckList(absl::string_view field, const v1::RopeSpec& rope,
                              const google::protobuf::RepeatedField<double>& list) {
  if (list.size() != rope.rotary_dim() / 2) {
    return FieldError(field, absl::StrCat("must have rotary_dim/2 (", rope.rotary_dim() / 2,
                                          ") numbers, got ", list.size()));
  }
  return absl::OkStatus();
}

// YaRN's m(factor, k): how much logits are sharpened in a context that is
// `factor` times as long. Float64 in Python's order.
double Magnitude(double factor, double k);

// Each completes and checks its case of the oneof. REQUIRES: it is set.
absl::Status CanonicalizeDynamic(v1::RopeSpec* rope);
absl::Status CanonicalizeNtk(v1::RopeSpec* rope);
absl::Status CanonicalizeLongRope(v1::RopeSpec* rope);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_ROPE_SCALING_CHECKS_H_
