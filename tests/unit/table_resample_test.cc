// Resampled tables: the taps against their definition with MPFR, the table against the
// sum over all pairs of taps, and published values.
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/families/resample_taps.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Pointwise;

v1::Selection Patches(int64_t height, int64_t width) {
  return Select(absl::StrCat("patch_grid { height: ", height, " width: ", width, " }"));
}

// A table of one column.
std::string Column(const std::vector<double>& values) {
  return absl::StrCat("table { shape: [", values.size(), ", 1] values: [",
                      absl::StrJoin(values, ","), "] }");
}

std::vector<float> Resampled(const std::string& fields, const v1::Selection& patches) {
  return FillOne("table_resample { " + fields + " }", patches).As<float>();
}

std::vector<float> FirstRow(const std::vector<float>& grid, size_t width) {
  return {grid.begin(), grid.begin() + static_cast<std::ptrdiff_t>(width)};
}

// Published values, reference/other-encodings.md, section 5.2 ----------------------

constexpr float kPublishedTolerance = 5e-7f;

TEST(TableResampleTest, TwoByTwoToThreeByThree) {
  const std::string table = Column({0, 1, 2, 3});
  const auto row = [&](const std::string& fields) {
    return FirstRow(Resampled(table + fields, Patches(3, 3)), 3);
  };
  const auto near = [](std::vector<float> values) {
    return Pointwise(FloatNear(kPublishedTolerance), values);
  };
  EXPECT_THAT(row(""), near({-.2604168f, .326389f, .9131944f}));
  EXPECT_THAT(row(" antialias: true"), near({-.197368f, .3684214f, .934211f}));
  EXPECT_THAT(row(" kernel: RESAMPLE_KERNEL_BILINEAR"), near({0, .5f, 1}));
  EXPECT_THAT(row(" kernel: RESAMPLE_KERNEL_BILINEAR antialias: true"), near({0, .5f, 1}));
  EXPECT_THAT(row(" align_corners: true"), near({0, .5f, 1}));
}

TEST(TableResampleTest, FourSamplesToThree) {
  const std::string table = Column({0, 1, 2, 3}) + " grid_height: 1 grid_width: 4";
  const auto near = [](std::vector<float> values) {
    return Pointwise(FloatNear(kPublishedTolerance), values);
  };
  EXPECT_THAT(Resampled(table, Patches(1, 3)), near({.1261573f, 1.5f, 2.873843f}));
  EXPECT_THAT(Resampled(table + " antialias: true", Patches(1, 3)),
              near({.1899313f, 1.5f, 2.810069f}));
  EXPECT_THAT(Resampled(table + " kernel: RESAMPLE_KERNEL_BILINEAR antialias: true", Patches(1, 3)),
              near({.3f, 1.5f, 2.7f}));
}

// DINO's 0.1 (dino#8): the last sample of 37 -> 16 stands at 35.12, not at 35.34.
TEST(TableResampleTest, TheOldOffsetSamplesElsewhere) {
  std::vector<Tap> taps;
  const auto position = [&](double offset) {
    TapsOf({.size = 37,
            .new_size = 16,
            .kernel = v1::RESAMPLE_KERNEL_BILINEAR,
            .scale_offset = offset},
           15, &taps);
    return static_cast<double>(taps[0].index) + taps[1].weight;
  };
  EXPECT_NEAR(position(0), 35.34, 0.005);
  EXPECT_NEAR(position(0.1), 35.12, 0.005);
}

// Laws ---------------------------------------------------------------------------

const ResampleAxis kAxes[] = {
    {.size = 4, .new_size = 6},
    {.size = 6, .new_size = 4},
    {.size = 14, .new_size = 16, .antialias = true},
    {.size = 16, .new_size = 5, .antialias = true},
    {.size = 16, .new_size = 5, .kernel = v1::RESAMPLE_KERNEL_BILINEAR, .antialias = true},
    {.size = 7, .new_size = 3, .kernel = v1::RESAMPLE_KERNEL_BILINEAR},
    {.size = 5, .new_size = 9, .align_corners = true},
    {.size = 5, .new_size = 1, .align_corners = true},
    {.size = 1, .new_size = 4},
    {.size = 4, .new_size = 1},
    {.size = 37, .new_size = 16, .scale_offset = 0.1},
    {.size = 37, .new_size = 16, .antialias = true, .scale_offset = 0.1}};

// The kernels with all digits, at the distance of each source sample.
Real SlowKernel(const ResampleAxis& axis, const Real& distance) {
  const Real x = Abs(distance);
  if (axis.kernel == v1::RESAMPLE_KERNEL_BILINEAR) return x < 1.0 ? Real(1.0) - x : Real(0.0);
  const Real a = axis.antialias ? -0.5 : -0.75;
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return ((a * x - a * 5.0) * x + a * 8.0) * x - a * 4.0;
  return 0.0;
}

