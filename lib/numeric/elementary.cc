#include "lib/numeric/elementary.h"

#include <cmath>

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

}  // namespace

float PowF(float base, float exponent) { return WidePow(base, exponent).ToFloat(); }

float ExpF(float x) { return ExpClamped(WideFloat::From(x)).ToFloat(); }

// A double decides nearly always, in nanoseconds.
float LogF(float x) {
  const double near = LogOf({static_cast<double>(x), 0});
  const double error = 2 * kLogError * std::fabs(near);
  const auto low = static_cast<float>(near - error);
  return low == static_cast<float>(near + error) ? low : Log(WideFloat::From(x)).ToFloat();
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
