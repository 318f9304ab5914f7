// BEiT's stretched bias tables: the spline against one that is solved in full, and the
// laws of both kernels. Values that SciPy makes: tests/golden/beit_stretch.jsonl.
#include "lib/families/geometric_stretch.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/families/geometric_spacing.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;

using Line = std::vector<long double>;

// Of sums of numbers in [-1, 1) with weights that are doubles.
constexpr double kSlack = 1e-14;

constexpr char kSpline[] = " source_spacing: RESAMPLE_SPACING_GEOMETRIC";
constexpr char kBilinear[] =
    " source_spacing: RESAMPLE_SPACING_GEOMETRIC kernel: RESAMPLE_KERNEL_BILINEAR";

// Sides of windows of 14 to 24, 7 to 12, 3 to 5 (the spline's least), 14 to 7, 3 to 23
// (ratio 1.5 does not reach), and one that stays while the other changes.
constexpr std::pair<int64_t, int64_t> kSides[] = {{27, 47}, {13, 23}, {5, 9},
                                                  {27, 13}, {5, 45},  {27, 27}};

v1::Selection Patches(int64_t height, int64_t width) {
  return Select(absl::StrCat("patch_grid { height: ", height, " width: ", width, " }"));
}

// In [-1, 1), of few enough digits that text keeps them.
std::vector<float> RandomNumbers(int64_t count) {
  std::minstd_rand random(11);
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<float>(random() % 128) / 64 - 1);
  }
  return numbers;
}

std::string Table(const std::vector<float>& values, int64_t heads = 1) {
  return absl::StrCat("table { shape: [", values.size() / static_cast<size_t>(heads), ", ", heads,
                      "] values: [", absl::StrJoin(values, ","), "] }");
}

FilledTensor Stretched(const std::string& fields, const v1::Selection& patches,
                       const std::string& format = "") {
  return FillOne("table_resample { " + fields + " }", patches, format);
}

// The spline, slowly ----------------------------------------------------------------

// Solves a x = b by elimination with the largest pivot of each column.
Line Solve(std::vector<Line> a, Line b) {
  const size_t n = b.size();
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column; row < n; ++row) {
      if (std::fabs(a[row][column]) > std::fabs(a[pivot][column])) pivot = row;
    }
    std::swap(a[column], a[pivot]);
    std::swap(b[column], b[pivot]);
    for (size_t row = column + 1; row < n; ++row) {
      const long double factor = a[row][column] / a[column][column];
      for (size_t k = column; k < n; ++k) a[row][k] -= factor * a[column][k];
      b[row] -= factor * b[column];
    }
  }
  for (size_t row = n; row-- > 0;) {
    for (size_t k = row + 1; k < n; ++k) b[row] -= a[row][k] * b[k];
    b[row] /= a[row][row];
  }
  return b;
}

// A cubic a piece, c0 + c1 u + c2 u^2 + c3 u^3 at u from the piece's beginning: all
// coefficients at once from what makes them the spline.
Line Coefficients(const std::vector<double>& x, const Line& y) {
  const size_t pieces = x.size() - 1;
  std::vector<Line> a;
  Line b;
  const auto equation = [&](size_t first, std::initializer_list<long double> factors,
                            long double value) {
    Line& row = a.emplace_back(4 * pieces, 0.0L);
    std::copy(factors.begin(), factors.end(), row.begin() + static_cast<std::ptrdiff_t>(first));
    b.push_back(value);
  };
  for (size_t i = 0; i < pieces; ++i) {
    const long double h = static_cast<long double>(x[i + 1]) - x[i];
    equation(4 * i, {1}, y[i]);
    equation(4 * i, {1, h, h * h, h * h * h}, y[i + 1]);
    if (i + 1 == pieces) break;
    equation(4 * i, {0, 1, 2 * h, 3 * h * h, 0, -1}, 0);  // the slope goes on
    equation(4 * i, {0, 0, 2, 6 * h, 0, 0, -2}, 0);       // the bend goes on
  }
  for (const size_t i : {size_t{0}, pieces - 2}) {  // not a knot
    equation(4 * i, {0, 0, 0, 1, 0, 0, 0, -1}, 0);
  }
  return Solve(std::move(a), std::move(b));
}

