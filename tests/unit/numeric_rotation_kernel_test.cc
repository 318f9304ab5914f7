// The vector code of Rotation: every instruction set gives the bytes of the
// scalar code, which numeric_rotation_test holds against MPFR.
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "hwy/highway.h"
#include "lib/numeric/dtype.h"
#include "lib/numeric/elementary.h"
#include "lib/numeric/rotation.h"
#include "lib/numeric/rotation_kernel.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

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

// A whole Llama 3.1 table, so that rare roundings occur: 16.8 million values. Past the
// caches too, where a row that is settled is written twice.
TYPED_TEST(RotationKernelTest, LlamaTableIsTheScalarOne) {
  std::vector<float> inv_freq;
  std::vector<WideFloat> wide_freq;
  for (int i = 0; i < 64; ++i) {
    inv_freq.push_back(1.0f / PowF(5e5f, static_cast<float>(i) / 64.0f));
    wide_freq.push_back(Pow(WideFloat::From(5e5), WideFloat::From(-i / 64.0)));
  }
  constexpr int64_t kRows = 16384;
  const auto rotation = [&](bool exact) {
    return exact ? Rotation::Exact(wide_freq, 1.0) : Rotation::Float32(inv_freq, 1.0);
  };
  Memory<TypeParam> cold(kRows * 128, /*aligned=*/true);
  for (const bool exact : {true, false}) {
    // Float64 has a slow path and no rare roundings: a part will do.
    const int64_t end = std::is_same_v<TypeParam, double> ? kRows : 131072;
    for (int64_t first = 0; first < end; first += kRows) {
      std::vector<TypeParam> expected;
      {
        const ForcedTarget scalar(HWY_SCALAR);
        expected = Table<TypeParam>(rotation(exact), {first, kRows});
      }
      for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
        const ForcedTarget forced(target);
        if (!HasRotationKernel()) continue;
        const Rotation by_kernel = rotation(exact);
        ExpectSameBytes(Table<TypeParam>(by_kernel, {first, kRows}), expected);
        by_kernel.Fill(first, RotationRows<TypeParam>{.count = kRows,
                                                      .stride = 128,
                                                      .cos = cold.data(),
                                                      .sin = cold.data() + 64,
                                                      .cold = true});
        ExpectSameBytes(std::vector<TypeParam>(cold.data(), cold.data() + kRows * 128), expected);
      }
    }
  }
}

}  // namespace
}  // namespace posenc
