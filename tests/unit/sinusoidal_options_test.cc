// What sinusoids have besides the paper's form: frequency rules and expressions,
// scales, orders, real positions, given frequencies.
#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/numeric/dtype.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<float> Rows(const std::string& fields, const v1::Selection& selection) {
  return FillOne(absl::StrCat("sinusoidal { ", fields, " }"), selection).As<float>();
}

v1::Selection SelectPoints(const std::vector<double>& points) {
  v1::Selection selection;
  selection.mutable_points()->set_dimensions(1);
  selection.mutable_points()->mutable_coordinates()->Add(points.begin(), points.end());
  return selection;
}

// Orders -----------------------------------------------------------------------------

TEST(SinusoidalOptionsTest, DescendingRowsAreTheAscendingOnesReversed) {
  const auto up = Rows("d_model: 4", SelectRange(-3, 6));
  const auto down =
      FillOne("sinusoidal { d_model: 4 row_order: ROW_ORDER_DESCENDING }", SelectRange(-3, 6));
  EXPECT_EQ(down.tensor.origin, -5 * 4);  // the address of position p is -p
  for (size_t row = 0; row < 9; ++row) {
    for (size_t column = 0; column < 4; ++column) {
      EXPECT_EQ(down.As<float>()[row * 4 + column], up[(8 - row) * 4 + column]);
    }
  }
}

// Wav2Vec2-Conformer in transformers 5.16.0.dev0, L = 3: distances 2, 1, 0, -1, -2.
TEST(SinusoidalOptionsTest, ConformersHaveARowForEachDistance) {
  const auto rows =
      FillOne("sinusoidal { d_model: 4 preset: SINUSOIDAL_PRESET_CONFORMER }", SelectGrid(3, 3));
  EXPECT_THAT(rows.tensor.shape, ElementsAre(5, 4));
  EXPECT_EQ(rows.As<float>(),
            Rows("d_model: 4 arithmetic: ARITHMETIC_FLOAT32", SelectIds({2, 1, 0, -1, -2})));
  // A query further on has all its keys behind it.
  EXPECT_EQ(
      FillOne("sinusoidal { d_model: 4 preset: SINUSOIDAL_PRESET_CONFORMER }", SelectGrid(1, 3, 7))
          .As<float>(),
      Rows("d_model: 4 arithmetic: ARITHMETIC_FLOAT32", SelectIds({7, 6, 5})));
}

// XLNet clamps to both sides, Transformer-XL from above.
TEST(SinusoidalOptionsTest, PositionsAreClampedAfterTheOffset) {
  EXPECT_EQ(Rows("d_model: 4 position_offset: 1 clamp_min: -2 clamp_max: 3", SelectRange(-5, 6)),
            Rows("d_model: 4", SelectIds({-2, -2, -2, -1, 0, 1, 2, 3, 3, 3, 3})));
}

TEST(SinusoidalOptionsTest, EveryOrderIsTheSameInParts) {
  for (const int64_t units : {1, 2, 3, 100}) {
    ExpectPartsEqualWhole(Spec("sinusoidal { d_model: 5 row_order: ROW_ORDER_DESCENDING }"),
                          SelectRange(-3, 8), {}, units);
    ExpectPartsEqualWhole(Spec("sinusoidal { d_model: 5 row_order: ROW_ORDER_RELATIVE }"),
                          SelectGrid(4, 6, 2), {}, units);
    ExpectPartsEqualWhole(Spec("sinusoidal { d_model: 5 }"), SelectPoints({0.5, -3.25, 7, 1e6}),
                          Format("dtype: DTYPE_F16"), units);
  }
}

// Frequencies --------------------------------------------------------------------------

// The slow twin of the rules: the real frequency k of n.
Real RealFrequency(const std::string& rule, double base, double min, double shift, int64_t k,
                   int64_t n, int64_t d_model) {
  if (rule == "T2T") {
    const Real last = Real::FromInt(n > 1 ? n - 1 : 1);
    return Real(min) * Pow(Real(base) / Real(min), -Real::FromInt(k) / last);
  }
  if (rule == "SHIFT") return Pow(Real(base), -Real::FromInt(k) / (Real::FromInt(n) - Real(shift)));
  return Pow(Real(base), -Real::FromInt(2 * k) / Real::FromInt(d_model));
}