// Read at the integers; beyond the samples, the last one.
Line SlowSpline(const Line& y, int64_t new_size) {
  const std::vector<double> x = GeometricCoordinates(static_cast<int64_t>(y.size()), new_size);
  const Line c = Coefficients(x, y);
  Line read;
  for (int64_t at = -(new_size / 2); at <= new_size / 2; ++at) {
    const double clamped = std::clamp(static_cast<double>(at), x.front(), x.back());
    size_t i = 0;
    while (i + 2 < x.size() && x[i + 1] <= clamped) ++i;
    const long double u = static_cast<long double>(clamped) - x[i];
    read.push_back(((c[4 * i + 3] * u + c[4 * i + 2]) * u + c[4 * i + 1]) * u + c[4 * i]);
  }
  return read;
}

// The table of one head, `height` lines of `width`: along the lines, then down them.
Line SlowStretch(const std::vector<float>& table, int64_t width, const v1::PatchGrid& to) {
  std::vector<Line> columns(static_cast<size_t>(to.width()));
  for (auto row = table.begin(); row != table.end(); row += width) {
    const Line read = SlowSpline(Line(row, row + width), to.width());
    for (size_t x = 0; x < columns.size(); ++x) columns[x].push_back(read[x]);
  }
  Line stretched(static_cast<size_t>(to.height() * to.width()));
  for (size_t x = 0; x < columns.size(); ++x) {
    const Line read = SlowSpline(columns[x], to.height());
    for (size_t y = 0; y < read.size(); ++y) stretched[y * columns.size() + x] = read[y];
  }
  return stretched;
}

TEST(GeometricStretchTest, IsTheSplineSolvedInFullAlongEachSide) {
  for (size_t i = 0; i < std::size(kSides); ++i) {
    const auto& [height, new_height] = kSides[i];
    const auto& [width, new_width] = kSides[(i + 1) % std::size(kSides)];
    const std::vector<float> table = RandomNumbers(height * width);
    const v1::Selection patches = Patches(new_height, new_width);
    const std::vector<double> got = Stretched(absl::StrCat(Table(table), " grid_height: ", height,
                                                           " grid_width: ", width, kSpline),
                                              patches, "dtype: DTYPE_F64")
                                        .As<double>();
    const Line want = SlowStretch(table, width, patches.patch_grid());
    ASSERT_EQ(got.size(), want.size());
    for (size_t k = 0; k < got.size(); ++k) {
      ASSERT_NEAR(got[k], static_cast<double>(want[k]), kSlack)
          << height << " x " << width << " -> " << new_height << " x " << new_width;
    }
  }
}

// Laws ------------------------------------------------------------------------------

double Sum(const std::vector<Tap>& taps, const std::vector<double>& samples) {
  double sum = 0;
  for (const Tap& tap : taps) sum += tap.weight * samples[static_cast<size_t>(tap.index)];
  return sum;
}

TEST(GeometricStretchTest, PolynomialsComeBackWhereThereAreSamples) {
  for (const auto& [size, new_size] : kSides) {
    const std::vector<double> x = GeometricCoordinates(size, new_size);
    for (const auto& [kernel, degree] :
         {std::pair(v1::RESAMPLE_KERNEL_CUBIC_SPLINE, 3), {v1::RESAMPLE_KERNEL_BILINEAR, 1}}) {
      const auto polynomial = [degree = degree, reach = x.back()](double at) {
        return std::pow(at / reach, degree) - 0.5 * at / reach + 0.25;
      };
      std::vector<double> samples;
      for (const double at : x) samples.push_back(polynomial(at));
      const GeometricAxis axis(size, new_size, kernel);
      std::vector<Tap> taps;
      for (int64_t output = 0; output < new_size; ++output) {
        axis.TapsOf(output, &taps);
        const double at =
            std::clamp(static_cast<double>(output - new_size / 2), x.front(), x.back());
        ASSERT_NEAR(Sum(taps, samples), polynomial(at), kSlack) << size << " -> " << new_size;
      }
    }
  }
}

// The middle three samples stand at -1, 0 and 1 whatever the ratio.
TEST(GeometricStretchTest, SamplesThatStandAtIntegersAreKeptBitForBit) {
  const std::vector<float> table = RandomNumbers(7 * 7);
  for (const char* kernel : {kSpline, kBilinear}) {
    const std::vector<float> got = Stretched(Table(table) + kernel, Patches(13, 13)).As<float>();
    for (size_t y = 0; y < 3; ++y) {
      for (size_t x = 0; x < 3; ++x)
        EXPECT_EQ(got[(5 + y) * 13 + 5 + x], table[(2 + y) * 7 + 2 + x]);
    }
  }
}

