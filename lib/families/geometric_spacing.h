// Where BEiT's fine-tuning puts the offsets of a bias table before it is stretched: dense
// in the middle, sparse at the ends.
//
//   -(1 + q + ...), ..., -(1 + q), -1, 0, 1, 1 + q, 1 + q + q^2, ...
//
// q makes size / 2 steps reach new_size / 2, as bisection from [1.01, 1.5] to a width of
// 1e-6 has it: its bounds are part of the values. So the ends miss new_size / 2 by some
// 1e-5, lie beyond it when the new size is not above the size, and stay before it when
// the new size is several times the size.
// reference/other-encodings.md, section 4.5.
#ifndef POSENC_LIB_FAMILIES_GEOMETRIC_SPACING_H_
#define POSENC_LIB_FAMILIES_GEOMETRIC_SPACING_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace posenc {

inline constexpr int64_t kMaxOffsets = 8191;  // a side, of a window of 4096

// "geometric_coordinates.source_size: must be odd (2 window - 1), got 4"
absl::Status CheckOffsets(absl::string_view field, int64_t offsets, int64_t min);

// Ascending, exactly odd about the middle. REQUIRES: both odd, in [1, kMaxOffsets].
std::vector<double> GeometricCoordinates(int64_t size, int64_t new_size);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_GEOMETRIC_SPACING_H_