TEST(SinusoidalOptionsTest, ExactTablesHaveTheRealFrequencies) {
  struct Case {
    const char* fields;
    const char* rule;
    double min;
    double shift;
  };
  for (const Case& c : std::vector<Case>{
           {"frequency_rule: FREQUENCY_RULE_T2T min_timescale: 2", "T2T", 2, 0},
           {"frequency_rule: FREQUENCY_RULE_SHIFT", "SHIFT", 1, 1},
           {"frequency_rule: FREQUENCY_RULE_SHIFT frequency_shift: 0", "SHIFT", 1, 0},
           {"frequency_rule: FREQUENCY_RULE_SHIFT frequency_shift: 0.75", "SHIFT", 1, 0.75}}) {
    const auto table = FillTable(
        Spec(absl::StrCat("sinusoidal { d_model: 12 arithmetic: ARITHMETIC_EXACT base: 5000 ",
                          c.fields, " }")),
        SelectIds({1, -77, 131071}), {});
    ASSERT_TRUE(table.ok()) << table.status();
    const auto values = table->tensors[0].As<float>();
    size_t index = 0;
    for (const int64_t x : {1, -77, 131071}) {
      for (int64_t column = 0; column < 12; ++column, ++index) {
        const Real angle =
            Real::FromInt(x) * RealFrequency(c.rule, 5000, c.min, c.shift, column / 2, 6, 12);
        const Real value = column % 2 == 0 ? Sin(angle) : Cos(angle);
        ASSERT_EQ(values[index], value.ToFloat()) << c.fields << " " << x << " " << column;
      }
    }
  }
}

TEST(SinusoidalOptionsTest, ExpressionsDifferInTheirLastBitsOnly) {
  const auto frequencies = [](const char* expression) {
    const auto table =
        FillTable(Spec(absl::StrCat("sinusoidal { d_model: 384 arithmetic: ARITHMETIC_FLOAT32 "
                                    "frequency_expression: FREQUENCY_EXPRESSION_",
                                    expression, " }")),
                  SelectRange(0, 0), {});
    return std::vector<double>(table->description.inv_freq().begin(),
                               table->description.inv_freq().end());
  };
  const auto rounded = frequencies("ROUNDED");
  for (size_t k = 0; k < rounded.size(); ++k) {
    const Real real = RealFrequency("THETA", 10000, 1, 0, static_cast<int64_t>(k), 192, 384);
    ASSERT_EQ(static_cast<float>(rounded[k]), real.ToFloat());
  }
  for (const char* expression :
       {"EXP_PRODUCT", "EXP_QUOTIENT", "POW_RECIPROCAL", "POW", "EXP_LINSPACE"}) {
    const auto other = frequencies(expression);
    EXPECT_NE(other, rounded) << expression;
    for (size_t k = 0; k < rounded.size(); ++k) {
      // Up to 13 ulp for exp of a rounded exponent of magnitude ln(10000).
      EXPECT_NEAR(other[k], rounded[k], 13 * 0x1p-23 * rounded[k]) << expression << " " << k;
    }
  }
}

// mlx#3614, tensor2tensor: widths 2 and 3 have one frequency, 1.
TEST(SinusoidalOptionsTest, TheGuardGivesASingleFrequency) {
  const std::string preset = " preset: SINUSOIDAL_PRESET_TENSOR2TENSOR";
  EXPECT_EQ(Rows("d_model: 2" + preset, SelectIds({1})),
            Rows("d_model: 2 arithmetic: ARITHMETIC_FLOAT32", SelectIds({1})));
  EXPECT_THAT(Rows("d_model: 3" + preset, SelectIds({1})),
              ElementsAre(0.841470957f, 0.540302277f, 0.0f));
}

// Scales -------------------------------------------------------------------------------

