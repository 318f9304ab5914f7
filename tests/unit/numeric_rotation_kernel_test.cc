// The vector code of Rotation: every instruction set gives the bytes of the
// scalar code (which numeric_rotation_test holds against MPFR), and the error
// bounds that let it round without looking further.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"
#include "lib/numeric/dtype.h"
#include "lib/numeric/elementary.h"
#include "lib/numeric/rotation.h"
#include "lib/numeric/rotation_kernel.h"
#include "lib/numeric/sin_cos.h"
#include "lib/numeric/wide_functions.h"
#include "tests/support/reference.h"

namespace posenc {
namespace {

using ::testing::Le;
using testing::Real;

// While it lives, the kernel is the one of `target`; HWY_SCALAR has none.
class ForcedTarget {
 public:
  explicit ForcedTarget(int64_t target) { Force(target); }
  ~ForcedTarget() { Force(0); }  // all that the machine has

 private:
  static void Force(int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

// What a table is made of, whichever the instruction set.
struct Maker {
  std::string name;
  std::vector<float> inv_freq;       // FLOAT32 when not empty
  std::vector<WideFloat> wide_freq;  // else EXACT
  double scale = 1.0;

  Rotation Make() const {
    return inv_freq.empty() ? Rotation::Exact(wide_freq, scale)
                            : Rotation::Float32(inv_freq, scale);
  }
};

std::vector<Maker> Makers() {
  std::vector<Maker> makers;
  const auto add = [&](const std::string& name, const std::vector<double>& inv_freq, double scale) {
    Maker exact{"exact " + name, {}, {}, scale};
    Maker float32{"float32 " + name, {}, {}, scale};
    for (const double frequency : inv_freq) {
      exact.wide_freq.push_back(WideFloat::From(frequency));
      float32.inv_freq.push_back(static_cast<float>(frequency));
    }
    makers.push_back(exact);
    makers.push_back(float32);
  };
  const auto geometric = [](double theta, int pairs) {
    std::vector<double> inv_freq;
    for (int i = 0; i < pairs; ++i) inv_freq.push_back(Pow(theta, -static_cast<double>(i) / pairs));
    return inv_freq;
  };
  add("theta 1e4", geometric(1e4, 64), 1.0);
  add("theta 5e5, scaled", geometric(5e5, 64), 1.3465735902799727);
  add("theta 1e10, small", geometric(1e10, 48), 0.01);
  add("negative", {-1.0, -0.01, -1e-5, 0.3}, 1.0);
  add("one pair", {1.0}, 1.0);
  add("tails", geometric(100.0, 23), 3.0);
  add("zeros", {1.0, 0.0, 0.5, 0.0}, 1.0);
  add("zeros, scale a tie", {1.0, 0.0}, 1 + 0x1p-24 + 0x1p-11);
  add("extremes", {256.0, 255.5, 1e-38, 1e-30, 3e-5}, 1.0);
  add("large scale", geometric(1e4, 16), 60000.0);  // f16 overflows at 65520
  add("larger scale", geometric(1e4, 16), 66000.0);
  return makers;
}

struct Run {
  int64_t first;
  int64_t count;
};

// The first rows, ends of blocks and chunks, where float32 angles are too large to
// rotate to, where float32 stops counting, the end.
const std::vector<Run> kRuns = {{0, 1500},          {-130, 300},        {63, 2},
                                {131072 - 40, 100}, {1000003, 70},      {(1 << 24) - 70, 140},
                                {(1 << 30) + 5, 9}, {2147483647 - 9, 9}};

template <typename Element>
std::vector<Element> Table(const Rotation& rotation, const Run& run) {
  const int64_t pairs = rotation.pairs();
  std::vector<Element> table(static_cast<size_t>(run.count * 2 * pairs));
  rotation.Fill(run.first, RotationRows<Element>{.count = run.count,
                                                 .stride = 2 * pairs,
                                                 .cos = table.data(),
                                                 .sin = table.data() + pairs});
  return table;
}

template <typename Element>
void ExpectSameBytes(const std::vector<Element>& got, const std::vector<Element>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  if (std::memcmp(got.data(), expected.data(), got.size() * sizeof(Element)) == 0) return;
  size_t i = 0;
  while (std::memcmp(&got[i], &expected[i], sizeof(Element)) == 0) ++i;
  ADD_FAILURE() << "first difference at element " << i << " of " << got.size();
}

// Memory as a kernel's target: aligned as pages are, or off by one element.
template <typename Element>
class Memory {
 public:
  Memory(int64_t elements, bool aligned)
      : memory_(static_cast<size_t>(elements) + kLine / sizeof(Element) + 1, Element{}) {
    const auto past = reinterpret_cast<uintptr_t>(memory_.data()) % kLine;
    start_ = (kLine - past) % kLine / sizeof(Element) + (aligned ? 0 : 1);
  }
  Element* data() { return memory_.data() + start_; }

 private:
  static constexpr size_t kLine = kRotationLine;
  std::vector<Element> memory_;
  size_t start_;
};

// The rows of `run` in a layout, cosines and sines in two tables or in one.
template <typename Element>
std::vector<Element> LaidOut(const Rotation& rotation, const Run& run, RotationLayout layout,
                             bool aligned, bool cold) {
  const int64_t pairs = rotation.pairs();
  const int64_t stride = 2 * pairs;
  const bool alternates = layout == RotationLayout::kAlternating;
  const int64_t size = run.count * stride;
  Memory<Element> memory(2 * size, aligned);
  Element* cos = memory.data();
  Element* sin = alternates ? cos + 1 : cos + (layout == RotationLayout::kApart ? pairs : size);
  rotation.Fill(run.first, RotationRows<Element>{.count = run.count,
                                                 .stride = stride,
                                                 .cos = cos,
                                                 .sin = sin,
                                                 .layout = layout,
                                                 .cold = cold});
  return std::vector<Element>(memory.data(), memory.data() + 2 * size);
}

constexpr RotationLayout kLayouts[] = {RotationLayout::kApart, RotationLayout::kTwice,
                                       RotationLayout::kAlternating,
                                       RotationLayout::kTwiceAlternating};

template <typename T>
class RotationKernelTest : public ::testing::Test {};
using Elements = ::testing::Types<float, double, F16, Bf16>;
TYPED_TEST_SUITE(RotationKernelTest, Elements);

TYPED_TEST(RotationKernelTest, EveryInstructionSetGivesTheScalarBytes) {
  int kernels = 0;
  for (const Maker& maker : Makers()) {
    SCOPED_TRACE(maker.name);
    std::vector<std::vector<TypeParam>> expected;
    {
      const ForcedTarget scalar(HWY_SCALAR);
      ASSERT_FALSE(HasRotationKernel());
      const Rotation rotation = maker.Make();
      for (const Run& run : kRuns) expected.push_back(Table<TypeParam>(rotation, run));
    }
    for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
      SCOPED_TRACE(hwy::TargetName(target));
      const ForcedTarget forced(target);
      kernels += HasRotationKernel() ? 1 : 0;
      const Rotation rotation = maker.Make();
      for (size_t i = 0; i < kRuns.size(); ++i) {
        SCOPED_TRACE(kRuns[i].first);
        ExpectSameBytes(Table<TypeParam>(rotation, kRuns[i]), expected[i]);
      }
    }
  }
  this->RecordProperty("kernels", kernels);
}

TYPED_TEST(RotationKernelTest, LayoutsArePermutationsHoweverTheMemoryLies) {
  for (const Maker& maker : Makers()) {
    SCOPED_TRACE(maker.name);
    const Run run = {40, 70};  // over an end of a block
    std::vector<std::vector<TypeParam>> expected;
    {
      const ForcedTarget scalar(HWY_SCALAR);
      const Rotation rotation = maker.Make();
      for (const RotationLayout layout : kLayouts) {
        expected.push_back(LaidOut<TypeParam>(rotation, run, layout, true, false));
      }
    }
    for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
      SCOPED_TRACE(hwy::TargetName(target));
      const ForcedTarget forced(target);
      const Rotation rotation = maker.Make();
      for (size_t i = 0; i < std::size(kLayouts); ++i) {
        SCOPED_TRACE(i);
        for (const bool aligned : {true, false}) {
          for (const bool cold : {true, false}) {
            ExpectSameBytes(LaidOut<TypeParam>(rotation, run, kLayouts[i], aligned, cold),
                            expected[i]);
          }
        }
      }
    }
  }
}

// Two tables whose rows stand at one place of their pages are written by turns.
TYPED_TEST(RotationKernelTest, TablesWholePagesApartHaveTheSameBytes) {
  const Run run = {40, 70};
  for (const Maker& maker : Makers()) {
    SCOPED_TRACE(maker.name);
    for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
      SCOPED_TRACE(hwy::TargetName(target));
      const ForcedTarget forced(target);
      const Rotation rotation = maker.Make();
      const int64_t pairs = rotation.pairs();
      const std::vector<TypeParam> beside = Table<TypeParam>(rotation, run);
      for (const RotationLayout layout : {RotationLayout::kApart, RotationLayout::kTwice}) {
        const int64_t stride = layout == RotationLayout::kTwice ? 2 * pairs : pairs;
        constexpr auto kPage = static_cast<int64_t>(4096 / sizeof(TypeParam));
        const int64_t apart = (run.count * stride / kPage + 1) * kPage;
        Memory<TypeParam> memory(2 * apart, /*aligned=*/true);
        TypeParam* const cos = memory.data();
        TypeParam* const sin = cos + apart;
        rotation.Fill(run.first, RotationRows<TypeParam>{.count = run.count,
                                                         .stride = stride,
                                                         .cos = cos,
                                                         .sin = sin,
                                                         .layout = layout,
                                                         .cold = true});
        std::vector<TypeParam> got;
        for (int64_t row = 0; row < run.count; ++row) {
          got.insert(got.end(), cos + row * stride, cos + row * stride + pairs);
          got.insert(got.end(), sin + row * stride, sin + row * stride + pairs);
        }
        ExpectSameBytes(got, beside);
      }
    }
  }
}

TYPED_TEST(RotationKernelTest, AlternatingSinesMayComeFirst) {
  for (const Maker& maker : Makers()) {
    const Rotation rotation = maker.Make();
    const int64_t stride = 2 * rotation.pairs();
    const std::vector<TypeParam> apart = Table<TypeParam>(rotation, {3, 2});
    std::vector<TypeParam> rows(static_cast<size_t>(2 * stride));
    rotation.Fill(3, RotationRows<TypeParam>{.count = 2,
                                             .stride = stride,
                                             .cos = rows.data() + 1,
                                             .sin = rows.data(),
                                             .layout = RotationLayout::kAlternating});
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t row = i / static_cast<size_t>(stride) * static_cast<size_t>(stride);
      const size_t pair = i % static_cast<size_t>(stride) / 2;
      const size_t half = i % 2 == 0 ? static_cast<size_t>(rotation.pairs()) : 0;
      EXPECT_EQ(rows[i], apart[row + half + pair]) << maker.name << ' ' << i;
    }
  }
}

