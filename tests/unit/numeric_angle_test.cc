#include <bit>
#include <cmath>
#include <random>

#include "gtest/gtest.h"
#include "lib/numeric/angle.h"
#include "lib/numeric/dtype.h"
#include "lib/numeric/elementary.h"
#include "tests/support/reference.h"

namespace posenc::testing {
namespace {

// Finite float32 angles of every magnitude, and some that are hard to reduce.
std::vector<float> HardAngles() {
  std::vector<float> angles = {0.0f, -0.0f, 1.0f, 0x1p-149f, 0x1p-126f, 0x1.921fb6p0f,
                               0x1.921fb6p1f,
                               // Nearest to multiples of pi/2 that float32 has (Muller et al.,
                               // Handbook of Floating-Point Arithmetic, section 10.3).
                               0x1.47d0fep34f, 0x1.6ac5b2p83f, 0x1.fffffep127f};
  std::mt19937 random(20240607);
  while (angles.size() < 3000) {
    const float angle = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isfinite(angle)) angles.push_back(angle);
  }
  for (int i = 0; i < 3000; ++i) {
    angles.push_back(
        std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 40) - 48));
  }
  return angles;
}

TEST(AngleTest, SinCosFIsTheSlowFunctionEverywhere) {
  for (const float angle : HardAngles()) {
    const FloatSinCos got = SinCosF(angle);
    EXPECT_EQ(std::bit_cast<uint32_t>(got.sin), std::bit_cast<uint32_t>(SinF(angle))) << angle;
    EXPECT_EQ(std::bit_cast<uint32_t>(got.cos), std::bit_cast<uint32_t>(CosF(angle))) << angle;
  }
}

template <typename Element>
void ExpectExact(double x, const ExactFrequency& frequency, const Real& angle, Element sin,
                 Element cos) {
  Element got_sin;
  Element got_cos;
  frequency.SinCos(x, &got_sin, &got_cos);
  EXPECT_EQ(got_sin, sin) << x << " " << angle.ToDouble();
  EXPECT_EQ(got_cos, cos) << x << " " << angle.ToDouble();
}

TEST(AngleTest, ExactFrequencyRoundsTheRealNumberOnceToEachType) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int i = 0; i < 1500; ++i) {
    const WideFloat radians = WideFloat::From(1 / std::fabs(uniform(random))).DividedBy(3);
    const double x = std::ldexp(uniform(random), static_cast<int>(random() % 80) - 40);
    const ExactFrequency frequency(radians);
    const Real angle = Real(x) * Real(radians);
    const Real sin = Sin(angle);
    const Real cos = Cos(angle);
    ExpectExact<float>(x, frequency, angle, sin.ToFloat(), cos.ToFloat());
    ExpectExact<double>(x, frequency, angle, sin.ToDouble(), cos.ToDouble());
    ExpectExact<F16>(x, frequency, angle, {sin.ToF16()}, {cos.ToF16()});
    ExpectExact<Bf16>(x, frequency, angle, {sin.ToBf16()}, {cos.ToBf16()});
  }
}

TEST(AngleTest, ExactFrequencyAtZeroAndAtTheSmallestCoordinates) {
  const ExactFrequency frequency(WideFloat::From(1.0));
  double sin = 1;
  double cos = 0;
  frequency.SinCos(0.0, &sin, &cos);
  EXPECT_EQ(sin, 0.0);
  EXPECT_EQ(cos, 1.0);
  for (const double x : {0x1p-1074, 0x1p-1022, 0x1p-900, 0x1p-500}) {
    frequency.SinCos(x, &sin, &cos);
    EXPECT_EQ(sin, x);  // x - x^3/6 rounds to x
    EXPECT_EQ(cos, 1.0);
  }
}

}  // namespace
}  // namespace posenc::testing
