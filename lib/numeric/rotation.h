// Cosines and sines of position · inv_freq[i], row by row: the kernel behind
// every RoPE and sinusoidal table.
//
// Each value is decided by Ziv's method: a double computed with a proven error
// bound is rounded if its whole interval rounds alike; else (a few in ten
// million) WideFloat decides. So the bits are those of the definition below,
// whatever path, vector width or machine computed them. Float64 elements start
// from 100 bits instead.
#ifndef POSENC_LIB_NUMERIC_ROTATION_H_
#define POSENC_LIB_NUMERIC_ROTATION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/numeric/double_double.h"
#include "lib/numeric/rotation_kernel.h"
#include "lib/numeric/sin_cos.h"
#include "lib/numeric/wide_float.h"

namespace posenc {

// Frequencies up to here keep angles below kMaxAngle at every position.
inline constexpr double kMaxInvFreq = 256.0;

// Where rows go. Row r begins r·stride elements after the pointers; what follows
// there is the layout's.
template <typename Element>
struct RotationRows {
  int64_t count = 0;
  int64_t stride = 0;
  Element* cos = nullptr;  // null: not wanted (but where they alternate)
  Element* sin = nullptr;
  RotationLayout layout = RotationLayout::kApart;
  // The memory is in no cache and is not read soon: where rows consist of whole lines
  // of memory, they are written past the caches.
  bool cold = false;
};

// Whether rows with `pairs` pairs consist of whole lines of memory.
template <typename Element>
bool HasWholeLines(const RotationRows<Element>& rows, int64_t pairs);

// Immutable; thread-safe.
class Rotation {
 public:
  // ARITHMETIC_FLOAT32. With position and inv_freq in float32, the angle is
  // their product rounded to float32, cos and sin are correctly rounded to
  // float32, and the product with scale (rounded to float32) is rounded again.
  // REQUIRES: finite, |inv_freq| <= kMaxInvFreq (a little more is proven for).
  static Rotation Float32(std::vector<float> inv_freq, double scale);

  // ARITHMETIC_EXACT. scale·cos(position·inv_freq), rounded once to the element.
  // REQUIRES: |inv_freq| <= kMaxInvFreq; scale is a normal float32 in magnitude.
  static Rotation Exact(const std::vector<WideFloat>& inv_freq, double scale);

  int64_t pairs() const { return static_cast<int64_t>(turns_.size()); }
  size_t bytes() const;

  // Rows of the positions first, first + 1, ... Elements: float, double, F16,
  // Bf16. FLOAT32 rounds (f64: widens) its float32 values to them.
  // REQUIRES: |position| < 2^31; the memory exists.
  template <typename Element>
  void Fill(int64_t first, const RotationRows<Element>& rows) const;

 private:
  enum class Mode { kFloat32, kExact };

  Rotation(Mode mode, double scale) : mode_(mode), scale_(scale) {}

  // The tables of rotation_kernel.h, and a job that has them.
  void MakeKernelTables();
  RotationJob KernelJob() const;
  template <typename Element>
  void FillByKernel(int64_t first, const RotationRows<Element>& rows) const;

  // Puts a value of a pair where the layout wants it.
  template <typename Element>
  void Place(RotationLayout layout, Element value, int64_t pair, Element* row) const;

  // What the kernel's quick tests left open, by its values if they decide.
  template <typename Element>
  void Settle(const RotationCandidate& near, Element* cos, Element* sin) const;

  // One pair, the sure way; neither place is null.
  template <typename Element>
  void FillPair(int64_t position, size_t pair, Element* cos, Element* sin) const;
  template <typename Element>
  void FillFloat32Pair(int64_t position, size_t pair, Element* cos, Element* sin) const;
  template <typename Element>
  void FillExactPair(int64_t position, size_t pair, Element* cos, Element* sin) const;
  void FillExactPair(int64_t position, size_t pair, double* cos, double* sin) const;
  template <typename Element>
  void DecideExact(int64_t position, size_t pair, Element* cos, Element* sin) const;

  Mode mode_;
  double scale_;
  std::vector<float> inv_freq_;      // FLOAT32: radians per position
  std::vector<DoubleDouble> turns_;  // turns per position
  // EXACT: the same, for float64 and for what the others leave open.
  std::vector<TripleDouble> precise_turns_;
  std::vector<WideFloat> wide_turns_;
  // For the kernel; empty where there is none.
  int64_t fine_rows_ = 0;
  int64_t coarse_rows_ = 0;
  std::vector<RotationLanes> turns_hi_;
  std::vector<RotationLanes> turns_lo_;
  std::vector<RotationFloats> inv_freq_lanes_;
  std::vector<RotationLanes> fine_;
  std::vector<RotationFloats> fine32_;
};

}  // namespace posenc

#endif  // POSENC_LIB_NUMERIC_ROTATION_H_