Real SlowPosition(const ResampleAxis& axis, int64_t output) {
  if (axis.align_corners) {
    return axis.new_size == 1
               ? Real(0.0)
               : Real::FromInt(output * (axis.size - 1)) / Real::FromInt(axis.new_size - 1);
  }
  const Real step = Real::FromInt(axis.size) / (Real::FromInt(axis.new_size) + axis.scale_offset);
  return step * (Real::FromInt(output) + 0.5) - 0.5;
}

// Weight of every source sample, edges repeated or dropped as the mode has it.
std::vector<double> SlowWeights(const ResampleAxis& axis, int64_t output) {
  Real position = SlowPosition(axis, output);
  const bool bilinear = axis.kernel == v1::RESAMPLE_KERNEL_BILINEAR;
  if (bilinear && !axis.antialias && position < 0.0) position = 0.0;
  Real stretch = 1.0;
  if (axis.antialias) {
    const Real step = Real::FromInt(axis.size) / (Real::FromInt(axis.new_size) + axis.scale_offset);
    if (Real(1.0) < step) stretch = step;
  }
  std::vector<Real> weights(static_cast<size_t>(axis.size));
  Real sum = 0.0;
  const int64_t margin = axis.antialias ? 0 : 3;
  for (int64_t index = -margin; index < axis.size + margin; ++index) {
    const Real weight = SlowKernel(axis, (Real::FromInt(index) - position) / stretch);
    const auto kept = static_cast<size_t>(std::clamp<int64_t>(index, 0, axis.size - 1));
    weights[kept] = weights[kept] + weight;
    sum = sum + weight;
  }
  std::vector<double> rounded;
  for (const Real& weight : weights) {
    rounded.push_back((axis.antialias ? weight / sum : weight).ToDouble());
  }
  return rounded;
}

TEST(ResampleTapsTest, EqualTheKernelsWithAllDigits) {
  std::vector<Tap> taps;
  for (const ResampleAxis& axis : kAxes) {
    for (int64_t output = 0; output < axis.new_size; ++output) {
      TapsOf(axis, output, &taps);
      std::vector<double> weights(static_cast<size_t>(axis.size));
      for (const Tap& tap : taps) weights[static_cast<size_t>(tap.index)] += tap.weight;
      EXPECT_THAT(weights, Pointwise(::testing::DoubleNear(1e-14), SlowWeights(axis, output)))
          << axis.size << " -> " << axis.new_size << " at " << output;
    }
  }
}

TEST(ResampleTapsTest, WeightsSumToOne) {
  std::vector<Tap> taps;
  for (const ResampleAxis& axis : kAxes) {
    for (int64_t output = 0; output < axis.new_size; ++output) {
      TapsOf(axis, output, &taps);
      double sum = 0;
      for (const Tap& tap : taps) sum += tap.weight;
      EXPECT_NEAR(sum, 1, 1e-15);
    }
  }
}

std::string RandomTable(int64_t rows, int64_t d_model) {
  std::minstd_rand random(7);
  std::vector<double> values;
  for (int64_t i = 0; i < rows * d_model; ++i) {
    values.push_back(static_cast<double>(random() % 2000) / 1000 - 1);
  }
  return absl::StrCat("table { shape: [", rows, ", ", d_model, "] values: [",
                      absl::StrJoin(values, ","), "] }");
}

TEST(TableResampleTest, TheSameResolutionIsTheSameBits) {
  const std::string table = RandomTable(13, 3) + " prefix_rows: 1 grid_height: 3 grid_width: 4";
  const std::vector<float> original =
      FillOne("table_resample { " + table + " align_corners: true }", Patches(3, 4)).As<float>();
  const auto spec = Spec("table_resample { " + table + " }");
  EXPECT_THAT(original, ElementsAreArray(spec.table_resample().table().values()));
  for (const char* fields : {"", " antialias: true", " kernel: RESAMPLE_KERNEL_BILINEAR"}) {
    EXPECT_EQ(Resampled(table + fields, Patches(3, 4)), original) << fields;
  }
}

TEST(TableResampleTest, IsTheSumOverAllPairsOfTaps) {
  const std::string table = RandomTable(12, 2) + " grid_height: 3 grid_width: 4";
  const v1::FloatTable source = Spec("table_resample { " + table + " }").table_resample().table();
  const std::vector<float> got = Resampled(table, Patches(5, 3));
  for (int64_t y = 0; y < 5; ++y) {
    for (int64_t x = 0; x < 3; ++x) {
      const std::vector<double> wy = SlowWeights({.size = 3, .new_size = 5}, y);
      const std::vector<double> wx = SlowWeights({.size = 4, .new_size = 3}, x);
      for (int64_t column = 0; column < 2; ++column) {
        double sum = 0;
        for (size_t sy = 0; sy < 3; ++sy) {
          for (size_t sx = 0; sx < 4; ++sx) {
            sum += wy[sy] * wx[sx] *
                   static_cast<double>(source.values(static_cast<int>((sy * 4 + sx) * 2) +
                                                     static_cast<int>(column)));
          }
        }
        EXPECT_NEAR(got[static_cast<size_t>((y * 3 + x) * 2 + column)], sum, 1e-7);
      }
    }
  }
}

