// Sine and cosine in double, of an angle given as x·rate turns: the fast path
// whose stated error bound tells when the slow one is needed.
#ifndef POSENC_LIB_NUMERIC_SIN_COS_H_
#define POSENC_LIB_NUMERIC_SIN_COS_H_

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "lib/numeric/double_double.h"

namespace posenc {

struct DoubleSinCos {
  double sin = 0;
  double cos = 0;
};

// Largest |angle| in radians that SinCosOfTurns is proven for: its quarter turns
// are counted exactly below 2^51, and kReductionError leaves 2^-64 here.
inline constexpr double kMaxAngle = 0x1p40;

// |result - exact| <= kSinCosError·|exact| + kReductionError·|x·rate|.
// The first part is the last sum's rounding and those of the terms that it adds, which are
// a ninth of a sine and a third of a cosine (2^-52.4 together; worst seen 2^-52.8), the
// second the 106 bits that x·rate is known to, in radians a turn.
inline constexpr double kSinCosError = 0x1p-52;
inline constexpr double kReductionError = 0x1p-100;

// 1/n!, for the series.
constexpr double InverseFactorial(int n) {
  double factorial = 1;
  for (int i = 2; i <= n; ++i) factorial *= i;  // exact up to 18!
  return 1 / factorial;
}

// 2π and 1/(2π).
inline constexpr DoubleDouble kTwoPiDoubles = {0x1.921fb54442d18p2, 0x1.1a62633145c07p-52};
inline constexpr DoubleDouble kInverseTwoPiDoubles = {0x1.45f306dc9c883p-3, -0x1.6b01ec5417056p-57};

// Taylor series of sin r = r + r z (...) and cos r = 1 - z/2 + z² (...), z = r², for
// |r| <= π/4: the first terms left out are r^19/19! and r^18/18!, below 2^-58 of
// the sums.
inline constexpr std::array<double, 8> kSinCoefficients = {
    -InverseFactorial(3),  InverseFactorial(5),  -InverseFactorial(7),  InverseFactorial(9),
    -InverseFactorial(11), InverseFactorial(13), -InverseFactorial(15), InverseFactorial(17)};
inline constexpr std::array<double, 7> kCosCoefficients = {
    InverseFactorial(4),  -InverseFactorial(6),  InverseFactorial(8), -InverseFactorial(10),
    InverseFactorial(12), -InverseFactorial(14), InverseFactorial(16)};

// z (...) of either, by Horner's rule.
template <size_t N>
double Series(const std::array<double, N>& coefficients, double z) {
  double sum = coefficients[N - 1];
  for (size_t i = N - 1; i-- > 0;) sum = coefficients[i] + z * sum;
  return sum;
}

// Of the angle 2π·x·rate. REQUIRES: |2π·x·rate| <= kMaxAngle.
inline DoubleSinCos SinCosOfTurns(double x, DoubleDouble rate) {
  // turns = product + tail, to about 106 bits.
  const double product = x * rate.hi;
  const double tail = std::fma(x, rate.hi, -product) + x * rate.lo;

  // Take the nearest quarter turns away: adding 1.5·2^52 leaves the integer in
  // the low bits of the sum. What remains is in [-1/8, 1/8], exactly.
  constexpr double kRound = 0x1.8p52;
  const double shifted = 4 * product + kRound;
  const uint64_t quarters = std::bit_cast<uint64_t>(shifted);
  const double rest = product - (shifted - kRound) / 4;
  const double turn = rest + tail;
  const double turn_tail = tail - (turn - rest);

  // In radians, as r + r_tail.
  const double r = turn * kTwoPiDoubles.hi;
  const double r_tail = std::fma(turn, kTwoPiDoubles.hi, -r) +
                        (turn * kTwoPiDoubles.lo + turn_tail * kTwoPiDoubles.hi);

  const double z = r * r;
  const double half = 0.5 * z;
  const double s = r + (r * z * Series(kSinCoefficients, z) + r_tail * (1 - half));
  const double head = 1 - half;
  const double k =
      head + (((1 - head) - half) + (z * z * Series(kCosCoefficients, z) - r * r_tail));

  switch (quarters & 3) {
    case 0:
      return {s, k};
    case 1:
      return {k, -s};
    case 2:
      return {-s, -k};
    default:
      return {-k, s};
  }
}

}  // namespace posenc

#endif  // POSENC_LIB_NUMERIC_SIN_COS_H_
