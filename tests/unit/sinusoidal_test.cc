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

// The slow twin: angle of column `k` at `x` by the real formula.
Real Angle(const std::string& rule, double base, int64_t d_model, int64_t k, int64_t pairs,
           int64_t x) {
  const Real exponent = rule == "T2T" ? Real::FromInt(k) / Real::FromInt(pairs - 1)
                                      : Real::FromInt(2 * k) / Real::FromInt(d_model);
  return Real::FromInt(x) * Pow(Real(base), -exponent);
}

// The first row of the paper's table is all sines of 0 and cosines of 0; values of
// the others as DistilBERT computes them (float64, rounded once).
TEST(SinusoidalTest, RowsZeroToThreeOfWidthFour) {
  EXPECT_THAT(FillOne("sinusoidal { d_model: 4 }", SelectRange(0, 4)).As<float>(),
              ElementsAre(0.0f, 1.0f, 0.0f, 1.0f,                                    //
                          0.841470957f, 0.540302277f, 0.00999983307f, 0.999949992f,  //
                          0.909297407f, -0.416146845f, 0.0199986659f, 0.999800026f,  //
                          0.141120002f, -0.989992499f, 0.029995501f, 0.999550045f));
}

// fairseq, width 4, padding_idx 1: executed, rows 0 to 3.
TEST(SinusoidalTest, FairseqZeroesThePaddingRow) {
  const std::string spec =
      "sinusoidal { d_model: 4 layout: SINUSOIDAL_LAYOUT_HALF_SIN_COS "
      "frequency_rule: FREQUENCY_RULE_T2T padding_row: 1 }";
  EXPECT_THAT(FillOne(spec, SelectRange(0, 4)).As<float>(),
              ElementsAre(0.0f, 0.0f, 1.0f, 1.0f,                             //
                          0.0f, 0.0f, 0.0f, 0.0f,                             //
                          0.909297407f, 0.00019999998f, -0.416146845f, 1.0f,  //
                          0.141120002f, 0.000299999956f, -0.989992499f, 0.99999994f));
}

// XGLM looks up position + 2 in a table whose row 1 is zero: no position gets it.
TEST(SinusoidalTest, ThePaddingRowIsATableIndexSoTheOffsetComesFirst) {
  const auto row = [](const char* fields, int64_t position) {
    return FillOne(absl::StrCat("sinusoidal { d_model: 4 ", fields, " }"),
                   SelectRange(position, position + 1))
        .As<float>();
  };
  EXPECT_EQ(row("position_offset: 2 padding_row: 1", 1), row("", 3));
  EXPECT_THAT(row("position_offset: 2 padding_row: 1", -1), Each(0.0f));
}

TEST(SinusoidalTest, LayoutsArePermutationsOfOneAnother) {
  const auto rows = [](const char* layout) {
    return FillOne(absl::StrCat("sinusoidal { d_model: 6 layout: SINUSOIDAL_LAYOUT_", layout, " }"),
                   SelectIds({17}))
        .As<float>();
  };
  const auto x = rows("INTERLEAVED");
  EXPECT_THAT(rows("HALF_SIN_COS"), ElementsAre(x[0], x[2], x[4], x[1], x[3], x[5]));
  EXPECT_THAT(rows("HALF_COS_SIN"), ElementsAre(x[1], x[3], x[5], x[0], x[2], x[4]));
}

TEST(SinusoidalTest, OddWidthsEndAsTheirReferencesDo) {
  const auto row = [](const char* fields) {
    return FillOne(absl::StrCat("sinusoidal { d_model: 5 ", fields, " }"), SelectIds({1}))
        .As<float>();
  };
  // Marian in Hugging Face, executed: three sines, two cosines.
  EXPECT_THAT(row("layout: SINUSOIDAL_LAYOUT_HALF_SIN_COS"),
              ElementsAre(0.841470957f, 0.025116222f, 0.000630957307f, 0.540302277f, 0.999684513f));
  // fairseq, executed: two of each and a zero. The cosine of 1 is the correctly
  // rounded one (torch has the float above).
  EXPECT_THAT(row("layout: SINUSOIDAL_LAYOUT_HALF_SIN_COS frequency_rule: FREQUENCY_RULE_T2T"),
              ElementsAre(0.841470957f, 9.99999902e-05f, 0.540302277f, 1.0f, 0.0f));
  // An interleaved row just ends with a sine.
  EXPECT_THAT(row(""),
              ElementsAre(0.841470957f, 0.540302277f, 0.025116222f, 0.999684513f, 0.000630957307f));
}

