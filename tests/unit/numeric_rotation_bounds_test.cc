// The error bounds that let the vector code of Rotation round without looking further:
// its arithmetic in scalar code, against MPFR.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/numeric/elementary.h"
#include "lib/numeric/rotation_kernel.h"
#include "lib/numeric/sin_cos.h"
#include "lib/numeric/wide_functions.h"
#include "tests/support/reference.h"

namespace posenc {
namespace {

using ::testing::Gt;
using ::testing::Le;
using testing::Real;

// As the kernel multiplies.
DoubleSinCos Product(const DoubleSinCos& a, const DoubleSinCos& b) {
  return {.sin = std::fma(a.cos, b.sin, a.sin * b.cos),
          .cos = std::fma(-a.sin, b.sin, a.cos * b.cos)};
}

TEST(RotationKernelBoundsTest, TwoComplexMultiplicationsKeepTheirBound) {
  double worst = 0;
  double worst_relative = 0;  // in the first eighth of a turn
  for (int i = 0; i < 64; ++i) {
    const WideFloat turns =
        Pow(WideFloat::From(5e5), WideFloat::From(-i / 64.0)) * kWideInverseTwoPi;
    const DoubleDouble rate = DoubleDouble::From(turns);
    const auto at = [&](int64_t position) {
      return SinCosOfTurns(static_cast<double>(position), rate);
    };
    for (const int64_t base : {0, 512, 4096, 131072 - 512, 2147483136}) {
      for (int64_t coarse = 0; coarse < 512; coarse += 96) {
        const DoubleSinCos part = Product(at(base), at(coarse));
        for (int64_t fine = 0; fine < 32; fine += 5) {
          const DoubleSinCos got = Product(part, at(fine));
          const int64_t position = base + coarse + fine;
          const Real angle = Real(2.0) * Real::Pi() * Real(turns) * Real::FromInt(position);
          const double cos_error = Abs(Real(got.cos) - Cos(angle)).ToDouble();
          const double sin_error = Abs(Real(got.sin) - Sin(angle)).ToDouble();
          worst = std::max({worst, cos_error, sin_error});
          if (position == 0 || static_cast<double>(base + 512) * rate.hi >= 0.125) continue;
          worst_relative = std::max({worst_relative, cos_error / got.cos, sin_error / got.sin});
        }
      }
    }
  }
  RecordProperty("worst_log2", std::to_string(std::log2(worst)));
  RecordProperty("worst_relative_log2", std::to_string(std::log2(worst_relative)));
  EXPECT_THAT(worst, Le(RotatedError(/*exact=*/true)));
  EXPECT_THAT(worst_relative, Le(RotatedError(/*exact=*/true)));
  EXPECT_THAT(worst_relative, Gt(0.0));
}

TEST(RotationKernelBoundsTest, RoundingMovesARotatedAngleByLittle) {
  // Half a unit in the last place of the largest angle of each series, and the first
  // terms that it leaves out.
  constexpr double kQuintic = kMaxRotatedAngle * 0x1p-25;
  EXPECT_THAT(std::pow(kQuintic, 6) / 720, Le(0x1p-57));
  EXPECT_THAT(std::pow(kQuintic, 7) / 5040, Le(0x1p-57));
  constexpr double kCubic = kMaxCubicAngle * 0x1p-25;
  EXPECT_THAT(std::pow(kCubic, 4) / 24, Le(0x1p-52));
  EXPECT_THAT(std::pow(kCubic, 5) / 120, Le(0x1p-57));
  constexpr double kQuadratic = kMaxQuadraticAngle * 0x1p-25;
  EXPECT_THAT(std::pow(kQuadratic, 3) / 6, Le(0x1p-53));
  // In float32: a term less each.
  EXPECT_THAT(std::pow(kQuintic, 4) / 24, Le(0x1p-36));
  EXPECT_THAT(std::pow(kCubic, 3) / 6, Le(0x1p-38));
  EXPECT_THAT(std::pow(kQuadratic, 2) / 2, Le(0x1p-35));
}

// The float32 rotation of rotation_bf16-inl.h, FLOAT32's longest series included.
TEST(RotationKernelBoundsTest, RotationInFloatKeepsItsBound) {
  double worst = 0;
  double worst_relative = 0;
  for (int i = 0; i < 64; ++i) {
    const auto inv_freq = static_cast<float>(Pow(5e5, -i / 64.0));
    const WideFloat turns = WideFloat::From(inv_freq) * kWideInverseTwoPi;
    const DoubleDouble rate = DoubleDouble::From(turns);
    for (const int64_t base : {0, 64, 4096, 131008}) {
      const DoubleSinCos at_base = SinCosOfTurns(static_cast<double>(base), rate);
      const auto c0 = static_cast<float>(at_base.cos);
      const auto s0 = static_cast<float>(at_base.sin);
      for (int64_t n = 0; n < 64; ++n) {
        const DoubleSinCos at_n = SinCosOfTurns(static_cast<double>(n), rate);
        const auto cn = static_cast<float>(at_n.cos);
        const auto sn = static_cast<float>(at_n.sin);
        const float cos = std::fma(-s0, sn, c0 * cn);
        const float sin = std::fma(c0, sn, s0 * cn);
        const auto x = static_cast<float>(base + n);
        const float delta = std::fma(-x, inv_freq, x * inv_freq);
        const float square = delta * delta;
        const float less = square * -0.5f;
        const float sine = std::fma(delta * square, -1.0f / 6, delta);
        const float turned_cos = cos + std::fma(-sin, sine, cos * less);
        const float turned_sin = sin + std::fma(cos, sine, sin * less);
        const auto check = [&](float value, const Real& exact) {
          const double error = Abs(Real(value) - exact).ToDouble();
          worst = std::max(worst, error);
          const double last = static_cast<double>(base + 64) * rate.hi;
          if (last < 0.125 && error > 0) {
            worst_relative = std::max(worst_relative, error / std::fabs(exact.ToDouble()));
          }
        };
        const Real angle = Real(inv_freq) * Real::FromInt(base + n);
        check(cos, Cos(angle));
        check(sin, Sin(angle));
        check(turned_cos, Cos(Real(x * inv_freq)));
        check(turned_sin, Sin(Real(x * inv_freq)));
      }
    }
  }
  RecordProperty("worst_log2", std::to_string(std::log2(worst)));
  RecordProperty("worst_relative_log2", std::to_string(std::log2(worst_relative)));
  EXPECT_THAT(worst, Le(kRotatedFloatError));
  EXPECT_THAT(worst_relative, Le(kRotatedFloatRelativeError));
}

}  // namespace
}  // namespace posenc
