// The fast sines and cosines keep their stated error bounds, against MPFR, at
// the hard places: zeros, octant edges, the largest angles, the smallest rates.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/numeric/precise_sin_cos.h"
#include "lib/numeric/rotation.h"
#include "lib/numeric/sin_cos.h"
#include "lib/numeric/wide_functions.h"
#include "tests/support/reference.h"

namespace posenc {
namespace {

using ::testing::Le;
using testing::Real;

struct Case {
  double x;
  WideFloat rate;  // turns
};

WideFloat W(double value) { return WideFloat::From(value); }

// Rates of real tables and of none, positions up to the limit.
std::vector<Case> RandomCases() {
  std::mt19937_64 engine(7);
  std::uniform_int_distribution<int64_t> position(-(int64_t{1} << 31), int64_t{1} << 31);
  std::uniform_real_distribution<double> log2_rate(-60, 5.3);
  std::vector<Case> cases;
  for (int i = 0; i < 20000; ++i) {
    const WideFloat rate = Exp(W(log2_rate(engine)) * kWideLn2);
    cases.push_back({static_cast<double>(position(engine) >> (i % 32)), rate});
  }
  for (const double x : {0.0, 1.0, 2.0, 16777217.0, 131071.0, 2147483647.0}) {
    for (int i = 0; i < 64; ++i) {
      cases.push_back({x, Pow(W(1e4), W(-i / 64.0)) * kWideInverseTwoPi});
    }
  }
  return cases;
}

// x·rate is an odd multiple of 1/8 or 1/256 of a turn, or a zero, and a little more.
std::vector<Case> EdgeCases() {
  std::vector<Case> cases;
  for (const int64_t parts : {4, 8, 256, 512}) {
    for (int64_t n = -600; n <= 600; ++n) {
      for (const int shift : {20, 50, 80, 100}) {
        for (const double x : {1.0, 3.0, 1048577.0}) {
          const WideFloat turns = WideFloat::FromInt(n) / WideFloat::FromInt(parts) +
                                  W(n % 2 == 0 ? 1.0 : -1.0).TimesPowerOf2(-shift);
          cases.push_back({x, turns / W(x)});
        }
      }
    }
  }
  return cases;
}

std::vector<Case> AllCases() {
  std::vector<Case> cases = RandomCases();
  const std::vector<Case> edges = EdgeCases();
  cases.insert(cases.end(), edges.begin(), edges.end());
  return cases;
}

Real AngleOf(const Case& c) { return Real(2.0) * Real::Pi() * Real(c.x) * Real(c.rate); }

TEST(SinCosTest, DoubleKeepsItsBound) {
  double worst = 0;  // relative, of what the reduction does not explain
  for (const Case& c : AllCases()) {
    const DoubleSinCos got = SinCosOfTurns(c.x, DoubleDouble::From(c.rate));
    const Real angle = AngleOf(c);
    const double reduction = kReductionError * std::fabs(c.x * c.rate.ToDouble());
    const auto check = [&](double value, const Real& exact) {
      const double error = Abs(Real(value) - exact).ToDouble();
      const double bound = kSinCosError * std::fabs(exact.ToDouble()) + reduction;
      ASSERT_THAT(error, Le(bound)) << c.x << " * " << c.rate.ToDouble();
      if (error > reduction) {
        worst = std::max(worst, (error - reduction) / std::fabs(exact.ToDouble()));
      }
    };
    check(got.sin, Sin(angle));
    check(got.cos, Cos(angle));
  }
  RecordProperty("worst_log2", std::to_string(std::log2(worst)));
}

TEST(SinCosTest, PreciseKeepsItsBoundAlsoNextToZeros) {
  double worst = 0;
  for (const Case& c : AllCases()) {
    const PreciseSinCosValue got = PreciseSinCosOfTurns(c.x, TripleDouble::From(c.rate));
    const Real angle = AngleOf(c);
    worst = std::max(worst, RelativeError(Real(got.sin.hi) + Real(got.sin.lo), Sin(angle)));
    worst = std::max(worst, RelativeError(Real(got.cos.hi) + Real(got.cos.lo), Cos(angle)));
  }
  RecordProperty("worst_log2", std::to_string(std::log2(worst)));
  EXPECT_THAT(worst, Le(kPreciseSinCosError));
}

TEST(SinCosTest, ReductionIsProvenUpToTheLargestAngle) {
  // What the code relies on: quarter turns counted exactly, and enough bits left.
  constexpr double kMaxTurns = kMaxAngle / 6;
  static_assert(4 * kMaxTurns < 0x1p51);
  static_assert(256 * kMaxTurns < 0x1p51);
  static_assert(kReductionError * kMaxTurns < 0x1p-62);
  // The largest frequency at the largest position, and FLOAT32's rounding of it.
  static_assert(kMaxInvFreq * 0x1p31 * (1 + 0x1p-20) <= kMaxAngle);
}

TEST(SinCosTest, ZeroAngleIsExact) {
  const WideFloat rate = W(0.15);
  EXPECT_EQ(SinCosOfTurns(0, DoubleDouble::From(rate)).sin, 0.0);
  EXPECT_EQ(SinCosOfTurns(0, DoubleDouble::From(rate)).cos, 1.0);
  EXPECT_EQ(SinCosOfTurns(12345, DoubleDouble{}).cos, 1.0);
  const PreciseSinCosValue precise = PreciseSinCosOfTurns(0, TripleDouble::From(rate));
  EXPECT_EQ(precise.sin.hi, 0.0);
  EXPECT_EQ(precise.cos.hi, 1.0);
  EXPECT_EQ(precise.cos.lo, 0.0);
}

}  // namespace
}  // namespace posenc
