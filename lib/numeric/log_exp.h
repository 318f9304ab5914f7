// Logarithm and exponential in double, of arguments known to some 100 bits: the fast
// path whose stated error bound tells when WideFloat must decide.
//
// Plain arithmetic and no libm, so the bits are the same on every machine.
#ifndef POSENC_LIB_NUMERIC_LOG_EXP_H_
#define POSENC_LIB_NUMERIC_LOG_EXP_H_

#include <cmath>

#include "lib/numeric/double_double.h"

namespace posenc {

// |result - exact| <= bound * |exact| of each function below; the worst seen are
// 2^-51.2, 2^-52.8 and 2^-51.1.
inline constexpr double kLogError = 0x1p-50;
inline constexpr double kExpError = 0x1p-50;
inline constexpr double kExpMinusOneError = 0x1p-49;

// Arguments of the exponentials.
inline constexpr double kMaxExpArgument = 700;

namespace log_exp_internal {

// ln 2 as a number of 32 bits and the rest, so that a multiple of the first is exact.
inline constexpr double kLn2High = 0x1.62e42feep-1;
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

// 1/n!.
constexpr double InverseFactorial(int n) {
  double factorial = 1;
  for (int i = 2; i <= n; ++i) factorial *= i;  // exact up to 18!
  return 1 / factorial;
}

// (e^r - 1 - r) / r^2 for |r| <= ln(2)/2: the first term left out is below 2^-60.
inline double ExpSeries(double r) {
  double sum = InverseFactorial(15);
  for (int n = 14; n >= 2; --n) sum = InverseFactorial(n) + r * sum;
  return sum;
}

// x = power * ln 2 + r + tail, |r| <= ln(2)/2.
struct ExpArgument {
  int power;
  double r;
  double tail;
};

inline ExpArgument Reduce(DoubleDouble x) {
  constexpr double kInverseLn2 = 0x1.71547652b82fep0;
  constexpr double kRound = 0x1.8p52;
  const double n = (x.hi * kInverseLn2 + kRound) - kRound;
  const DoubleDouble r = TwoSum(x.hi - n * kLn2High, x.lo - n * kLn2Low);
  return {static_cast<int>(n), r.hi, r.lo};
}

}  // namespace log_exp_internal

// ln x. REQUIRES: x > 0, finite and no subnormal.
inline double LogOf(DoubleDouble x) {
  using namespace log_exp_internal;
  int power;
  double m = std::frexp(x.hi, &power);  // [1/2, 1)
  if (m < 0x1.6a09e667f3bcdp-1) {       // sqrt(1/2): then ln m is small where power is 0
    m *= 2;
    --power;
  }
  const double tail = std::ldexp(x.lo, -power);
  // ln m = 2 atanh(s) = 2s + 2s^3/3 + ..., |s| <= 0.1716; the first term left out is
  // below 2^-65 of the sum.
  const double s = ((m - 1) + tail) / ((m + 1) + tail);
  const double z = s * s;
  double series = 2.0 / 23;
  for (int k = 21; k >= 3; k -= 2) series = 2.0 / k + z * series;
  const double log_m = 2 * s + s * (z * series);
  return power * kLn2High + (power * kLn2Low + log_m);
}

// ln(1 + u). REQUIRES: u >= 0, below 2^1000.
inline double LogOfOnePlus(DoubleDouble u) { return LogOf(DoubleDouble{1, 0} + u); }

// e^x. REQUIRES: |x| <= kMaxExpArgument.
inline double ExpOf(DoubleDouble x) {
  using namespace log_exp_internal;
  const auto [power, r, tail] = Reduce(x);
  const double fraction = r + (r * r * ExpSeries(r) + tail);
  return std::ldexp(1 + fraction, power);
}

// ExpOf(exponent * LogOf(base)) has this relative error, where `argument` is that
// product: the logarithm's becomes absolute. Four times the bound, for the roundings
// of the product and of whoever tests with it.
inline double PowError(double argument) {
  return 4 * (kLogError * std::fabs(argument) + kExpError);
}

// e^x - 1. REQUIRES: |x| <= kMaxExpArgument.
inline double ExpMinusOneOf(DoubleDouble x) {
  using namespace log_exp_internal;
  if (std::fabs(x.hi) > 0.34) return ExpOf(x) - 1;
  return x.hi + (x.hi * x.hi * ExpSeries(x.hi) + x.lo);
}

}  // namespace posenc

#endif  // POSENC_LIB_NUMERIC_LOG_EXP_H_
