// Correct rounding of the elementary functions, against MPFR and at ties.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "lib/numeric/elementary.h"
#include "tests/support/reference.h"

namespace posenc {
namespace {

using testing::Real;

constexpr int kSamples = 3000;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Positive finite floats, all exponents alike.
float AnyFloat(std::mt19937_64& engine) {
  const auto bits = static_cast<uint32_t>(engine() % 0x7f800000);
  return std::bit_cast<float>(bits == 0 ? 1u : bits);
}

TEST(ElementaryTest, PowFIsCorrectlyRounded) {
  std::mt19937_64 engine(1);
  std::uniform_real_distribution<float> exponent(-1.0f, 1.0f);
  for (int i = 0; i < kSamples; ++i) {
    const float base = AnyFloat(engine);
    const float y = exponent(engine);
    EXPECT_EQ(PowF(base, y), Pow(Real(base), Real(y)).ToFloat()) << base << "^" << y;
    // What inverse frequencies ask for.
    const auto theta = static_cast<float>(1e4 * (i + 1));
    const float e = static_cast<float>(2 * (i % 64)) / 128.0f;
    EXPECT_EQ(PowF(theta, e), Pow(Real(theta), Real(e)).ToFloat()) << theta << "^" << e;
  }
}

TEST(ElementaryTest, ExactPowersAndTiesRoundToEven) {
  EXPECT_EQ(PowF(10.0f, 2.0f), 100.0f);
  EXPECT_EQ(PowF(1e4f, 0.25f), 10.0f);
  EXPECT_EQ(PowF(0.5f, 140.0f), 0x1p-140f);
  EXPECT_EQ(PowF(7.0f, 0.0f), 1.0f);
  EXPECT_EQ(PowF(1.0f, 0.3f), 1.0f);
  // Odd 13-bit numbers whose square has 25 bits are ties of float32.
  int ties = 0;
  for (uint32_t n = 4097; n < 5793; n += 2) {
    const uint32_t square = n * n;
    ties += std::bit_width(square) == 25 ? 1 : 0;
    EXPECT_EQ(PowF(static_cast<float>(n), 2.0f), static_cast<float>(square)) << n;
  }
  EXPECT_EQ(ties, 848);
  // The same for float64: 27-bit numbers.
  for (uint64_t n = (1u << 26) + 1; n < (1u << 26) + 400; n += 2) {
    EXPECT_EQ(Pow(static_cast<double>(n), 2.0), static_cast<double>(n * n)) << n;
  }
}

TEST(ElementaryTest, PowersLeaveTheRangeQuietly) {
  EXPECT_EQ(PowF(2.0f, 128.0f), kInfinity);
  EXPECT_EQ(PowF(3e38f, 3e38f), kInfinity);
  EXPECT_EQ(PowF(3e38f, -3e38f), 0.0f);
  EXPECT_EQ(PowF(2.0f, -149.0f), 0x1p-149f);
  EXPECT_EQ(PowF(2.0f, -150.0f), 0.0f);
  EXPECT_EQ(Pow(2.0, -1074.0), 0x1p-1074);
  EXPECT_EQ(Exp(-1e308), 0.0);
  EXPECT_EQ(Exp(1e308), std::numeric_limits<double>::infinity());
}

TEST(ElementaryTest, ExpFIsCorrectlyRounded) {
  std::mt19937_64 engine(2);
  for (int i = 0; i < kSamples; ++i) {
    const float x = (i % 2 == 0 ? 1.0f : -1.0f) * AnyFloat(engine);
    if (std::fabs(x) > 200.0f) continue;
    EXPECT_EQ(ExpF(x), Exp(Real(x)).ToFloat()) << x;
  }
  EXPECT_EQ(ExpF(0.0f), 1.0f);
  EXPECT_EQ(ExpF(-103.5f), Exp(Real(-103.5)).ToFloat());  // subnormal
}

TEST(ElementaryTest, LogsAreCorrectlyRounded) {
  std::mt19937_64 engine(3);
  for (int i = 0; i < kSamples; ++i) {
    const float x = AnyFloat(engine);
    EXPECT_EQ(LogF(x), Log(Real(x)).ToFloat()) << x;
    EXPECT_EQ(Log(static_cast<double>(x)), Log(Real(x)).ToDouble()) << x;
    const float near = 1.0f + static_cast<float>(i - kSamples / 2) * 0x1p-24f;
    EXPECT_EQ(LogF(near), Log(Real(near)).ToFloat()) << near;
  }
}

TEST(ElementaryTest, SinFAndCosFAreCorrectlyRoundedForAllMagnitudes) {
  std::mt19937_64 engine(4);
  for (int i = 0; i < kSamples; ++i) {
    const float x = (i % 2 == 0 ? 1.0f : -1.0f) * AnyFloat(engine);
    EXPECT_EQ(SinF(x), Sin(Real(x)).ToFloat()) << x;
    EXPECT_EQ(CosF(x), Cos(Real(x)).ToFloat()) << x;
  }
  // The float32 nearest to a multiple of pi/2 (Kahan): 2^-30.7 away.
  for (const float x : {0x1.6ac5b2p+86f, 16367173.0f * 0x1p+72f, 0x1.921fb6p0f, 0x1.921fb4p1f}) {
    EXPECT_EQ(SinF(x), Sin(Real(x)).ToFloat()) << x;
    EXPECT_EQ(CosF(x), Cos(Real(x)).ToFloat()) << x;
  }
  EXPECT_EQ(CosF(0.0f), 1.0f);
  EXPECT_TRUE(std::signbit(SinF(-0.0f)));
}

TEST(ElementaryTest, DoublePowAndExpAreCorrectlyRounded) {
  std::mt19937_64 engine(5);
  std::uniform_real_distribution<double> exponent(-20.0, 20.0);
  for (int i = 0; i < kSamples; ++i) {
    const auto base = static_cast<double>(AnyFloat(engine));
    const double y = exponent(engine);
    EXPECT_EQ(Pow(base, y), Pow(Real(base), Real(y)).ToDouble()) << base << "^" << y;
    EXPECT_EQ(Exp(y * 30), Exp(Real(y * 30)).ToDouble()) << y * 30;
  }
}

}  // namespace
}  // namespace posenc