TYPED_TEST(RotationKernelTest, NothingIsWrittenForAnAbsentHalf) {
  for (const Maker& maker : Makers()) {
    const Rotation rotation = maker.Make();
    const auto pairs = static_cast<size_t>(rotation.pairs());
    const std::vector<TypeParam> whole = Table<TypeParam>(rotation, {7, 1});
    std::vector<TypeParam> half(pairs);
    rotation.Fill(7, RotationRows<TypeParam>{.count = 1, .cos = half.data()});
    EXPECT_TRUE(std::equal(half.begin(), half.end(), whole.begin())) << maker.name;
    rotation.Fill(7, RotationRows<TypeParam>{.count = 1, .sin = half.data()});
    EXPECT_TRUE(std::equal(half.begin(), half.end(), whole.begin() + rotation.pairs()));
  }
}

// A whole Llama 3.1 table, so that rare roundings occur: 16.8 million values.
TYPED_TEST(RotationKernelTest, LlamaTableIsTheScalarOne) {
  std::vector<float> inv_freq;
  std::vector<WideFloat> wide_freq;
  for (int i = 0; i < 64; ++i) {
    inv_freq.push_back(1.0f / PowF(5e5f, static_cast<float>(i) / 64.0f));
    wide_freq.push_back(Pow(WideFloat::From(5e5), WideFloat::From(-i / 64.0)));
  }
  const auto table = [&](bool exact, int64_t first) {
    const Rotation rotation =
        exact ? Rotation::Exact(wide_freq, 1.0) : Rotation::Float32(inv_freq, 1.0);
    return Table<TypeParam>(rotation, {first, 16384});
  };
  for (const bool exact : {true, false}) {
    // Float64 has a slow path and no rare roundings: a part will do.
    const int64_t end = std::is_same_v<TypeParam, double> ? 16384 : 131072;
    for (int64_t first = 0; first < end; first += 16384) {
      std::vector<TypeParam> expected;
      {
        const ForcedTarget scalar(HWY_SCALAR);
        expected = table(exact, first);
      }
      for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
        const ForcedTarget forced(target);
        if (HasRotationKernel()) ExpectSameBytes(table(exact, first), expected);
      }
    }
  }
}

