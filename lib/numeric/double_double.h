// Numbers as unevaluated sums of doubles: between the speed of a double and the
// certainty of a WideFloat.
#ifndef POSENC_LIB_NUMERIC_DOUBLE_DOUBLE_H_
#define POSENC_LIB_NUMERIC_DOUBLE_DOUBLE_H_

#include <cmath>

#include "lib/numeric/wide_float.h"

namespace posenc {

// |lo| <= ulp(hi)/2: about 106 bits.
struct DoubleDouble {
  double hi = 0;
  double lo = 0;

  static DoubleDouble From(const WideFloat& value) {
    const double hi = value.ToDouble();
    return {hi, (value - WideFloat::From(hi)).ToDouble()};
  }

  DoubleDouble operator-() const { return {-hi, -lo}; }
};

// a + b exactly (Knuth).
inline DoubleDouble TwoSum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// a + b exactly. REQUIRES: |a| >= |b| or a == 0.
inline DoubleDouble FastTwoSum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

// a * b exactly.
inline DoubleDouble TwoProduct(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

// Relative error at most 2^-102 each; of a sum, relative to |a| + |b|.
inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble high = TwoSum(a.hi, b.hi);
  const DoubleDouble low = TwoSum(a.lo, b.lo);
  const DoubleDouble sum = FastTwoSum(high.hi, high.lo + low.hi);
  return FastTwoSum(sum.hi, sum.lo + low.lo);
}

inline DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble product = TwoProduct(a.hi, b.hi);
  return FastTwoSum(product.hi, product.lo + (a.hi * b.lo + a.lo * b.hi));
}

inline DoubleDouble operator*(DoubleDouble a, double b) { return a * DoubleDouble{b, 0}; }

// Three doubles: about 159 bits.
struct TripleDouble {
  double hi = 0;
  double mid = 0;
  double lo = 0;

  static TripleDouble From(const WideFloat& value) {
    const DoubleDouble top = DoubleDouble::From(value);
    const WideFloat rest = value - WideFloat::From(top.hi) - WideFloat::From(top.lo);
    return {top.hi, top.lo, rest.ToDouble()};
  }
};

}  // namespace posenc

#endif  // POSENC_LIB_NUMERIC_DOUBLE_DOUBLE_H_
