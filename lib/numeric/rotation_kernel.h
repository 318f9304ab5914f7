// The vector code behind Rotation: a vector of pairs at a time, for as many rows as asked.
//
// A row of position p is reached by complex multiplications in double:
//   e^(i·p·w) = (e^(i·base·w) · e^(i·m·fine_rows·w)) · e^(i·n·w),  p = base + m·fine_rows + n
// The factors of m and n come from a table that the Rotation keeps (`fine`), the first
// is computed once a block of rows; the product in brackets serves fine_rows rows, whose
// table stays in the first-level cache. Each value is then rounded, and those whose
// error bound straddles a rounding boundary are handed to `settle`.
//
// Bfloat16 has so few digits that the multiplication in float32 nearly always
// decides: doubles are then what float32 leaves open.
#ifndef POSENC_LIB_NUMERIC_ROTATION_KERNEL_H_
#define POSENC_LIB_NUMERIC_ROTATION_KERNEL_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/numeric/sin_cos.h"

namespace posenc {

// Pairs that stand together in the tables; what is past the last pair is zero. Tables
// have a multiple of kRotationStepGroups groups: the most that are filled together.
inline constexpr int64_t kRotationGroup = 16;
inline constexpr int64_t kRotationStepGroups = 4;

struct alignas(64) RotationLanes {
  std::array<double, kRotationGroup> lane = {};
};
struct alignas(64) RotationFloats {
  std::array<float, kRotationGroup> lane = {};
};

// Rows of the tables: of the one that reaches over a block each stands for fine_rows
// positions.
inline constexpr int64_t kMaxFineRows = 64;
inline constexpr int64_t kMaxCoarseRows = 16;

enum class RotationElement { kF32, kF64, kF16, kBf16 };

// How the values of a row stand, i in [0, pairs).
enum class RotationLayout {
  kApart,             // cos[i], sin[i]
  kTwice,             // cos[i] and cos[pairs + i], sin[i] and sin[pairs + i]
  kAlternating,       // cos[2i], sin[2i]: neighbours, in either order
  kTwiceAlternating,  // cos[2i] and cos[2i + 1], sin[2i] and sin[2i + 1]
};

// |vector result - exact| in units of the scale, for rotated values: three values of
// kSinCosError each, two multiplications (2^-52 of the modulus each: with fused
// multiply-adds a complex product is within two roundings), the scale (EXACT; 2^-53) or
// TurnByDelta's roundings and what it leaves out (FLOAT32; 5·2^-53). Relative to the
// value itself, not to the scale, of a sine where no term cancels: it is a sum of terms of
// one sign. (That angles are reduced adds 2^-60 at most.)
constexpr double RotatedError(bool exact) {
  return 3 * kSinCosError + 2 * 0x1p-52 + (exact ? 0x1p-53 : 5 * 0x1p-53) + 3 * 0x1p-60;
}
static_assert(0x1p-60 >= kReductionError * kMaxAngle);

// Largest FLOAT32 angle that is rotated: its rounding to float32 then moves it by
// at most 2^-8, for which a short series serves. Shorter ones serve up to the others.
inline constexpr double kMaxRotatedAngle = 0x1p17;
inline constexpr double kMaxCubicAngle = 0x1p13;
inline constexpr double kMaxQuadraticAngle = 0x1p8;

// Smallest: below it what the rounding adds may be no float32.
inline constexpr double kMinRotatedInvFreq = 0x1p-80;

// Within how many units of the last place of a double (a power of two) a value is next to
// a tie: one in 2^13.
inline constexpr uint32_t kMargin = uint32_t{1} << 15;

// Values below this share of the scale have lost too many bits to cancellation to be
// tested so: one in some thousand. About as many as next to ties; a smaller margin would
// make the one more and the other less.
constexpr double LeastRotated(bool exact) { return RotatedError(exact) / (kMargin * 0x1p-53); }

// |float32 result - exact| as above, for the float32 rotation, and the distance that it
// is tested at. The slack is for the rounding of the test itself (2^-25) and for the
// float32 nearest to the exact value (2^-25).
inline constexpr double kRotatedFloatError = 0x1.8p-23;
inline constexpr double kRotatedFloatMargin = 0x1p-22;
static_assert(kRotatedFloatMargin >= kRotatedFloatError + 2 * 0x1p-25);
// The same relative to the value, where no term cancels.
inline constexpr double kRotatedFloatRelativeError = 0x1.4p-22;
inline constexpr double kRotatedFloatRelativeMargin = 0x1p-21;
static_assert(kRotatedFloatRelativeMargin >= kRotatedFloatRelativeError + 2 * 0x1p-24);
// More of both where FLOAT32 multiplies by a scale: so that products stay apart.
inline constexpr double kScaledFloatMargin = 0x1p-23;

// Scales that its error stays a normal float32 for.
inline constexpr double kMinFloatScale = 0x1p-60;
inline constexpr double kMaxFloatScale = 0x1p60;

// A pair that the quick tests leave open.
struct RotationCandidate {
  int64_t position;
  int64_t pair;
  double cos;  // to within cos_error; FLOAT32: without the scale
  double sin;
  double cos_error;
  double sin_error;
};

struct RotationJob {
  // The rotation.
  bool exact;
  double scale;
  int64_t pairs;
  int64_t fine_rows;              // a power of two up to kMaxFineRows
  int64_t coarse_rows;            // a power of two up to kMaxCoarseRows
  const RotationLanes* turns_hi;  // [groups], turns per position
  const RotationLanes* turns_lo;
  const RotationFloats* inv_freq;  // [groups], FLOAT32 only
  // [groups, fine_rows + coarse_rows, 2]: cos, sin of n·w, then of m·fine_rows·w.
  const RotationLanes* fine;
  const RotationFloats* fine32;  // the same in float32
  // The rows.
  int64_t first;
  int64_t count;
  RotationElement element;  // kF64 with FLOAT32 only
  RotationLayout layout;
  // Past the caches: every run of a row is whole, aligned to kRotationLine bytes.
  bool streams;
  void* cos;  // null: not wanted
  void* sin;
  int64_t stride;  // in elements
  // Writes one element to each place.
  void (*settle)(const void* rotation, const RotationCandidate& candidate, void* cos, void* sin);
  const void* rotation;
};

// What memory is written by; partly written, it would be read first.
inline constexpr size_t kRotationLine = 64;

// Whether this CPU has what the kernel needs (a fused multiply-add).
bool HasRotationKernel();

// REQUIRES: HasRotationKernel().
void RunRotationKernel(const RotationJob& job);

// Writes the job's table `fine`, of the first `groups`. REQUIRES: the same.
void FillFineTable(const RotationJob& job, int64_t groups, RotationLanes* fine);

}  // namespace posenc

#endif  // POSENC_LIB_NUMERIC_ROTATION_KERNEL_H_