TEST(SinusoidalTest, ExactIsTheRealValueRoundedOnceInEveryDtype) {
  const std::vector<int64_t> positions = {-2147483647, -4097, -1, 0, 1, 3, 65535, 2147483647};
  for (const char* rule : {"THETA", "T2T"}) {
    for (const double base : {10000.0, 20.0, 500000.0, 0.25}) {
      const std::string spec =
          absl::StrCat("sinusoidal { d_model: 10 frequency_rule: FREQUENCY_RULE_", rule,
                       " base: ", base, " arithmetic: ARITHMETIC_EXACT }");
      const auto f64 = FillOne(spec, SelectIds(positions), "dtype: DTYPE_F64").As<double>();
      const auto f32 = FillOne(spec, SelectIds(positions), "dtype: DTYPE_F32").As<float>();
      const auto f16 = FillOne(spec, SelectIds(positions), "dtype: DTYPE_F16").As<uint16_t>();
      const auto bf16 = FillOne(spec, SelectIds(positions), "dtype: DTYPE_BF16").As<uint16_t>();
      size_t i = 0;
      for (const int64_t x : positions) {
        for (int64_t column = 0; column < 10; ++column, ++i) {
          const Real angle = Angle(rule, base, 10, column / 2, 5, x);
          const Real value = column % 2 == 0 ? Sin(angle) : Cos(angle);
          ASSERT_EQ(f64[i], value.ToDouble()) << spec << x << " " << column;
          ASSERT_EQ(f32[i], value.ToFloat()) << spec << x << " " << column;
          ASSERT_EQ(f16[i], value.ToF16()) << spec << x << " " << column;
          ASSERT_EQ(bf16[i], value.ToBf16()) << spec << x << " " << column;
        }
      }
    }
  }
}

// ARITHMETIC_FLOAT32: each step of the reference's order rounded to float32.
TEST(SinusoidalTest, Float32RoundsWhereTheReferenceDoes) {
  const std::vector<int64_t> positions = {-100003, 0, 1, 1000, 131071, 2147483647};
  for (const bool t2t : {false, true}) {
    const std::string spec = absl::StrCat(
        "sinusoidal { d_model: 12 arithmetic: ARITHMETIC_FLOAT32 frequency_rule: FREQUENCY_RULE_",
        t2t ? "T2T" : "THETA", " }");
    const auto f32 = FillOne(spec, SelectIds(positions)).As<float>();
    const auto f64 = FillOne(spec, SelectIds(positions), "dtype: DTYPE_F64").As<double>();
    const double log_base = Log(Real(10000.0)).ToDouble();
    const auto step = static_cast<float>(-log_base / (t2t ? 5 : 12));
    size_t i = 0;
    for (const int64_t x : positions) {
      for (int64_t column = 0; column < 12; ++column, ++i) {
        const auto k = static_cast<float>(column / 2 * (t2t ? 1 : 2));
        const float frequency = Exp(Real(k * step)).ToFloat();
        const float angle = static_cast<float>(x) * frequency;
        const Real value = column % 2 == 0 ? Sin(Real(angle)) : Cos(Real(angle));
        ASSERT_EQ(f32[i], value.ToFloat()) << spec << x << " " << column;
        ASSERT_EQ(f64[i], static_cast<double>(f32[i]));
      }
    }
  }
}

// Vaswani et al. 2017, section 3.5: for any offset k, PE(pos + k) is a linear
// function of PE(pos), here a rotation of each (sine, cosine) pair by k w_i.
TEST(SinusoidalTest, AShiftIsAFixedLinearMap) {
  const std::string spec = "sinusoidal { d_model: 16 }";
  const auto unit = FillOne(spec, SelectIds({19}), "dtype: DTYPE_F64").As<double>();
  for (const int64_t position : {0, 1, 500, 131052}) {
    const auto from = FillOne(spec, SelectIds({position}), "dtype: DTYPE_F64").As<double>();
    const auto to = FillOne(spec, SelectIds({position + 19}), "dtype: DTYPE_F64").As<double>();
    for (size_t i = 0; i < 16; i += 2) {
      // Three roundings of numbers up to 1, and a sum.
      EXPECT_NEAR(to[i], from[i] * unit[i + 1] + from[i + 1] * unit[i], 0x1p-51);
      EXPECT_NEAR(to[i + 1], from[i + 1] * unit[i + 1] - from[i] * unit[i], 0x1p-51);
    }
  }
}

TEST(SinusoidalTest, AnySelectionIsItsRowsOneByOne) {
  const std::string spec = "sinusoidal { d_model: 7 position_offset: 3 padding_row: 2 }";
  const auto whole = FillOne(spec, SelectRange(-5, 6)).As<float>();
  std::vector<float> rows;
  for (int64_t position = -5; position < 6; ++position) {
    const auto row = FillOne(spec, SelectIds({position})).As<float>();
    rows.insert(rows.end(), row.begin(), row.end());
  }
  EXPECT_EQ(rows, whole);
  const auto shuffled = FillOne(spec, SelectIds({4, -5, 4})).As<float>();
  EXPECT_THAT(std::vector<float>(shuffled.begin(), shuffled.begin() + 7),
              ElementsAreArray(std::vector<float>(whole.begin() + 63, whole.begin() + 70)));
}

