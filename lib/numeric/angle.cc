#include "lib/numeric/angle.h"

#include <cmath>

#include "lib/numeric/dtype.h"
#include "lib/numeric/elementary.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

// Twice the bound, for the rounding of the bound itself and of value ± error.
double ErrorOf(double value, double angle_in_turns) {
  return 2 * (kSinCosError * std::fabs(value) + kReductionError * std::fabs(angle_in_turns));
}

const DoubleDouble& InverseTwoPi() {
  static const DoubleDouble inverse = DoubleDouble::From(kWideInverseTwoPi);
  return inverse;
}

}  // namespace

FloatSinCos SinCosF(float radians) {
  const auto x = static_cast<double>(radians);
  FloatSinCos result;
  if (radians == 0 || std::fabs(x) > kMaxAngle) return {SinF(radians), CosF(radians)};
  const DoubleSinCos near = SinCosOfTurns(x, InverseTwoPi());
  if (!RoundIfSafe(near.sin, ErrorOf(near.sin, x), &result.sin)) result.sin = SinF(radians);
  if (!RoundIfSafe(near.cos, ErrorOf(near.cos, x), &result.cos)) result.cos = CosF(radians);
  return result;
}

ExactFrequency::ExactFrequency(const WideFloat& radians_per_unit)
    : radians_(radians_per_unit),
      turns_(radians_per_unit * kWideInverseTwoPi),
      rate_(DoubleDouble::From(turns_)) {}

template <typename Element>
void ExactFrequency::SinCos(double x, Element* sin, Element* cos) const {
  const double turns = x * rate_.hi;
  // Below kSmallest the low halves of products, and so the bound, may underflow.
  constexpr double kSmallest = 0x1p-800;
  if (std::fabs(turns) <= kMaxAngle / 8 && (std::fabs(turns) > kSmallest || turns == 0)) {
    const DoubleSinCos near = SinCosOfTurns(x, rate_);
    const bool sin_is_safe = RoundIfSafe(near.sin, ErrorOf(near.sin, turns), sin);
    const bool cos_is_safe = RoundIfSafe(near.cos, ErrorOf(near.cos, turns), cos);
    if (sin_is_safe && cos_is_safe) return;
  }
  const WideSinCos wide = SinCosOfTurns(WideFloat::From(x) * turns_);
  *sin = RoundWideTo<Element>(wide.sin);
  *cos = RoundWideTo<Element>(wide.cos);
}

template void ExactFrequency::SinCos(double, float*, float*) const;
template void ExactFrequency::SinCos(double, double*, double*) const;
template void ExactFrequency::SinCos(double, F16*, F16*) const;
template void ExactFrequency::SinCos(double, Bf16*, Bf16*) const;

}  // namespace posenc
