// Sines and cosines of single angles, correctly rounded: for coordinates that
// are no integers, where rotation.h has no rows of positions to work on.
//
// As there, a double with a proven error bound is rounded where the bound leaves
// no doubt, and WideFloat decides where it does.
#ifndef POSENC_LIB_NUMERIC_ANGLE_H_
#define POSENC_LIB_NUMERIC_ANGLE_H_

#include <cstddef>

#include "lib/numeric/sin_cos.h"
#include "lib/numeric/wide_float.h"

namespace posenc {

struct FloatSinCos {
  float sin = 0;
  float cos = 0;
};

// Of a float32 angle in radians: the values of SinF and CosF (elementary.h), in
// some tens of nanoseconds. REQUIRES: finite.
FloatSinCos SinCosF(float radians);

// A frequency that is a real number.
class ExactFrequency {
 public:
  explicit ExactFrequency(const WideFloat& radians_per_unit);

  const WideFloat& wide() const { return radians_; }

  // Of x · frequency, rounded once to the element: float, double, F16 or Bf16.
  // REQUIRES: x is finite, the angle is below 2^100.
  template <typename Element>
  void SinCos(double x, Element* sin, Element* cos) const;

 private:
  WideFloat radians_;  // per unit
  WideFloat turns_;    // per unit
  DoubleDouble rate_;  // turns, to 106 bits
};

}  // namespace posenc

#endif  // POSENC_LIB_NUMERIC_ANGLE_H_
