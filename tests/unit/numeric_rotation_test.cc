// Rotation against its definition, computed with MPFR: bit for bit, for every
// element type, at the hard places.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/numeric/dtype.h"
#include "lib/numeric/elementary.h"
#include "lib/numeric/rotation.h"
#include "tests/support/reference.h"

namespace posenc {
namespace {

using testing::Real;
using testing::RoundRealTo;
using testing::ToWide;

constexpr int64_t kLastPosition = (int64_t{1} << 31) - 1;

// Zero, the first rows, edges of blocks and pages, where float32 stops counting,
// the end of a Llama 3.1 context, the largest position.
const std::vector<int64_t> kPositions = {
    0,      1,      2,      3,      15,       16,       17,       63,         64,
    65,     127,    128,    2047,   2048,     4095,     4096,     131071,     131072,
    999983, 262144, 524287, 524288, 16777215, 16777216, 16777217, 1073741824, kLastPosition};

template <typename T>
class RotationTest : public ::testing::Test {};

struct TypeName {
  template <typename T>
  static std::string GetName(int) {
    if (std::is_same_v<T, float>) return "F32";
    if (std::is_same_v<T, double>) return "F64";
    return std::is_same_v<T, F16> ? "F16" : "BF16";
  }
};
using Elements = ::testing::Types<float, double, F16, Bf16>;
TYPED_TEST_SUITE(RotationTest, Elements, TypeName);

// Cosines, then sines, of one row.
template <typename Element>
std::vector<Element> Row(const Rotation& rotation, int64_t position) {
  const auto pairs = static_cast<size_t>(rotation.pairs());
  std::vector<Element> row(2 * pairs);
  rotation.Fill(position,
                RotationRows<Element>{.count = 1, .cos = row.data(), .sin = row.data() + pairs});
  return row;
}

template <typename Element>
void ExpectExact(const std::vector<Real>& inv_freq, double scale, int64_t position) {
  std::vector<WideFloat> wide;
  for (const Real& frequency : inv_freq) wide.push_back(ToWide(frequency));
  const std::vector<Element> row = Row<Element>(Rotation::Exact(wide, scale), position);
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const Real angle = Real::FromInt(position) * inv_freq[i];
    EXPECT_EQ(row[i], RoundRealTo<Element>(Real(scale) * Cos(angle)))
        << "cos, position " << position << ", pair " << i << ", scale " << scale;
    EXPECT_EQ(row[inv_freq.size() + i], RoundRealTo<Element>(Real(scale) * Sin(angle)))
        << "sin, position " << position << ", pair " << i << ", scale " << scale;
  }
}

std::vector<Real> RopeFrequencies(double theta, int64_t dim) {
  std::vector<Real> inv_freq;
  for (int64_t i = 0; i < dim / 2; ++i) {
    inv_freq.push_back(Pow(Real(theta), -(Real::FromInt(2 * i) / Real::FromInt(dim))));
  }
  return inv_freq;
}

TYPED_TEST(RotationTest, ExactIsTheRealNumberRoundedOnce) {
  for (const double theta : {1e4, 5e5, 1e7, 0.75}) {
    for (const double scale : {1.0, 1.3465735902799727, 0.1}) {
      for (const int64_t position : kPositions) {
        ExpectExact<TypeParam>(RopeFrequencies(theta, 64), scale, position);
      }
    }
  }
}

TYPED_TEST(RotationTest, ExactHoldsNextToZerosOfSineAndCosine) {
  for (const int64_t quarter : {1, 2, 3, 4, 1001, 1 << 20}) {
    std::vector<Real> inv_freq;
    for (const double offset : {0x1p-20, -0x1p-40, 0x1p-60, -0x1p-100}) {
      const Real angle = Real::FromInt(quarter) * Real::Pi() / Real(2.0) + Real(offset);
      inv_freq.push_back(angle / Real(131071.0));
    }
    ExpectExact<TypeParam>(inv_freq, 1.0, 131071);
  }
}

TYPED_TEST(RotationTest, ExactHoldsForTheLargestAndTheSmallestFrequencies) {
  const std::vector<Real> inv_freq = {Real(256.0),  Real(255.99999), Real(0x1p-100), Real(3e-30),
                                      Real(1e-300), Real(3e-310),    Real(0.0)};
  for (const int64_t position : kPositions) ExpectExact<TypeParam>(inv_freq, 1.0, position);
}

// The angle in [0, 1] whose sine is `value`.
Real ArcSine(const Real& value) {
  Real x(std::asin(value.ToDouble()));
  for (int i = 0; i < 5; ++i) x = x - (Sin(x) - value) / Cos(x);
  return x;
}

// What a double cannot decide: sines next to the middle between two elements.
TYPED_TEST(RotationTest, ExactDecidesNextToTies) {
  constexpr int kPrecision = std::is_same_v<TypeParam, double>  ? 53
                             : std::is_same_v<TypeParam, float> ? 24
                             : std::is_same_v<TypeParam, F16>   ? 11
                                                                : 8;
  const Real unit(std::ldexp(1.0, -kPrecision));
  for (int n = 1; n < 40; ++n) {
    const Real tie = Real(0.5) + Real(2.0 * n + 1.0) * unit / Real(2.0);
    std::vector<Real> inv_freq;
    for (const int distance : {60, 90, 120, 160}) {
      const Real nudge(std::ldexp(n % 2 == 0 ? 1.0 : -1.0, -distance));
      inv_freq.push_back(ArcSine(tie + nudge));
    }
    ExpectExact<TypeParam>(inv_freq, 1.0, 1);
  }
}

TYPED_TEST(RotationTest, ScalesThatAreTiesRoundToEven) {
  // At position 0 the value is the scale itself.
  for (const double scale : {1 + 0x1p-24, 1 + 3 * 0x1p-24, 1 + 0x1p-11, 1 + 3 * 0x1p-11, 1 + 0x1p-8,
                             1 + 3 * 0x1p-8, 1 + 0x1p-52}) {
    ExpectExact<TypeParam>({Real(1.0)}, scale, 0);
  }
}

TYPED_TEST(RotationTest, Float32RoundsAtEveryStepAndThenToTheElement) {
  for (const double theta : {1e4, 5e5, 1e7, 0.75}) {
    std::vector<float> inv_freq;
    for (int i = 0; i < 32; ++i) {
      inv_freq.push_back(1.0f / PowF(static_cast<float>(theta), static_cast<float>(i) / 32.0f));
    }
    for (const double scale : {1.0, 1.3465735902799727}) {
      const Rotation rotation = Rotation::Float32(inv_freq, scale);
      for (const int64_t position : kPositions) {
        const std::vector<TypeParam> row = Row<TypeParam>(rotation, position);
        for (size_t i = 0; i < inv_freq.size(); ++i) {
          const float angle = inv_freq[i] * static_cast<float>(position);
          const float cos = Cos(Real(angle)).ToFloat() * static_cast<float>(scale);
          const float sin = Sin(Real(angle)).ToFloat() * static_cast<float>(scale);
          EXPECT_EQ(row[i], RoundTo<TypeParam>(cos)) << position << ", pair " << i;
          EXPECT_EQ(row[32 + i], RoundTo<TypeParam>(sin)) << position << ", pair " << i;
        }
      }
    }
  }
}

TEST(RotationFloat32Test, AnglesNextToMultiplesOfAQuarterTurn) {
  // The float32 nearest to each multiple of pi/2, and its neighbours.
  std::vector<float> angles;
  for (int n = 1; n < 160; ++n) {
    const float nearest = (Real::FromInt(n) * Real::Pi() / Real(2.0)).ToFloat();
    angles.push_back(nearest);
    angles.push_back(std::nextafter(nearest, 0.0f));
    angles.push_back(std::nextafter(nearest, 1e9f));
  }
  const std::vector<float> row = Row<float>(Rotation::Float32(angles, 1.0), 1);
  for (size_t i = 0; i < angles.size(); ++i) {
    EXPECT_EQ(row[i], Cos(Real(angles[i])).ToFloat()) << angles[i];
    EXPECT_EQ(row[angles.size() + i], Sin(Real(angles[i])).ToFloat()) << angles[i];
  }
}

TEST(RotationFloat32Test, SmallAnglesWhoseCosineTies) {
  // cos(2^-12) is 1 - 2^-25 + 2^-52.6: a tie of float32, but for the next term.
  const std::vector<float> angles = {0x1p-12f, 0x1p-13f,  0x1.8p-12f,
                                     0x1p-20f, 0x1p-126f, 0x1p-149f};
  const std::vector<float> row = Row<float>(Rotation::Float32(angles, 1.0), 1);
  for (size_t i = 0; i < angles.size(); ++i) {
    EXPECT_EQ(row[i], Cos(Real(angles[i])).ToFloat()) << angles[i];
    EXPECT_EQ(row[angles.size() + i], Sin(Real(angles[i])).ToFloat()) << angles[i];
  }
}

TYPED_TEST(RotationTest, RowsDoNotDependOnHowTheyAreAskedFor) {
  std::vector<WideFloat> inv_freq;
  for (const Real& frequency : RopeFrequencies(1e4, 26)) inv_freq.push_back(ToWide(frequency));
  std::vector<float> inv_freq32;
  for (const WideFloat& frequency : inv_freq) inv_freq32.push_back(frequency.ToFloat());
  const size_t pairs = inv_freq.size();
  constexpr int64_t kFirst = 131072 - 70;
  constexpr int64_t kRows = 140;
  for (const Rotation& rotation :
       {Rotation::Exact(inv_freq, 1.25), Rotation::Float32(inv_freq32, 1.25)}) {
    const size_t stride = 2 * pairs + 3;
    std::vector<TypeParam> block(kRows * stride);
    rotation.Fill(kFirst, RotationRows<TypeParam>{.count = kRows,
                                                  .stride = static_cast<int64_t>(stride),
                                                  .cos = block.data(),
                                                  .sin = block.data() + pairs});
    for (size_t row = 0; row < kRows; ++row) {
      const std::vector<TypeParam> alone =
          Row<TypeParam>(rotation, kFirst + static_cast<int64_t>(row));
      const auto* begin = block.data() + row * stride;
      EXPECT_EQ(std::vector<TypeParam>(begin, begin + 2 * pairs), alone) << row;
      EXPECT_EQ(begin[2 * pairs], TypeParam{});  // nothing is written between rows

      std::vector<TypeParam> half(pairs);
      rotation.Fill(kFirst + static_cast<int64_t>(row),
                    RotationRows<TypeParam>{.count = 1, .sin = half.data()});
      EXPECT_EQ(half, std::vector<TypeParam>(begin + pairs, begin + 2 * pairs)) << row;
    }
  }
}

}  // namespace
}  // namespace posenc
