#include "lib/families/sinusoidal_frequencies.h"

#include <algorithm>
#include <cstdint>

#include "lib/families/sinusoidal_spec.h"
#include "lib/families/store.h"
#include "lib/numeric/elementary.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

// Frequency k is factor * base^(-k * step / denominator).
struct Ladder {
  double factor = 1;
  double base = 1;
  int64_t step = 1;
  double denominator = 1;
};

Ladder LadderOf(const v1::SinusoidalSpec& spec) {
  const int64_t pairs = SinusoidalPairs(spec);
  switch (spec.frequency_rule()) {
    case v1::FREQUENCY_RULE_T2T: {
      // One frequency only with the guard: its exponent is 0.
      const double min = MinTimescaleOf(spec);
      const auto last = static_cast<double>(std::max<int64_t>(pairs - 1, 1));
      return {.factor = min, .base = spec.base() / min, .denominator = last};
    }
    case v1::FREQUENCY_RULE_SHIFT:
      return {.base = spec.base(),
              .denominator = static_cast<double>(pairs) - spec.frequency_shift()};
    default:  // THETA
      return {.base = spec.base(), .step = 2, .denominator = static_cast<double>(spec.d_model())};
  }
}

// The same with the quotient of t2t's base unrounded.
WideFloat WideBase(const v1::SinusoidalSpec& spec) {
  return WideFloat::From(spec.base()) / WideFloat::From(MinTimescaleOf(spec));
}

// A float32 operation's result, rounded on to a 16-bit dtype where one is computed in.
class Rounder {
 public:
  explicit Rounder(v1::ComputeDType dtype) : dtype_(dtype) {}
  float operator()(float value) const { return RoundToComputeDType(dtype_, value); }

 private:
  v1::ComputeDType dtype_;
};

float Evaluate(v1::FrequencyExpression expression, const Ladder& ladder, int64_t k,
               const Rounder& round) {
  const float j = round(static_cast<float>(k * ladder.step));
  switch (expression) {
    case v1::FREQUENCY_EXPRESSION_EXP_QUOTIENT: {
      const auto log_base = static_cast<float>(-Log(ladder.base));
      const float product = round(log_base * j);
      return round(ExpF(round(product / static_cast<float>(ladder.denominator))));
    }
    case v1::FREQUENCY_EXPRESSION_POW_RECIPROCAL: {
      const float exponent = round(j / static_cast<float>(ladder.denominator));
      return round(1.0f / round(PowF(static_cast<float>(ladder.base), exponent)));
    }
    case v1::FREQUENCY_EXPRESSION_POW: {
      const float exponent = round(j / static_cast<float>(ladder.denominator));
      return round(PowF(static_cast<float>(ladder.base), -exponent));
    }
    case v1::FREQUENCY_EXPRESSION_EXP_LINSPACE: {
      const auto log_base = static_cast<float>(Log(ladder.base));
      const float from_end = round(1.0f - round(j / static_cast<float>(ladder.denominator)));
      return round(ExpF(round(round(from_end * log_base) - log_base)));
    }
    default: {  // EXP_PRODUCT
      const auto factor = static_cast<float>(-Log(ladder.base) / ladder.denominator);
      return round(ExpF(round(j * factor)));
    }
  }
}

}  // namespace

std::vector<float> SinusoidalFrequencies32(const v1::SinusoidalSpec& spec) {
  const Rounder round(ComputeDTypeOf(spec));
  std::vector<float> frequencies;
  frequencies.reserve(static_cast<size_t>(SinusoidalPairs(spec)));
  if (spec.frequency_rule() == v1::FREQUENCY_RULE_GIVEN) {
    for (const double frequency : spec.frequencies()) {
      frequencies.push_back(round(static_cast<float>(frequency)));
    }
    return frequencies;
  }
  const v1::FrequencyExpression expression = FrequencyExpressionOf(spec);
  if (expression == v1::FREQUENCY_EXPRESSION_ROUNDED) {
    for (const WideFloat& frequency : SinusoidalFrequencies(spec)) {
      frequencies.push_back(round(frequency.ToFloat()));
    }
    return frequencies;
  }
  const Ladder ladder = LadderOf(spec);
  const auto factor = static_cast<float>(ladder.factor);
  for (int64_t k = 0; k < SinusoidalPairs(spec); ++k) {
    const float frequency = Evaluate(expression, ladder, k, round);
    frequencies.push_back(factor == 1 ? frequency : round(factor * frequency));
  }
  return frequencies;
}

// A product of n ratios instead of n powers: n * 2^-252 is still far below the
// error stated, and a wide power costs a hundred products.
std::vector<WideFloat> SinusoidalFrequencies(const v1::SinusoidalSpec& spec) {
  std::vector<WideFloat> frequencies;
  frequencies.reserve(static_cast<size_t>(SinusoidalPairs(spec)));
  if (spec.frequency_rule() == v1::FREQUENCY_RULE_GIVEN) {
    for (const double frequency : spec.frequencies()) {
      frequencies.push_back(WideFloat::From(frequency));
    }
    return frequencies;
  }
  const Ladder ladder = LadderOf(spec);
  const WideFloat exponent = -WideFloat::FromInt(ladder.step) / WideFloat::From(ladder.denominator);
  const WideFloat ratio = Pow(WideBase(spec), exponent);
  WideFloat next = WideFloat::From(ladder.factor);
  for (int64_t k = 0; k < SinusoidalPairs(spec); ++k) {
    frequencies.push_back(next);
    next = next * ratio;
  }
  return frequencies;
}

FrequencyRange SinusoidalFrequencyRange(const v1::SinusoidalSpec& spec) {
  const Ladder ladder = LadderOf(spec);
  const auto last = static_cast<double>((SinusoidalPairs(spec) - 1) * ladder.step);
  const double end = ladder.factor * Pow(ladder.base, -last / ladder.denominator);
  return {.min = std::min(ladder.factor, end), .max = std::max(ladder.factor, end)};
}

}  // namespace posenc