// Error bounds: the kernel's arithmetic in scalar code, against MPFR ------------------

TEST(RotationKernelBoundsTest, OneComplexMultiplicationKeepsItsBound) {
  double worst = 0;
  for (int i = 0; i < 64; ++i) {
    const WideFloat turns =
        Pow(WideFloat::From(5e5), WideFloat::From(-i / 64.0)) * kWideInverseTwoPi;
    const DoubleDouble rate = DoubleDouble::From(turns);
    for (const int64_t base : {0, 64, 4096, 131008, 2147483584}) {
      const DoubleSinCos at_base = SinCosOfTurns(static_cast<double>(base), rate);
      for (int64_t n = 0; n < 64; n += 7) {
        const DoubleSinCos fine = SinCosOfTurns(static_cast<double>(n), rate);
        const double cos = at_base.cos * fine.cos - at_base.sin * fine.sin;
        const double sin = at_base.sin * fine.cos + at_base.cos * fine.sin;
        const Real angle = Real(2.0) * Real::Pi() * Real(turns) * Real::FromInt(base + n);
        worst = std::max({worst, Abs(Real(cos) - Cos(angle)).ToDouble(),
                          Abs(Real(sin) - Sin(angle)).ToDouble()});
      }
    }
  }
  RecordProperty("worst_log2", std::to_string(std::log2(worst)));
  EXPECT_THAT(worst, Le(kRotatedError));
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

TEST(RotationKernelBoundsTest, MarginCoversTheErrorOfTheSmallestValueTested) {
  // In units of the last place of a double, which is at least 2^-53 of the value.
  EXPECT_THAT(kRotatedError / kLeastRotated / 0x1p-53, Le(static_cast<double>(kMargin)));
}

}  // namespace
}  // namespace posenc
