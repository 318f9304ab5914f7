// Whole RoPE tables of 131072 positions and 64 pairs: every value is the real number (or,
// with FLOAT32, that of the float32 angle) rounded once.
//
// The reference rotates in long double, whose 64 bits decide nearly every rounding to
// float32, from tables that MPFR made; MPFR itself decides the others.
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "lib/numeric/elementary.h"
#include "lib/numeric/rotation.h"
#include "tests/support/reference.h"

namespace posenc {
namespace {

using testing::Real;

constexpr int64_t kPositions = 131072;
constexpr int64_t kPairs = 64;
constexpr int64_t kFine = 512;

static_assert(std::numeric_limits<long double>::digits >= 64);

// Of the reference: two table values and some ten roundings.
constexpr long double kError = 0x1p-58L;

long double ToLongDouble(const Real& value) {
  const double high = value.ToDouble();
  return static_cast<long double>(high) + (value - Real(high)).ToDouble();
}

struct Point {
  long double cos;
  long double sin;

  static Point At(const Real& angle) {
    return {ToLongDouble(Cos(angle)), ToLongDouble(Sin(angle))};
  }
  friend Point operator*(const Point& a, const Point& b) {
    return {a.cos * b.cos - a.sin * b.sin, a.sin * b.cos + a.cos * b.sin};
  }
};

// Cosines and sines of position * frequency.
class Reference {
 public:
  explicit Reference(const Real& frequency) : frequency_(frequency) {
    for (int64_t n = 0; n < kFine; ++n) fine_.push_back(Point::At(Real::FromInt(n) * frequency));
    for (int64_t n = 0; n < kPositions; n += kFine) {
      coarse_.push_back(Point::At(Real::FromInt(n) * frequency));
    }
  }

  Point At(int64_t position) const {
    return coarse_[static_cast<size_t>(position / kFine)] *
           fine_[static_cast<size_t>(position % kFine)];
  }
  Real Angle(int64_t position) const { return Real::FromInt(position) * frequency_; }

 private:
  Real frequency_;
  std::vector<Point> fine_;
  std::vector<Point> coarse_;
};

// e^(i * delta) of what rounding an angle to float32 has added to it, at most 2^-8.
Point Turn(double delta) {
  const long double d = delta;
  const long double s = d * d;
  return {1 - s / 2 * (1 - s / 12 * (1 - s / 30 * (1 - s / 56))),
          d * (1 - s / 6 * (1 - s / 20 * (1 - s / 42)))};
}

// Whether `got` is `value` rounded; `exact` tells where `value` leaves it open.
template <typename Exact>
bool IsRounded(float got, long double value, const Exact& exact) {
  const auto low = static_cast<float>(value - kError);
  if (low == static_cast<float>(value + kError)) return got == low;
  return got == exact().ToFloat();
}

// Rows of all positions of one arithmetic, and how many values are wrong in them.
template <typename WrongInRow>
int64_t CountWrong(const Rotation& rotation, const WrongInRow& wrong_in_row) {
  constexpr int64_t kRows = 1024;
  std::vector<float> rows(static_cast<size_t>(kRows * 2 * kPairs));
  int64_t wrong = 0;
  for (int64_t first = 0; first < kPositions; first += kRows) {
    rotation.Fill<float>(
        first,
        {.count = kRows, .stride = 2 * kPairs, .cos = rows.data(), .sin = rows.data() + kPairs});
    for (int64_t row = 0; row < kRows; ++row) {
      const float* cos = rows.data() + row * 2 * kPairs;
      wrong += wrong_in_row(first + row, cos, cos + kPairs);
    }
  }
  return wrong;
}

class RotationFullTableTest : public ::testing::TestWithParam<double> {};

TEST_P(RotationFullTableTest, ExactHasNoWrongValue) {
  std::vector<WideFloat> wide;
  std::vector<Reference> references;
  for (int64_t i = 0; i < kPairs; ++i) {
    const Real frequency = Pow(Real(GetParam()), -(Real::FromInt(i) / Real::FromInt(kPairs)));
    wide.push_back(testing::ToWide(frequency));
    references.emplace_back(frequency);
  }
  const Rotation rotation = Rotation::Exact(wide, 1.0);
  const auto wrong =
      CountWrong(rotation, [&](int64_t position, const float* cos, const float* sin) {
        int64_t count = 0;
        for (size_t i = 0; i < kPairs; ++i) {
          const Reference& reference = references[i];
          const Point point = reference.At(position);
          count += !IsRounded(cos[i], point.cos, [&] { return Cos(reference.Angle(position)); });
          count += !IsRounded(sin[i], point.sin, [&] { return Sin(reference.Angle(position)); });
        }
        return count;
      });
  EXPECT_EQ(wrong, 0);
}

TEST_P(RotationFullTableTest, Float32HasNoWrongValue) {
  std::vector<float> inv_freq;
  std::vector<Reference> references;
  for (int64_t i = 0; i < kPairs; ++i) {
    const auto theta = static_cast<float>(GetParam());
    inv_freq.push_back(1.0f / PowF(theta, static_cast<float>(i) / static_cast<float>(kPairs)));
    references.emplace_back(Real(inv_freq.back()));
  }
  const Rotation rotation = Rotation::Float32(inv_freq, 1.0);
  const auto wrong =
      CountWrong(rotation, [&](int64_t position, const float* cos, const float* sin) {
        int64_t count = 0;
        for (size_t i = 0; i < kPairs; ++i) {
          const float angle = static_cast<float>(position) * inv_freq[i];
          const double product = static_cast<double>(position) * static_cast<double>(inv_freq[i]);
          const Point point =
              references[i].At(position) * Turn(static_cast<double>(angle) - product);
          count += !IsRounded(cos[i], point.cos, [&] { return Cos(Real(angle)); });
          count += !IsRounded(sin[i], point.sin, [&] { return Sin(Real(angle)); });
        }
        return count;
      });
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Theta, RotationFullTableTest, ::testing::Values(1e4, 5e5, 1e6));

}  // namespace
}  // namespace posenc