TEST(SinusoidalOptionsTest, ExactScalesAreInsideTheRounding) {
  const auto values = FillOne("sinusoidal { d_model: 8 position_scale: 0.1 out_scale: 0.3 }",
                              SelectIds({3, 70000}));
  size_t index = 0;
  for (const int64_t x : {3, 70000}) {
    for (int64_t column = 0; column < 8; ++column, ++index) {
      const Real angle =
          Real::FromInt(x) * Real(0.1) * RealFrequency("THETA", 10000, 1, 0, column / 2, 4, 8);
      const Real value = Real(0.3) * (column % 2 == 0 ? Sin(angle) : Cos(angle));
      EXPECT_EQ(values.As<float>()[index], value.ToFloat()) << x << " " << column;
    }
  }
}

// diffusers multiplies the product of timestep and frequency.
TEST(SinusoidalOptionsTest, Float32ScalesAreRoundedInTheirOrder) {
  const std::string fields = "d_model: 8 arithmetic: ARITHMETIC_FLOAT32";
  const auto table =
      FillTable(Spec(absl::StrCat("sinusoidal { ", fields, " }")), SelectRange(0, 0), {});
  const auto values =
      Rows(absl::StrCat(fields, " position_scale: 0.1 out_scale: 0.3"), SelectIds({3, 70001}));
  size_t index = 0;
  for (const float x : {3.0f, 70001.0f}) {
    for (int column = 0; column < 8; ++column, ++index) {
      const auto frequency = static_cast<float>(table->description.inv_freq(column / 2));
      const float angle = 0.1f * (x * frequency);
      const float value = (column % 2 == 0 ? Sin(Real(angle)) : Cos(Real(angle))).ToFloat();
      EXPECT_EQ(values[index], value * 0.3f) << x << " " << column;
    }
  }
}

// Real positions -----------------------------------------------------------------------

// Rows come from a kernel in runs, whichever way ids go; points one at a time.
TEST(SinusoidalOptionsTest, RunsOfRowsAreTheRowsOneByOne) {
  std::vector<int64_t> ids = {3, 2, 1, 5, 6, 7, 7, 9, 8, -1, 131070};
  for (int64_t id = 400; id > 0; --id) ids.push_back(id);
  for (int64_t id = 0; id < 400; ++id) ids.push_back(id * id % 7 == 0 ? id : 5 * id);
  for (int64_t id = -300; id < 300; ++id) ids.push_back(id);
  const std::vector<double> points(ids.begin(), ids.end());
  for (const char* fields :
       {"d_model: 64", "d_model: 33", "d_model: 64 preset: SINUSOIDAL_PRESET_WHISPER",
        "d_model: 64 preset: SINUSOIDAL_PRESET_MUSICGEN clamp_min: -5 clamp_max: 90",
        "d_model: 9 layout: SINUSOIDAL_LAYOUT_COS_ONLY", "d_model: 70 out_scale: 0.5"}) {
    ASSERT_EQ(Rows(fields, SelectIds(ids)), Rows(fields, SelectPoints(points))) << fields;
  }
}

TEST(SinusoidalOptionsTest, PointsThatAreIntegersAreThePositions) {
  for (const char* fields : {"d_model: 7", "d_model: 8 preset: SINUSOIDAL_PRESET_WHISPER"}) {
    EXPECT_EQ(Rows(fields, SelectPoints({0, 1, -5, 131071})),
              Rows(fields, SelectIds({0, 1, -5, 131071})));
  }
}

TEST(SinusoidalOptionsTest, PointsMayBeFractions) {
  const std::vector<double> points = {0.125, 998.39, -1e-3, 1.0 / 3};
  const auto exact = Rows("d_model: 6", SelectPoints(points));
  const auto float32 = Rows("d_model: 6 arithmetic: ARITHMETIC_FLOAT32", SelectPoints(points));
  const auto table = FillTable(Spec("sinusoidal { d_model: 6 arithmetic: ARITHMETIC_FLOAT32 }"),
                               SelectRange(0, 0), {});
  size_t index = 0;
  for (const double x : points) {
    for (int column = 0; column < 6; ++column, ++index) {
      const Real angle = Real(x) * RealFrequency("THETA", 10000, 1, 0, column / 2, 3, 6);
      EXPECT_EQ(exact[index], (column % 2 == 0 ? Sin(angle) : Cos(angle)).ToFloat());
      const float rounded =
          static_cast<float>(x) * static_cast<float>(table->description.inv_freq(column / 2));
      EXPECT_EQ(float32[index],
                (column % 2 == 0 ? Sin(Real(rounded)) : Cos(Real(rounded))).ToFloat());
    }
  }
}

