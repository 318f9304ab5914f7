// The fast logarithm and exponential against WideFloat: their bounds, and the slack.
#include <cmath>
#include <random>

#include "gtest/gtest.h"
#include "lib/numeric/log_exp.h"
#include "lib/numeric/wide_functions.h"
#include "tests/support/reference.h"

namespace posenc::testing {
namespace {

constexpr int kSamples = 20000;

WideFloat Wide(DoubleDouble x) { return WideFloat::From(x.hi) + WideFloat::From(x.lo); }

double ErrorOf(double value, const WideFloat& exact) {
  const WideFloat difference = WideFloat::From(value) - exact;
  return difference.is_zero() ? 0 : (difference / exact).Abs().ToDouble();
}

class LogExpTest : public ::testing::Test {
 protected:
  // Log-uniform in [2^min, 2^max), with a low half.
  DoubleDouble Sample(double min, double max) {
    std::uniform_real_distribution<double> exponent(min, max);
    std::uniform_real_distribution<double> half(-0.5, 0.5);
    const double hi = std::exp2(exponent(random_));
    return {hi, half(random_) * (std::nextafter(hi, 2 * hi) - hi)};
  }

  std::mt19937_64 random_{1};
};

TEST_F(LogExpTest, LogIsWithinItsBound) {
  double worst = 0;
  for (int i = 0; i < kSamples; ++i) {
    const double span = i % 3 == 0 ? 900 : i % 3 == 1 ? 1 : 0x1p-20;
    const DoubleDouble x = Sample(-span, span);
    worst = std::fmax(worst, ErrorOf(LogOf(x), Log(Wide(x))));
  }
  EXPECT_LE(worst, kLogError);
  RecordProperty("worst_log2", std::to_string(std::log2(worst)));
}

TEST_F(LogExpTest, LogOfOnePlusKeepsSmallNumbers) {
  for (int i = 0; i < kSamples; ++i) {
    const DoubleDouble u = Sample(-60, 60);
    ASSERT_LE(ErrorOf(LogOfOnePlus(u), Log(WideFloat::FromInt(1) + Wide(u))), kLogError) << u.hi;
  }
  EXPECT_EQ(LogOfOnePlus({0, 0}), 0);
}

TEST_F(LogExpTest, ExpIsWithinItsBound) {
  double worst = 0;
  for (int i = 0; i < kSamples; ++i) {
    DoubleDouble x = Sample(-40, std::log2(kMaxExpArgument));
    if (i % 2 == 0) x = -x;
    worst = std::fmax(worst, ErrorOf(ExpOf(x), Exp(Wide(x))));
  }
  EXPECT_LE(worst, kExpError);
  RecordProperty("worst_log2", std::to_string(std::log2(worst)));
}

TEST_F(LogExpTest, PowersAreWithinTheirBound) {
  double worst = 0;  // in units of the bound
  for (int i = 0; i < kSamples; ++i) {
    const double base = Sample(i % 2 == 0 ? -100 : -0.1, i % 2 == 0 ? 100 : 0.1).hi;
    const double exponent = Sample(-20, 0).hi;
    const double argument = exponent * LogOf({base, 0});
    const WideFloat exact = Pow(WideFloat::From(base), WideFloat::From(exponent));
    worst = std::fmax(worst, ErrorOf(ExpOf({argument, 0}), exact) / PowError(argument));
  }
  EXPECT_LE(worst, 0.5);  // the bound is twice what is stated of its parts
  RecordProperty("worst", std::to_string(worst));
}

TEST_F(LogExpTest, ExpMinusOneIsWithinItsBound) {
  double worst = 0;
  for (int i = 0; i < kSamples; ++i) {
    DoubleDouble x = Sample(-60, std::log2(kMaxExpArgument));
    if (i % 2 == 0) x = -x;
    worst = std::fmax(worst, ErrorOf(ExpMinusOneOf(x), Exp(Wide(x)) - WideFloat::FromInt(1)));
  }
  EXPECT_LE(worst, kExpMinusOneError);
  RecordProperty("worst_log2", std::to_string(std::log2(worst)));
}

TEST_F(LogExpTest, ExactResultsAreExact) {
  EXPECT_EQ(LogOf({1, 0}), 0);
  EXPECT_EQ(ExpOf({0, 0}), 1);
  EXPECT_EQ(ExpMinusOneOf({0, 0}), 0);
}

}  // namespace
}  // namespace posenc::testing
