// The vector code behind Rotation: 16 pairs at a time, for as many rows as asked.
//
// A row of position p is reached by one complex multiplication in double:
//   e^(i·p·w) = e^(i·base·w) · e^(i·n·w),  p = base + n
// The second factor comes from a table that the Rotation keeps (`fine`), the first
// is computed once a block of rows. Each value is then rounded, and those whose
// error bound straddles a rounding boundary are handed to `decide`.
#ifndef POSENC_LIB_NUMERIC_ROTATION_KERNEL_H_
#define POSENC_LIB_NUMERIC_ROTATION_KERNEL_H_

#include <array>
#include <cstdint>

namespace posenc {

// Pairs that stand together in the tables; what is past the last pair is zero.
inline constexpr int64_t kRotationGroup = 16;

struct alignas(64) RotationLanes {
  std::array<double, kRotationGroup> lane = {};
};

enum class RotationElement { kF32, kF64, kF16, kBf16 };

// |vector result - exact| in units of the scale, for rotated values: two table
// values (kSinCosError each), the scale, and the multiplication. Relative to the
// value itself, not to the scale, where no term cancels.
inline constexpr double kRotatedError = 0x1p-49;

// Largest FLOAT32 angle that is rotated: its rounding to float32 then moves it by
// at most 2^-8, for which a short series serves.
inline constexpr double kMaxRotatedAngle = 0x1p17;

// Values below this share of the scale have lost too many bits to cancellation
// to be tested quickly: one in some thousand.
inline constexpr double kLeastRotated = 0x1p-12;

// kRotatedError of a value above that, in units of the last place of a double.
inline constexpr uint32_t kMargin = uint32_t{1} << 16;
static_assert(kMargin * 0x1p-53 >= kRotatedError / kLeastRotated);

struct RotationJob {
  // The rotation.
  bool exact;
  double scale;
  int64_t pairs;
  int64_t fine_rows;              // a power of two
  const RotationLanes* turns_hi;  // [groups], turns per position
  const RotationLanes* turns_lo;
  const RotationLanes* inv_freq;  // [groups], FLOAT32 only: the float32 values
  const RotationLanes* fine;      // [groups, fine_rows, 2]: cos, sin of n·w
  // The rows.
  int64_t first;
  int64_t count;
  RotationElement element;  // kF64 with FLOAT32 only
  void* cos;
  void* sin;
  int64_t cos_stride;  // in elements
  int64_t sin_stride;
  // Writes one element to each place.
  void (*decide)(const void* rotation, int64_t position, int64_t pair, void* cos, void* sin);
  const void* rotation;
};

// Whether this CPU has what the kernel needs (a fused multiply-add).
bool HasRotationKernel();

// REQUIRES: HasRotationKernel().
void RunRotationKernel(const RotationJob& job);

}  // namespace posenc

#endif  // POSENC_LIB_NUMERIC_ROTATION_KERNEL_H_
