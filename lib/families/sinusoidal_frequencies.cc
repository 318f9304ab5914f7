#include "lib/families/sinusoidal_frequencies.h"

#include <algorithm>

#include "lib/numeric/elementary.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

// Frequency k is base^(-k * numerator / denominator).
struct Exponent {
  int64_t numerator;
  int64_t denominator;
};

Exponent ExponentOf(const v1::SinusoidalSpec& spec) {
  if (spec.frequency_rule() == v1::FREQUENCY_RULE_T2T) return {1, SinusoidalPairs(spec) - 1};
  return {2, spec.d_model()};
}

}  // namespace

int64_t SinusoidalPairs(const v1::SinusoidalSpec& spec) {
  return (spec.d_model() + (spec.odd_dim_rule() == v1::ODD_DIM_RULE_EXTRA_SIN_COLUMN)) / 2;
}

std::vector<float> SinusoidalFrequencies32(const v1::SinusoidalSpec& spec) {
  const Exponent exponent = ExponentOf(spec);
  const auto step =
      static_cast<float>(-Log(spec.base()) / static_cast<double>(exponent.denominator));
  std::vector<float> frequencies(static_cast<size_t>(SinusoidalPairs(spec)));
  int64_t k = 0;
  for (float& frequency : frequencies) {
    frequency = ExpF(static_cast<float>(k++ * exponent.numerator) * step);
  }
  return frequencies;
}

// A product of n ratios instead of n powers: n * 2^-252 is still far below the
// error stated, and a wide power costs a hundred products.
std::vector<WideFloat> SinusoidalFrequencies(const v1::SinusoidalSpec& spec) {
  const Exponent exponent = ExponentOf(spec);
  const WideFloat ratio = Pow(WideFloat::From(spec.base()),
                              -WideFloat::FromInt(exponent.numerator)
                                   .DividedBy(static_cast<uint64_t>(exponent.denominator)));
  std::vector<WideFloat> frequencies(static_cast<size_t>(SinusoidalPairs(spec)));
  WideFloat next = WideFloat::FromInt(1);
  for (WideFloat& frequency : frequencies) {
    frequency = next;
    next = next * ratio;
  }
  return frequencies;
}

double MaxSinusoidalFrequency(const v1::SinusoidalSpec& spec) {
  // Both rules start from 1 and end at or before 1 / base.
  return std::max(1.0, 1.0 / spec.base());
}

}  // namespace posenc
