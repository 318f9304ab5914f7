#include "lib/numeric/wide_functions.h"

#include <cstdint>

namespace posenc {

namespace {

constexpr WideFloat kOne(false, 1, {0, 0, 0, uint64_t{1} << 63});
constexpr WideFloat kHalf(false, 0, {0, 0, 0, uint64_t{1} << 63});

// Each series stops where the first term left out is below 2^-256 of the sum at
// the largest argument that its caller passes.
constexpr uint64_t kExpTerms = 52;     // |r| <= ln(2)/2: r^53/53! < 2^-310
constexpr uint64_t kAtanhTerms = 52;   // |z| <= 0.1716: z^104 < 2^-264
constexpr uint64_t kSinCosTerms = 30;  // |x| <= π/4: x^60/60! < 2^-290

int64_t RoundToInt(const WideFloat& value) { return (value + kHalf).Floor(); }

// atanh(z) / z by z² for z² <= 0.0295.
WideFloat AtanhSeries(const WideFloat& z_squared) {
  WideFloat sum;
  for (uint64_t k = kAtanhTerms; k-- > 0;) {
    sum = kOne.DividedBy(2 * k + 1) + z_squared * sum;
  }
  return sum;
}

// 1 - x²/(a(a+1)) (1 - x²/((a+2)(a+3)) (...)): cos x for a = 1, sin x / x for a = 2.
WideFloat SinCosSeries(const WideFloat& x_squared, uint64_t a) {
  WideFloat sum = kOne;
  for (uint64_t k = kSinCosTerms; k-- > 0;) {
    const uint64_t n = a + 2 * k;
    sum = kOne - (x_squared * sum).DividedBy(n * (n + 1));
  }
  return sum;
}

}  // namespace

WideFloat Exp(const WideFloat& x) {
  // x = k·ln2 + r; since |k| < 2^13 the error of r is below 2^-241.
  const int64_t k = RoundToInt(x / kWideLn2);
  const WideFloat r = x - WideFloat::FromInt(k) * kWideLn2;
  WideFloat sum = kOne;
  for (uint64_t n = kExpTerms; n > 0; --n) sum = kOne + (r * sum).DividedBy(n);
  return sum.TimesPowerOf2(k);
}

WideFloat Log(const WideFloat& x) {
  // x = m·2^k with m in about [1/√2, √2], so that k·ln2 and log(m) never cancel.
  int64_t k = x.exponent();
  WideFloat m = x.TimesPowerOf2(-k);
  if (m < WideFloat::From(0.70710678118654752)) {
    m = m.TimesPowerOf2(1);
    --k;
  }
  const WideFloat z = (m - kOne) / (m + kOne);
  const WideFloat log_m = (z * AtanhSeries(z * z)).TimesPowerOf2(1);
  return WideFloat::FromInt(k) * kWideLn2 + log_m;
}

WideFloat Pow(const WideFloat& base, const WideFloat& exponent) {
  return Exp(exponent * Log(base));
}

WideSinCos SinCosOfTurns(const WideFloat& turns) {
  // To the nearest quarter turn: |angle| <= π/4 is left.
  const WideFloat fraction = turns.Fraction();
  const int64_t quarters = RoundToInt(fraction.TimesPowerOf2(2));
  const WideFloat rest = fraction - WideFloat::FromInt(quarters).TimesPowerOf2(-2);
  const WideFloat x = rest.TimesPowerOf2(1) * kWidePi;
  const WideFloat x_squared = x * x;
  const WideFloat sin = x * SinCosSeries(x_squared, 2);
  const WideFloat cos = SinCosSeries(x_squared, 1);
  switch (quarters & 3) {
    case 0:
      return {sin, cos};
    case 1:
      return {cos, -sin};
    case 2:
      return {-sin, -cos};
    default:
      return {-cos, sin};
  }
}

WideSinCos SinCos(const WideFloat& radians) { return SinCosOfTurns(radians * kWideInverseTwoPi); }

}  // namespace posenc
