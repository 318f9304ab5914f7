// WideFloat against MPFR: the stated error bounds, and rounding to every dtype.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/numeric/wide_float.h"
#include "lib/numeric/wide_functions.h"
#include "tests/support/reference.h"

namespace posenc {
namespace {

using ::testing::Le;
using testing::Real;
using testing::RelativeError;

constexpr int kSamples = 2000;

// Random significands of 256 bits and exponents in [-max_exponent, max_exponent].
class WideSource {
 public:
  WideFloat Next(int64_t max_exponent, bool positive = false) {
    const WideFloat::Limbs limbs = {engine_(), engine_(), engine_(),
                                    engine_() | (uint64_t{1} << 63)};
    std::uniform_int_distribution<int64_t> exponent(-max_exponent, max_exponent);
    return WideFloat(!positive && (engine_() & 1) != 0, exponent(engine_), limbs);
  }
  double NextDouble() { return std::bit_cast<double>(engine_()); }

 private:
  std::mt19937_64 engine_{20260819};
};

TEST(WideFloatTest, HoldsEveryDoubleExactly) {
  WideSource source;
  std::vector<double> values = {1.0,       -1.0, 0.5, 3.0, 0x1p-1074, -0x1.fffffffffffffp1023,
                                0x1p52 + 1};
  for (int i = 0; i < kSamples; ++i) values.push_back(source.NextDouble());
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(WideFloat::From(value).ToDouble(), value);
    EXPECT_EQ(RelativeError(Real(WideFloat::From(value)), Real(value)), 0.0) << value;
  }
  EXPECT_TRUE(WideFloat::From(0.0).is_zero());
}

TEST(WideFloatTest, HoldsEveryInt64Exactly) {
  for (const int64_t value :
       {int64_t{0}, int64_t{1}, int64_t{-7}, (int64_t{1} << 53) + 1,
        std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    EXPECT_EQ(RelativeError(Real(WideFloat::FromInt(value)), Real::FromInt(value)), 0.0) << value;
  }
}

TEST(WideFloatTest, ArithmeticKeepsItsBound) {
  WideSource source;
  double worst = 0;
  for (int i = 0; i < kSamples; ++i) {
    // Small exponents make additions meet and cancel, large ones leave bits behind.
    const int64_t spread = i % 2 == 0 ? 2 : 300;
    const WideFloat a = source.Next(spread);
    const WideFloat b = source.Next(spread);
    const Real x(a);
    const Real y(b);
    worst = std::max(worst, RelativeError(Real(a + b), x + y));
    worst = std::max(worst, RelativeError(Real(a - b), x - y));
    worst = std::max(worst, RelativeError(Real(a * b), x * y));
    worst = std::max(worst, RelativeError(Real(a / b), x / y));
    worst = std::max(worst, RelativeError(Real(Sqrt(a.Abs())), Sqrt(Abs(x))));
    const uint64_t divisor = b.limbs()[0] >> (i % 64) | 1;
    worst = std::max(
        worst,
        RelativeError(Real(a.DividedBy(divisor)),
                      x / Real(WideFloat(false, 64, {0, 0, 0, divisor << std::countl_zero(divisor)})
                                   .TimesPowerOf2(-std::countl_zero(divisor)))));
  }
  RecordProperty("worst_log2", std::to_string(std::log2(worst)));
  EXPECT_THAT(worst, Le(kWideOpError));
}

TEST(WideFloatTest, SubtractionOfNeighboursIsExact) {
  const WideFloat one = WideFloat::From(1.0);
  const WideFloat above = one + one.TimesPowerOf2(-255);
  EXPECT_TRUE(above - one == one.TimesPowerOf2(-255));
  const WideFloat below = one - one.TimesPowerOf2(-256);
  EXPECT_TRUE(one - below == one.TimesPowerOf2(-256));
  EXPECT_TRUE((one - one).is_zero());
}

TEST(WideFloatTest, FloorAndFractionAgreeWithTheNumber) {
  for (const double value :
       {0.0, 0.25, -0.25, 1.0, -1.0, 1.5, -1.5, 4503599627370497.5, -4e15 - 0.5}) {
    const WideFloat wide = WideFloat::From(value);
    EXPECT_EQ(static_cast<double>(wide.Floor()), std::floor(value)) << value;
    EXPECT_EQ(wide.Fraction().ToDouble(), value - std::trunc(value)) << value;
  }
  EXPECT_TRUE(WideFloat::From(0x1p300).Fraction().is_zero());
}

TEST(WideFloatTest, RoundsToEveryDtypeAsMpfrDoes) {
  WideSource source;
  // The ranges of the four types and beyond, with the subnormals of each.
  for (const int64_t max_exponent : {2, 20, 28, 140, 160, 1080}) {
    for (int i = 0; i < kSamples; ++i) {
      const WideFloat wide = source.Next(max_exponent);
      const Real real(wide);
      EXPECT_EQ(wide.ToDouble(), real.ToDouble());
      EXPECT_EQ(wide.ToFloat(), real.ToFloat());
      EXPECT_EQ(wide.ToF16(), real.ToF16());
      EXPECT_EQ(wide.ToBf16(), real.ToBf16());
    }
  }
}

TEST(WideFloatTest, TiesGoToEvenAndTheirNeighboursDoNot) {
  const WideFloat one = WideFloat::From(1.0);
  const WideFloat tie = one + one.TimesPowerOf2(-53);
  const WideFloat odd_tie = one + one.TimesPowerOf2(-52) + one.TimesPowerOf2(-53);
  const WideFloat nudge = one.TimesPowerOf2(-200);
  EXPECT_EQ(tie.ToDouble(), 1.0);
  EXPECT_EQ((tie + nudge).ToDouble(), 1.0 + 0x1p-52);
  EXPECT_EQ(odd_tie.ToDouble(), 1.0 + 0x1p-51);
  EXPECT_EQ((odd_tie - nudge).ToDouble(), 1.0 + 0x1p-52);
  // Within 2^-224 a number is taken for the tie: that is what makes pow exact.
  EXPECT_EQ((tie + one.TimesPowerOf2(-230)).ToDouble(), 1.0);
}

TEST(WideFloatTest, TheEdgesOfDouble) {
  const WideFloat one = WideFloat::From(1.0);
  EXPECT_EQ(one.TimesPowerOf2(-1074).ToDouble(), 0x1p-1074);
  EXPECT_EQ(one.TimesPowerOf2(-1075).ToDouble(), 0.0);  // a tie with zero
  EXPECT_EQ((one + one.TimesPowerOf2(-100)).TimesPowerOf2(-1075).ToDouble(), 0x1p-1074);
  EXPECT_EQ(one.TimesPowerOf2(-1076).ToDouble(), 0.0);
  EXPECT_EQ(one.TimesPowerOf2(1024).ToDouble(), std::numeric_limits<double>::infinity());
  EXPECT_EQ((-one).TimesPowerOf2(5000).ToDouble(), -std::numeric_limits<double>::infinity());
}

TEST(WideFunctionsTest, ConstantsAreRightToTheLastBit) {
  EXPECT_THAT(RelativeError(Real(kWidePi), Real::Pi()), Le(0x1p-255));
  EXPECT_THAT(RelativeError(Real(kWideLn2), Log(Real(2.0))), Le(0x1p-255));
  EXPECT_THAT(RelativeError(Real(kWideInverseTwoPi), Real(0.5) / Real::Pi()), Le(0x1p-255));
}

TEST(WideFunctionsTest, ExpKeepsItsBound) {
  WideSource source;
  double worst = 0;
  for (int i = 0; i < kSamples; ++i) {
    const WideFloat x = source.Next(i % 2 == 0 ? 12 : 260);
    if (x.exponent() > 12) continue;
    worst = std::max(worst, RelativeError(Real(Exp(x)), Exp(Real(x))));
  }
  RecordProperty("worst_log2", std::to_string(std::log2(worst)));
  EXPECT_THAT(worst, Le(kWideFunctionError));
}

TEST(WideFunctionsTest, LogKeepsItsBoundAlsoNextToOne) {
  WideSource source;
  const WideFloat one = WideFloat::From(1.0);
  double worst = 0;
  for (int i = 0; i < kSamples; ++i) {
    const WideFloat x = source.Next(i % 2 == 0 ? 1 : 5000, /*positive=*/true);
    worst = std::max(worst, RelativeError(Real(Log(x)), Log(Real(x))));
    const WideFloat near = one + source.Next(0).TimesPowerOf2(-1 - i % 250);
    worst = std::max(worst, RelativeError(Real(Log(near)), Log(Real(near))));
  }
  EXPECT_TRUE(Log(one).is_zero());
  RecordProperty("worst_log2", std::to_string(std::log2(worst)));
  EXPECT_THAT(worst, Le(kWideFunctionError));
}

TEST(WideFunctionsTest, PowKeepsItsBound) {
  WideSource source;
  double worst = 0;
  for (int i = 0; i < kSamples; ++i) {
    const WideFloat base = source.Next(60, /*positive=*/true);
    const WideFloat exponent = source.Next(5);
    worst =
        std::max(worst, RelativeError(Real(Pow(base, exponent)), Pow(Real(base), Real(exponent))));
  }
  RecordProperty("worst_log2", std::to_string(std::log2(worst)));
  EXPECT_THAT(worst, Le(kWideFunctionError));
}

TEST(WideFunctionsTest, SinCosOfTurnsKeepsItsBoundAlsoNextToZeros) {
  WideSource source;
  const Real two_pi = Real(2.0) * Real::Pi();
  double worst = 0;
  const auto check = [&](const WideFloat& turns) {
    const WideSinCos got = SinCosOfTurns(turns);
    const Real angle = two_pi * Real(turns);
    worst = std::max(worst, RelativeError(Real(got.sin), Sin(angle)));
    worst = std::max(worst, RelativeError(Real(got.cos), Cos(angle)));
  };
  for (int i = 0; i < kSamples; ++i) {
    check(source.Next(40));
    // A quarter turn and a little.
    const WideFloat quarter = WideFloat::FromInt(i - kSamples / 2).TimesPowerOf2(-2);
    check(quarter + WideFloat::From(1.0).TimesPowerOf2(-i % 200 - 3));
  }
  RecordProperty("worst_log2", std::to_string(std::log2(worst)));
  EXPECT_THAT(worst, Le(kWideFunctionError));
}

TEST(WideFunctionsTest, QuarterTurnsAreExact) {
  for (int quarter = -8; quarter <= 8; ++quarter) {
    const WideSinCos got = SinCosOfTurns(WideFloat::FromInt(quarter).TimesPowerOf2(-2));
    constexpr std::array<double, 4> kSin = {0, 1, 0, -1};
    EXPECT_EQ(got.sin.ToDouble(), kSin[static_cast<size_t>(quarter & 3)]) << quarter;
    EXPECT_EQ(got.cos.ToDouble(), kSin[static_cast<size_t>((quarter + 1) & 3)]) << quarter;
  }
}

TEST(WideFunctionsTest, SinCosOfRadiansKeepsItsAbsoluteBound) {
  WideSource source;
  for (int i = 0; i < kSamples; ++i) {
    const WideFloat radians = source.Next(128);
    const WideSinCos got = SinCos(radians);
    const double bound = std::fabs(radians.ToDouble()) * 0x1p-250 + kWideFunctionError;
    EXPECT_THAT(Abs(Real(got.sin) - Sin(Real(radians))).ToDouble(), Le(bound));
    EXPECT_THAT(Abs(Real(got.cos) - Cos(Real(radians))).ToDouble(), Le(bound));
  }
}

}  // namespace
}  // namespace posenc
