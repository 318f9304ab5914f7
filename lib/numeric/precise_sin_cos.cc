#include "lib/numeric/precise_sin_cos.h"

#include <array>
#include <bit>
#include <cstdint>

#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

constexpr int64_t kSteps = 256;  // of a turn: what a step leaves is below π/256

using StepTable = std::array<PreciseSinCosValue, kSteps>;

// Sine and cosine of n/256 turns. Quarter turns are exact.
const StepTable& Steps() {
  static const StepTable table = [] {
    StepTable steps;
    for (int64_t n = 0; n < kSteps; ++n) {
      const WideSinCos wide = SinCosOfTurns(WideFloat::FromInt(n) / WideFloat::FromInt(kSteps));
      steps[static_cast<size_t>(n)] = {DoubleDouble::From(wide.sin), DoubleDouble::From(wide.cos)};
    }
    return steps;
  }();
  return table;
}

// x·rate, less its nearest step.
struct Reduced {
  DoubleDouble turns;  // in [-1/512, 1/512]
  size_t step;
};

Reduced Reduce(double x, const TripleDouble& rate) {
  const DoubleDouble high = TwoProduct(x, rate.hi);
  const DoubleDouble mid = TwoProduct(x, rate.mid);
  constexpr double kRound = 0x1.8p52;  // leaves an integer in the low bits of the sum
  const double shifted = kSteps * high.hi + kRound;
  const double rest = high.hi - (shifted - kRound) / kSteps;  // exact
  DoubleDouble turns = TwoSum(rest, high.lo);
  turns = turns + mid;
  turns = turns + DoubleDouble{x * rate.lo, 0};
  return {turns, static_cast<size_t>(std::bit_cast<uint64_t>(shifted) & (kSteps - 1))};
}

DoubleDouble InverseOf(int64_t n) {
  return DoubleDouble::From(WideFloat::From(1.0) / WideFloat::FromInt(n));
}

// Of |r| <= π/256: the terms that are below 2^-50 of the sum are summed in double.
PreciseSinCosValue SinCosOfSmall(DoubleDouble r) {
  static const DoubleDouble kThird = -InverseOf(6);
  static const DoubleDouble kFifth = InverseOf(120);
  static const DoubleDouble kFourth = InverseOf(24);
  static const DoubleDouble kSixth = -InverseOf(720);
  const DoubleDouble z = r * r;
  const double sin_tail =
      z.hi * (-1.0 / 5040 + z.hi * (1.0 / 362880 + z.hi * (-1.0 / 39916800 + z.hi / 6227020800)));
  const DoubleDouble sin_series = z * (kThird + z * (kFifth + DoubleDouble{sin_tail, 0}));
  const double cos_tail =
      z.hi *
      (1.0 / 40320 + z.hi * (-1.0 / 3628800 + z.hi * (1.0 / 479001600 - z.hi / 87178291200)));
  const DoubleDouble cos_series =
      z * (DoubleDouble{-0.5, 0} + z * (kFourth + z * (kSixth + DoubleDouble{cos_tail, 0})));
  return {r + r * sin_series, DoubleDouble{1, 0} + cos_series};
}

}  // namespace

PreciseSinCosValue PreciseSinCosOfTurns(double x, const TripleDouble& rate) {
  static const DoubleDouble kTwoPi = DoubleDouble::From(kWidePi.TimesPowerOf2(1));
  const Reduced reduced = Reduce(x, rate);
  const PreciseSinCosValue rest = SinCosOfSmall(reduced.turns * kTwoPi);
  const PreciseSinCosValue& step = Steps()[reduced.step];
  return {step.sin * rest.cos + step.cos * rest.sin, step.cos * rest.cos + -(step.sin * rest.sin)};
}

}  // namespace posenc