TEST(TableResampleTest, PrefixAndSuffixRowsAreKept) {
  EXPECT_THAT(
      Resampled(Column({9, 1, 1, 1, 1, 7, 8}) + " prefix_rows: 1 suffix_rows: 2", Patches(1, 3)),
      ElementsAreArray({9, 1, 1, 1, 7, 8}));
}

// SigLIP 2 (NaFlex): the rest of max_num_patches is the first patch's row, not zero.
TEST(TableResampleTest, PaddingIsTheFirstPatchRow) {
  EXPECT_THAT(Resampled(Column({9, 3, 5}) + " prefix_rows: 1 grid_height: 1 grid_width: 2 "
                                            "pad_to_rows: 5",
                        Patches(1, 2)),
              ElementsAreArray({9, 3, 5, 3, 3}));
}

TEST(TableResampleTest, AnySplitOfTheTableGivesTheSameBytes) {
  const v1::EncodingSpec spec = Spec("table_resample { " + RandomTable(14, 3) +
                                     " prefix_rows: 1 suffix_rows: 1 grid_height: 3 grid_width: 4 "
                                     "pad_to_rows: 40 }");
  for (const int64_t units : {1, 3, 7}) ExpectPartsEqualWhole(spec, Patches(5, 6), {}, units);
}

// dinov2#506, #333: 512 rows are 16 x 32, and no square.
TEST(TableResampleTest, AGridIsASquareOnlyIfItsRowsAre) {
  const std::string rows = "table { shape: [513, 1] f32: \"" + std::string(513 * 4, 'a') + "\" }";
  EXPECT_EQ(SpecRefusal("table_resample { prefix_rows: 1 " + rows + " }"),
            "table_resample.grid_height: is required: 512 patch rows are no square");
  EXPECT_EQ(
      SpecRefusal("table_resample { prefix_rows: 1 grid_height: 16 grid_width: 32 " + rows + " }"),
      "");
}

// transformers#35411: the canonical spec says which rule a table was made by.
TEST(TableResampleTest, TheCanonicalSpecNamesTheScaleRule) {
  const auto spec = Canonicalize(Spec("table_resample { " + Column({1}) + " }"));
  ASSERT_TRUE(spec.ok());
  EXPECT_TRUE(spec->proto().table_resample().has_scale_offset());
  EXPECT_EQ(spec->proto().table_resample().scale_offset(), 0);
  ExpectIdempotent("table_resample { " + Column({1, 2, 3, 4}) + " }");
}

TEST(TableResampleTest, BadSpecsAreRefusedWithTheFieldTheRuleAndTheValue) {
  const std::string table = Column({1, 2, 3, 4}) + " ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "table_resample.table: is required"},
      {"table { shape: [4] values: [1, 2, 3, 4] }",
       "table_resample.table.shape: must be [any, any], got [4]"},
      {"table { shape: [4, 2] values: [1, 2, 3, 4] }",
       "table_resample.table: shape [4, 2] needs 32 bytes of f32, got 16"},
      {table + "prefix_rows: 4",
       "table_resample.table.shape: must have more rows than prefix_rows and suffix_rows (4), "
       "got 4"},
      {table + "prefix_rows: -1", "table_resample.prefix_rows: must be in [0, 1073741824], got -1"},
      {table + "suffix_rows: 9223372036854775807",
       "table_resample.suffix_rows: must be in [0, 1073741824], got 9223372036854775807"},
      {table + "pad_to_rows: -1", "table_resample.pad_to_rows: must be in [0, 1073741824], got -1"},
      {table + "grid_width: 4", "table_resample.grid_height: is required with the other side"},
      {table + "grid_height: 4", "table_resample.grid_width: is required with the other side"},
      {table + "grid_height: 3 grid_width: 1",
       "table_resample.grid_width: grid_height * grid_width must be the 4 patch rows of the "
       "table, got 3 * 1"},
      {table + "grid_height: 5 grid_width: 1",
       "table_resample.grid_height: must be in [1, 4], got 5"},
      {table + "kernel: 9", "table_resample.kernel: unknown value 9"},
      {table + "kernel: RESAMPLE_KERNEL_NEAREST",
       "table_resample.kernel: must be bicubic or bilinear with uniform spacing, got nearest"},
      {table + "scale_offset: -0.1", "table_resample.scale_offset: must be in [0, 1], got -0.1"},
      {table + "scale_offset: nan", "table_resample.scale_offset: must be in [0, 1], got nan"},
      {table + "align_corners: true antialias: true",
       "table_resample.align_corners: has no meaning with antialias or scale_offset"}};
  for (const auto& [spec, message] : cases) {
    EXPECT_EQ(SpecRefusal("table_resample { " + spec + " }"), message);
  }
  EXPECT_EQ(TableRefusal("table_resample { " + table + " }", Patches(0, 3)),
            "selection.patch_grid: must have at least one patch");
  EXPECT_EQ(TableRefusal("table_resample { " + table + " }", SelectRange(0, 3)),
            "selection: needs a patch_grid for this encoding, got position_range");
}

}  // namespace
}  // namespace posenc::testing