TEST(SinusoidalTest, AnyPartsEqualTheWhole) {
  for (const char* dtype : {"DTYPE_F32", "DTYPE_F64", "DTYPE_F16", "DTYPE_BF16"}) {
    for (const int64_t units : {1, 2, 5, 100}) {
      ExpectPartsEqualWhole(Spec("sinusoidal { d_model: 5 padding_row: 4 }"), SelectRange(-3, 9),
                            Format(absl::StrCat("dtype: ", dtype)), units);
    }
  }
}

TEST(SinusoidalTest, AnEmptyRangeIsAnEmptyTable) {
  const auto empty = FillOne("sinusoidal { d_model: 8 }", SelectRange(5, 5));
  EXPECT_TRUE(empty.bytes.empty());
  EXPECT_THAT(empty.tensor.shape, ElementsAre(0, 8));
}

TEST(SinusoidalTest, RowsHaveTheAddressOfTheirPosition) {
  const auto rows = FillOne("sinusoidal { d_model: 8 }", SelectRange(-2, 5));
  EXPECT_EQ(rows.tensor.name, "positional_encoding");
  EXPECT_EQ(rows.tensor.unit, 8);
  EXPECT_EQ(rows.tensor.origin, -16);
}

TEST(SinusoidalTest, DescribeGivesTheFrequencies) {
  const auto description = [](const char* fields) {
    return FillTable(Spec(absl::StrCat("sinusoidal { d_model: 6 ", fields, " }")),
                     SelectRange(0, 0), {})
        ->description;
  };
  EXPECT_THAT(description("base: 1000").inv_freq(), ElementsAre(1.0, 0.1, 0.01));
  EXPECT_THAT(description("base: 10000 frequency_rule: FREQUENCY_RULE_T2T").inv_freq(),
              ElementsAre(1.0, 0.01f, 9.99999902e-05f));
}

TEST(SinusoidalTest, CanonicalFormIsCompleteAndIdempotent) {
  const auto text = [](const char* spec) {
    return Canonicalize(Spec(spec))->proto().ShortDebugString();
  };
  EXPECT_EQ(text("sinusoidal { d_model: 512 }"),
            "sinusoidal { d_model: 512 layout: SINUSOIDAL_LAYOUT_INTERLEAVED "
            "frequency_rule: FREQUENCY_RULE_THETA base: 10000 position_offset: 0 "
            "odd_dim_rule: ODD_DIM_RULE_EXTRA_SIN_COLUMN arithmetic: ARITHMETIC_EXACT }");
  EXPECT_EQ(text("sinusoidal { d_model: 5 layout: SINUSOIDAL_LAYOUT_HALF_SIN_COS "
                 "frequency_rule: FREQUENCY_RULE_T2T padding_row: 1 }"),
            "sinusoidal { d_model: 5 layout: SINUSOIDAL_LAYOUT_HALF_SIN_COS "
            "frequency_rule: FREQUENCY_RULE_T2T base: 10000 position_offset: 0 padding_row: 1 "
            "odd_dim_rule: ODD_DIM_RULE_ZERO_LAST_COLUMN arithmetic: ARITHMETIC_FLOAT32 }");
  for (const char* spec :
       {"sinusoidal { d_model: 1 }", "sinusoidal { d_model: 6 padding_row: 0 base: 3 }",
        "sinusoidal { d_model: 7 frequency_rule: FREQUENCY_RULE_T2T }"}) {
    ExpectIdempotent(spec);
  }
}

// The odd-dimension rule of an even width changes nothing, so it names no other table.
TEST(SinusoidalTest, AnEvenWidthHasOneCanonicalForm) {
  EXPECT_EQ(
      Canonicalize(Spec("sinusoidal { d_model: 4 }"))->key(),
      Canonicalize(Spec("sinusoidal { d_model: 4 odd_dim_rule: ODD_DIM_RULE_ZERO_LAST_COLUMN }"))
          ->key());
}