// 3 -> 23: a ratio of 1.5 puts the last of 5 offsets at 2.5, and 22 are asked for.
TEST(GeometricStretchTest, BeyondTheLastSampleIsTheLastSample) {
  const std::vector<float> table = RandomNumbers(5 * 5);
  for (const char* kernel : {kSpline, kBilinear}) {
    const std::vector<float> got = Stretched(Table(table) + kernel, Patches(45, 45)).As<float>();
    for (size_t y = 0; y < 20; ++y) {
      for (size_t x = 0; x < 20; ++x) ASSERT_EQ(got[y * 45 + x], table[0]);
      for (size_t x = 25; x < 45; ++x) ASSERT_EQ(got[y * 45 + x], table[4]);
    }
  }
}

TEST(GeometricStretchTest, AConstantStaysAndASymmetricTableStaysSymmetric) {
  std::vector<float> symmetric = RandomNumbers(13 * 13);
  for (size_t i = 0; i < symmetric.size(); ++i) symmetric[symmetric.size() - 1 - i] = symmetric[i];
  for (const char* kernel : {kSpline, kBilinear}) {
    EXPECT_THAT(
        Stretched(Table(std::vector<float>(13 * 13, 0.1f)) + kernel, Patches(23, 27)).As<float>(),
        Each(0.1f));
    const std::vector<double> got =
        Stretched(Table(symmetric) + kernel, Patches(23, 27), "dtype: DTYPE_F64").As<double>();
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], got[got.size() - 1 - i], kSlack);
    }
  }
}

// timm's table of a window that shrinks to one offset: the middle of the table.
TEST(GeometricStretchTest, ASideOfOneOffsetIsTheMiddleAndStretchesToItself) {
  const std::vector<float> table = RandomNumbers(5 * 5);
  EXPECT_THAT(Stretched(Table(table) + kBilinear, Patches(1, 1)).As<float>(),
              ElementsAreArray({table[12]}));
  EXPECT_THAT(Stretched(Table({3}) + kBilinear, Patches(3, 5)).As<float>(), Each(3.0f));
}

// Both references leave a table of the right size alone; -0 shows that it is not summed.
TEST(GeometricStretchTest, TheSameWindowIsTheSameBits) {
  std::vector<float> table = RandomNumbers((5 * 7 + 3) * 2);
  table[3] = -0.0f;
  for (const char* kernel : {kSpline, kBilinear}) {
    const std::vector<float> got =
        Stretched(Table(table, 2) + " suffix_rows: 3 grid_height: 5 grid_width: 7" + kernel,
                  Patches(5, 7))
            .As<float>();
    EXPECT_EQ(got, table);
    EXPECT_TRUE(std::signbit(got[3]));
  }
}

// timm decides for the table, not for a side: where one side changes, the other is read at
// its coordinates as well, which begin at a ratio of 1.01 and not at 1.
TEST(GeometricStretchTest, ASideThatStaysIsReadAgainWhenTheOtherChanges) {
  const std::vector<float> table = RandomNumbers(9 * 9);
  const std::vector<float> got = Stretched(Table(table) + kBilinear, Patches(9, 11)).As<float>();
  EXPECT_EQ(got[4 * 11 + 5], table[4 * 9 + 4]);
  EXPECT_NE(got[0 * 11 + 5], table[0 * 9 + 4]);
}

TEST(GeometricStretchTest, RowsOfTheClassTokenAreKept) {
  std::vector<float> table = RandomNumbers(5 * 5 + 3);
  for (const char* kernel : {kSpline, kBilinear}) {
    const std::vector<float> got =
        Stretched(Table(table) + " suffix_rows: 3" + kernel, Patches(7, 7)).As<float>();
    ASSERT_EQ(got.size(), 52u);
    EXPECT_THAT(std::vector<float>(got.end() - 3, got.end()),
                ElementsAreArray(std::vector<float>(table.end() - 3, table.end())));
  }
}

