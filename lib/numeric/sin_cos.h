// Sine and cosine in double, of an angle given as x·rate turns: the fast path
// whose stated error bound tells when the slow one is needed.
#ifndef POSENC_LIB_NUMERIC_SIN_COS_H_
#define POSENC_LIB_NUMERIC_SIN_COS_H_

#include <bit>
#include <cmath>
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
// The first part is the polynomials and their last roundings (worst seen
// 2^-52.8), the second the 106 bits that x·rate is known to, in radians a turn.
inline constexpr double kSinCosError = 0x1p-51;
inline constexpr double kReductionError = 0x1p-100;

// 1/n!, for the series.
constexpr double InverseFactorial(int n) {
  double factorial = 1;
  for (int i = 2; i <= n; ++i) factorial *= i;  // exact up to 18!
  return 1 / factorial;
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
  constexpr DoubleDouble kTwoPi = {0x1.921fb54442d18p2, 0x1.1a62633145c07p-52};
  const double r = turn * kTwoPi.hi;
  const double r_tail = std::fma(turn, kTwoPi.hi, -r) + (turn * kTwoPi.lo + turn_tail * kTwoPi.hi);

  // Taylor series: the first terms left out are r^19/19! and r^18/18!, below
  // 2^-58 of the sums.
  const double z = r * r;
  constexpr auto c = InverseFactorial;
  const double sin_series =
      -c(3) +
      z * (c(5) + z * (-c(7) + z * (c(9) + z * (-c(11) + z * (c(13) + z * (-c(15) + z * c(17)))))));
  const double cos_series =
      c(4) + z * (-c(6) + z * (c(8) + z * (-c(10) + z * (c(12) + z * (-c(14) + z * c(16))))));
  const double half = 0.5 * z;
  const double s = r + (r * z * sin_series + r_tail * (1 - half));
  const double head = 1 - half;
  const double k = head + (((1 - head) - half) + (z * z * cos_series - r * r_tail));

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
