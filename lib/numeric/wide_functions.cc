#include "lib/numeric/wide_functions.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace posenc {

namespace {

constexpr WideFloat kOne(false, 1, {0, 0, 0, uint64_t{1} << 63});
constexpr WideFloat kHalf(false, 0, {0, 0, 0, uint64_t{1} << 63});

int64_t RoundToInt(const WideFloat& value) { return (value + kHalf).Floor(); }

// Each series stops where the first term left out is below 2^-256 of the sum at
// the largest argument that its caller passes.
constexpr size_t kExpTerms = 53;     // |r| <= ln(2)/2: r^53/53! < 2^-310
constexpr size_t kAtanhTerms = 52;   // |z| <= 0.1716: z^104 < 2^-264
constexpr size_t kSinCosTerms = 30;  // |x| <= π/4: x^60/60! < 2^-290

template <size_t N>
using Coefficients = std::array<WideFloat, N>;

// c[0] + x (c[1] + x (...)).
template <size_t N>
WideFloat Polynomial(const Coefficients<N>& c, const WideFloat& x) {
  WideFloat sum = c[N - 1];
  for (size_t k = N - 1; k-- > 0;) sum = c[k] + x * sum;
  return sum;
}

// 1/n!: e^x by x.
const Coefficients<kExpTerms>& ExpSeries() {
  static const Coefficients<kExpTerms> series = [] {
    Coefficients<kExpTerms> c = {kOne};
    for (size_t n = 1; n < c.size(); ++n) c[n] = c[n - 1].DividedBy(n);
    return c;
  }();
  return series;
}

// 1/(2k+1): atanh(z) / z by z².
const Coefficients<kAtanhTerms>& AtanhSeries() {
  static const Coefficients<kAtanhTerms> series = [] {
    Coefficients<kAtanhTerms> c;
    for (size_t k = 0; k < c.size(); ++k) c[k] = kOne.DividedBy(2 * k + 1);
    return c;
  }();
  return series;
}

// ±1/(2k + first)!: cos(x) for first = 0, sin(x) / x for first = 1, by x².
template <size_t kFirst>
const Coefficients<kSinCosTerms>& SinCosSeries() {
  static const Coefficients<kSinCosTerms> series = [] {
    Coefficients<kSinCosTerms> c = {kOne};
    for (size_t k = 1; k < c.size(); ++k) {
      const size_t n = 2 * k + kFirst;
      c[k] = -c[k - 1].DividedBy((n - 1) * n);
    }
    return c;
  }();
  return series;
}

}  // namespace

WideFloat Exp(const WideFloat& x) {
  // x = k·ln2 + r; since |k| < 2^13 the error of r is below 2^-241.
  const int64_t k = RoundToInt(x / kWideLn2);
  const WideFloat r = x - WideFloat::FromInt(k) * kWideLn2;
  return Polynomial(ExpSeries(), r).TimesPowerOf2(k);
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
  const WideFloat log_m = (z * Polynomial(AtanhSeries(), z * z)).TimesPowerOf2(1);
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
  const WideFloat sin = x * Polynomial(SinCosSeries<1>(), x_squared);
  const WideFloat cos = Polynomial(SinCosSeries<0>(), x_squared);
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