TEST(GeometricStretchTest, AnySplitOfTheTableGivesTheSameBytes) {
  for (const char* kernel : {kSpline, kBilinear}) {
    const v1::EncodingSpec spec =
        Spec("table_resample { " + Table(RandomNumbers(76), 2) +
             " suffix_rows: 3 grid_height: 5 grid_width: 7" + kernel + " }");
    for (const int64_t units : {1, 4, 23}) ExpectPartsEqualWhole(spec, Patches(9, 7), {}, units);
  }
}

// Specs -----------------------------------------------------------------------------

TEST(GeometricStretchTest, UniformSpacingStaysOutOfTheCanonicalSpec) {
  const auto uniform = Canonicalize(Spec("table_resample { " + Table({1, 2, 3, 4}) +
                                         " source_spacing: RESAMPLE_SPACING_UNIFORM }"));
  const auto unset = Canonicalize(Spec("table_resample { " + Table({1, 2, 3, 4}) + " }"));
  ASSERT_TRUE(uniform.ok() && unset.ok());
  EXPECT_EQ(uniform->key(), unset->key());
  EXPECT_EQ(unset->proto().table_resample().source_spacing(), v1::RESAMPLE_SPACING_UNSPECIFIED);
  ExpectIdempotent("table_resample { " + Table(RandomNumbers(25)) + kSpline + " }");
  EXPECT_EQ(Canonicalize(Spec("table_resample { " + Table(RandomNumbers(25)) + kSpline + " }"))
                ->proto()
                .table_resample()
                .kernel(),
            v1::RESAMPLE_KERNEL_CUBIC_SPLINE);
}

TEST(GeometricStretchTest, BadSpecsAreRefusedWithTheFieldTheRuleAndTheValue) {
  const std::string table = Table(RandomNumbers(25));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {table + " source_spacing: 7", "table_resample.source_spacing: unknown value 7"},
      {table + " kernel: RESAMPLE_KERNEL_CUBIC_SPLINE",
       "table_resample.kernel: must be bicubic or bilinear with uniform spacing, got cubic_spline"},
      {table + kSpline + " kernel: RESAMPLE_KERNEL_BICUBIC",
       "table_resample.kernel: must be cubic_spline or bilinear with geometric spacing, got "
       "bicubic"},
      {table + kSpline + " antialias: true",
       "table_resample.source_spacing: geometric has no antialias, align_corners or scale_offset"},
      {table + kBilinear + " align_corners: true",
       "table_resample.source_spacing: geometric has no antialias, align_corners or scale_offset"},
      {table + kSpline + " scale_offset: 0.1",
       "table_resample.source_spacing: geometric has no antialias, align_corners or scale_offset"},
      {Table(RandomNumbers(9)) + kSpline,
       "table_resample.grid_height: must be in [5, 8191], got 3"},
      {Table(RandomNumbers(15)) + " grid_height: 5 grid_width: 3" + kSpline,
       "table_resample.grid_width: must be in [5, 8191], got 3"},
      {Table(RandomNumbers(36)) + kBilinear,
       "table_resample.grid_height: must be odd (2 window - 1), got 6"}};
  for (const auto& [spec, message] : cases) {
    EXPECT_EQ(SpecRefusal("table_resample { " + spec + " }"), message);
  }
  EXPECT_EQ(SpecRefusal("patch_positions { patches_per_side: 5 "
                        "kernel: RESAMPLE_KERNEL_CUBIC_SPLINE }"),
            "patch_positions.kernel: must be nearest, bilinear or bicubic, got cubic_spline");
}

// A window gives an odd number of offsets: 12 is asked for as 23.
TEST(GeometricStretchTest, BadGridsAreRefusedWithTheFieldTheRuleAndTheValue) {
  const std::string spec = "table_resample { " + Table(RandomNumbers(25)) + kSpline + " }";
  EXPECT_EQ(TableRefusal(spec, Patches(12, 23)),
            "selection.patch_grid.height: must be odd (2 window - 1), got 12");
  EXPECT_EQ(TableRefusal(spec, Patches(23, 12)),
            "selection.patch_grid.width: must be odd (2 window - 1), got 12");
  EXPECT_EQ(TableRefusal(spec, Patches(5, 8193)),
            "selection.patch_grid.width: must be in [1, 8191], got 8193");
  EXPECT_EQ(TableRefusal(spec, Patches(0, 5)),
            "selection.patch_grid: must have at least one patch");
}

}  // namespace
}  // namespace posenc::testing