TEST(SinusoidalTest, RefusesWhatMakesNoSense) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"", "sinusoidal.d_model: is required"},
      {"d_model: 0", "sinusoidal.d_model: must be in [1, 65536], got 0"},
      {"d_model: -4", "sinusoidal.d_model: must be in [1, 65536], got -4"},
      {"d_model: 65537", "sinusoidal.d_model: must be in [1, 65536], got 65537"},
      {"d_model: 2 frequency_rule: FREQUENCY_RULE_T2T",
       "sinusoidal.d_model: must be at least 4 with the t2t rule, which divides by the number of "
       "frequencies less one; got 2"},
      {"d_model: 3 frequency_rule: FREQUENCY_RULE_T2T",
       "sinusoidal.d_model: must be at least 4 with the t2t rule, which divides by the number of "
       "frequencies less one; got 3"},
      {"d_model: 1 layout: SINUSOIDAL_LAYOUT_HALF_SIN_COS "
       "odd_dim_rule: ODD_DIM_RULE_ZERO_LAST_COLUMN",
       "sinusoidal.d_model: must be at least 2 with zero_last_column, got 1"},
      {"d_model: 5 odd_dim_rule: ODD_DIM_RULE_ZERO_LAST_COLUMN",
       "sinusoidal.odd_dim_rule: an interleaved row ends with a sine: zero_last_column is for "
       "half splits"},
      {"d_model: 4 base: 0", "sinusoidal.base: must be finite and above 0, got 0"},
      {"d_model: 4 base: -1", "sinusoidal.base: must be finite and above 0, got -1"},
      {"d_model: 4 base: nan", "sinusoidal.base: must be finite and above 0, got nan"},
      {"d_model: 4 base: inf", "sinusoidal.base: must be finite and above 0, got inf"},
      {"d_model: 4 frequency_rule: FREQUENCY_RULE_T2T base: 0.001",
       "sinusoidal.base: gives frequencies up to 1000 radians a position, at most 256 are "
       "allowed; got 0.001"},
      {"d_model: 4 position_offset: 2147483648",
       "sinusoidal.position_offset: must be in [-2147483647, 2147483647], got 2147483648"},
      {"d_model: 4 padding_row: -2147483648",
       "sinusoidal.padding_row: must be in [-2147483647, 2147483647], got -2147483648"},
  };
  for (const auto& [fields, message] : cases) {
    EXPECT_EQ(SpecRefusal(absl::StrCat("sinusoidal { ", fields, " }")), message);
  }
}

TEST(SinusoidalTest, RefusesUnknownEnumValues) {
  v1::EncodingSpec spec = Spec("sinusoidal { d_model: 4 }");
  spec.mutable_sinusoidal()->set_layout(static_cast<v1::SinusoidalLayout>(99));
  EXPECT_EQ(Canonicalize(spec).status().message(), "sinusoidal.layout: unknown value 99");
  spec = Spec("sinusoidal { d_model: 4 }");
  spec.mutable_sinusoidal()->set_frequency_rule(static_cast<v1::FrequencyRule>(99));
  EXPECT_EQ(Canonicalize(spec).status().message(), "sinusoidal.frequency_rule: unknown value 99");
  spec = Spec("sinusoidal { d_model: 4 }");
  spec.mutable_sinusoidal()->set_odd_dim_rule(static_cast<v1::OddDimRule>(-1));
  EXPECT_EQ(Canonicalize(spec).status().message(), "sinusoidal.odd_dim_rule: unknown value -1");
  spec = Spec("sinusoidal { d_model: 4 }");
  spec.mutable_sinusoidal()->set_arithmetic(static_cast<v1::Arithmetic>(3));
  EXPECT_EQ(Canonicalize(spec).status().message(), "sinusoidal.arithmetic: unknown value 3");
}

TEST(SinusoidalTest, RefusesSelectionsAndFormatsItDoesNotHave) {
  const std::string spec = "sinusoidal { d_model: 4 position_offset: 10 }";
  EXPECT_EQ(TableRefusal(spec, {}), "selection: is required: a position_range or position_ids");
  EXPECT_EQ(TableRefusal(spec, SelectRange(5, 4)),
            "selection.position_range.end: must be at least begin (5), got 4");
  EXPECT_EQ(TableRefusal(spec, SelectRange(0, int64_t{1} << 31)),
            "selection.position_range.end: with position_offset 10 must stay in [-2147483647, "
            "2147483647], got 2147483647");
  EXPECT_EQ(TableRefusal(spec, SelectIds({0, 2147483640})),
            "selection.position_ids.ids[1]: with position_offset 10 must stay in [-2147483647, "
            "2147483647], got 2147483640");
  EXPECT_EQ(TableRefusal(spec, SelectIds({-2147483648})),
            "selection.position_ids.ids[0]: must be in [-2147483647, 2147483647], got -2147483648");
  EXPECT_EQ(TableRefusal(spec, SelectRange(0, 4), "dtype: DTYPE_I32"),
            "format.dtype: sinusoidal has f32, f64, f16, bf16, got i32");
  EXPECT_EQ(TableRefusal(spec, SelectRange(0, 4), "layout: LAYOUT_PAIRS"),
            "format.layout: sinusoidal has table, got pairs");
}

}  // namespace
}  // namespace posenc::testing