// Given frequencies --------------------------------------------------------------------

// Kazemi et al. 2019: the paper has the linear term first, a popular port last.
TEST(SinusoidalOptionsTest, Time2VecHasALinearColumn) {
  const std::string given =
      "d_model: 3 preset: SINUSOIDAL_PRESET_TIME2VEC frequencies: [0.5, 2, -3.25] "
      "phases: [0.25, 0.1, -1]";
  const std::vector<double> times = {0, 1.5, -20};
  const auto float32 = Rows(given, SelectPoints(times));
  const auto exact = Rows(given + " arithmetic: ARITHMETIC_EXACT", SelectPoints(times));
  const auto last = Rows(given + " linear_column: LINEAR_COLUMN_LAST", SelectPoints(times));
  const double w[] = {0.5, 2, -3.25};
  const double b[] = {0.25, 0.1, -1};
  for (size_t row = 0; row < 3; ++row) {
    for (size_t k = 0; k < 3; ++k) {
      const float rounded =
          static_cast<float>(times[row]) * static_cast<float>(w[k]) + static_cast<float>(b[k]);
      const Real real = Real(times[row]) * Real(w[k]) + Real(b[k]);
      EXPECT_EQ(float32[row * 3 + k], k == 0 ? rounded : Sin(Real(rounded)).ToFloat());
      EXPECT_EQ(exact[row * 3 + k], k == 0 ? real.ToFloat() : Sin(real).ToFloat());
      EXPECT_EQ(last[row * 3 + k], k == 2 ? rounded : Sin(Real(rounded)).ToFloat());
    }
  }
}

// Xu et al. 2020: cosines of t * 10^(-9k/(d-1)). The second is the float nearest to
// cos(0.002); the executed reference has its neighbour.
TEST(SinusoidalOptionsTest, TgatIsCosinesOfTime) {
  EXPECT_THAT(Rows("d_model: 4 preset: SINUSOIDAL_PRESET_TGAT", SelectPoints({2})),
              ElementsAre(-0.41614684f, 0.999997973f, 1.0f, 1.0f));
}

// 16-bit arithmetic --------------------------------------------------------------------

// Pegasus-X computes in the model's dtype: positions from 256 on are rounded too.
TEST(SinusoidalOptionsTest, AComputeDTypeRoundsEveryStep) {
  const auto round = [](float value) { return Bf16ToFloat(RoundToBf16(value)); };
  const auto values = Rows(
      "d_model: 8 preset: SINUSOIDAL_PRESET_PEGASUS_X "
      "compute_dtype: COMPUTE_DTYPE_BF16",
      SelectIds({1, 257, 1003}));
  const auto step = static_cast<float>(-Log(Real(10000.0)).ToDouble() / 3);
  for (size_t row = 0; row < 3; ++row) {
    const float position = round(std::vector<float>{1, 257, 1003}[row]);
    for (size_t k = 0; k < 4; ++k) {
      const float frequency = round(Exp(Real(round(static_cast<float>(k) * step))).ToFloat());
      const float angle = round(position * frequency);
      EXPECT_EQ(values[row * 8 + k], round(Sin(Real(angle)).ToFloat()));
      EXPECT_EQ(values[row * 8 + 4 + k], round(Cos(Real(angle)).ToFloat()));
    }
  }
  EXPECT_EQ(Rows("d_model: 8 preset: SINUSOIDAL_PRESET_PEGASUS_X compute_dtype: "
                 "COMPUTE_DTYPE_BF16",
                 SelectIds({257})),
            Rows("d_model: 8 preset: SINUSOIDAL_PRESET_PEGASUS_X compute_dtype: "
                 "COMPUTE_DTYPE_BF16",
                 SelectIds({256})));
}

}  // namespace
}  // namespace posenc::testing
