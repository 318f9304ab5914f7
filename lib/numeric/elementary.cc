#include "lib/numeric/elementary.h"

#include <cmath>

#include "lib/numeric/dtype.h"
#include "lib/numeric/log_exp.h"
#include "lib/numeric/wide_float.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

// |x| from 2^11 on is far outside what float64 holds as e^x: any number out
// there rounds to the same infinity or zero.
constexpr int64_t kExpArgumentBits = 11;

WideFloat ExpClamped(const WideFloat& x) {
  if (x.exponent() <= kExpArgumentBits || x.is_zero()) return Exp(x);
  const WideFloat limit = WideFloat::FromInt(int64_t{1} << kExpArgumentBits);
  return Exp(x.negative() ? -limit : limit);
}

WideFloat WidePow(double base, double exponent) {
  return ExpClamped(WideFloat::From(exponent) * Log(WideFloat::From(base)));
}

// Arguments of e^x whose results are normal float32.
constexpr double kMaxQuickArgument = 80;

}  // namespace

// A double decides nearly always, in nanoseconds.
float PowF(float base, float exponent) {
  const double argument = exponent * LogOf({static_cast<double>(base), 0});
  if (std::fabs(argument) <= kMaxQuickArgument) {
    const double near = ExpOf({argument, 0});
    float result;
    if (RoundIfSafe(near, PowError(argument) * near, &result)) return result;
  }
  return WidePow(base, exponent).ToFloat();
}

float ExpF(float x) {
  if (std::fabs(x) <= kMaxQuickArgument) {
    const double near = ExpOf({static_cast<double>(x), 0});
    float result;
    if (RoundIfSafe(near, 2 * kExpError * near, &result)) return result;
  }
  return ExpClamped(WideFloat::From(x)).ToFloat();
}

float LogF(float x) {
  const double near = LogOf({static_cast<double>(x), 0});
  float result;
  if (RoundIfSafe(near, 2 * kLogError * std::fabs(near), &result)) return result;
  return Log(WideFloat::From(x)).ToFloat();
}

float SinF(float radians) {
  if (radians == 0) return radians;
  return SinCos(WideFloat::From(radians)).sin.ToFloat();
}

float CosF(float radians) { return SinCos(WideFloat::From(radians)).cos.ToFloat(); }

double Pow(double base, double exponent) { return WidePow(base, exponent).ToDouble(); }

double Exp(double x) { return ExpClamped(WideFloat::From(x)).ToDouble(); }

double Log(double x) { return Log(WideFloat::From(x)).ToDouble(); }

}  // namespace posenc
