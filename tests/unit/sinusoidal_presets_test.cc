// Sinusoids: the canonical form, and presets, which expand into it.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/numeric/angle.h"
#include "lib/numeric/elementary.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

std::vector<float> Rows(const std::string& fields, const v1::Selection& selection) {
  return FillOne(absl::StrCat("sinusoidal { ", fields, " }"), selection).As<float>();
}

std::string Key(const std::string& fields) {
  const auto canonical = Canonicalize(Spec(absl::StrCat("sinusoidal { ", fields, " }")));
  EXPECT_TRUE(canonical.ok()) << fields << ": " << canonical.status();
  return canonical.ok() ? canonical->key() : "";
}

// So that a spec from before these fields keeps its table id.
TEST(SinusoidalPresetsTest, WhatSaysNoMoreThanItsDefaultIsLeftOut) {
  EXPECT_EQ(Key("d_model: 8"),
            Key("d_model: 8 frequency_expression: FREQUENCY_EXPRESSION_POW_RECIPROCAL "
                "min_timescale: 1 single_frequency_guard: false position_scale: 1 out_scale: 1 "
                "row_order: ROW_ORDER_ASCENDING linear_column: LINEAR_COLUMN_NONE "
                "compute_dtype: COMPUTE_DTYPE_F32"));
  EXPECT_EQ(Key("d_model: 8 arithmetic: ARITHMETIC_FLOAT32"),
            Key("d_model: 8 arithmetic: ARITHMETIC_FLOAT32 "
                "frequency_expression: FREQUENCY_EXPRESSION_EXP_PRODUCT"));
}

TEST(SinusoidalPresetsTest, APresetIsEchoedWithWhatItSets) {
  EXPECT_EQ(Canonicalize(Spec("sinusoidal { d_model: 8 preset: SINUSOIDAL_PRESET_XGLM }"))
                ->proto()
                .ShortDebugString(),
            "sinusoidal { d_model: 8 layout: SINUSOIDAL_LAYOUT_HALF_SIN_COS "
            "frequency_rule: FREQUENCY_RULE_T2T base: 10000 position_offset: 2 padding_row: 1 "
            "odd_dim_rule: ODD_DIM_RULE_ZERO_LAST_COLUMN arithmetic: ARITHMETIC_FLOAT32 "
            "preset: SINUSOIDAL_PRESET_XGLM }");
}

TEST(SinusoidalPresetsTest, EveryPresetIsIdempotentWhateverIsSetBesidesIt) {
  for (int preset = 1; v1::SinusoidalPreset_IsValid(preset); ++preset) {
    const std::string name = v1::SinusoidalPreset_Name(static_cast<v1::SinusoidalPreset>(preset));
    for (const char* fields :
         {"", "layout: SINUSOIDAL_LAYOUT_INTERLEAVED", "row_order: ROW_ORDER_ASCENDING",
          "arithmetic: ARITHMETIC_EXACT", "frequency_rule: FREQUENCY_RULE_THETA",
          "position_scale: 1 out_scale: 1", "base: 100", "linear_column: LINEAR_COLUMN_NONE"}) {
      // Time2Vec's frequencies are given; with another rule they are refused.
      const bool given = preset == v1::SINUSOIDAL_PRESET_TIME2VEC &&
                         std::string(fields).find("frequency_rule") == std::string::npos;
      if (preset == v1::SINUSOIDAL_PRESET_TIME2VEC &&
          (!given || std::string(fields).find("layout") != std::string::npos)) {
        continue;
      }
      ExpectIdempotent(absl::StrCat("sinusoidal { d_model: 6 preset: ", name, " ", fields,
                                    given ? " frequencies: [1, 2, 3, 4, 5, 6]" : "", " }"));
    }
  }
}

TEST(SinusoidalPresetsTest, WhatTheRequestSetsBeatsThePreset) {
  EXPECT_EQ(Rows("d_model: 6 preset: SINUSOIDAL_PRESET_MUSICGEN "
                 "layout: SINUSOIDAL_LAYOUT_HALF_SIN_COS",
                 SelectRange(0, 5)),
            Rows("d_model: 6 preset: SINUSOIDAL_PRESET_WHISPER", SelectRange(0, 5)));
  EXPECT_EQ(Rows("d_model: 6 preset: SINUSOIDAL_PRESET_CONFORMER row_order: ROW_ORDER_ASCENDING",
                 SelectRange(0, 5)),
            Rows("d_model: 6 preset: SINUSOIDAL_PRESET_TUTORIAL", SelectRange(0, 5)));
}

TEST(SinusoidalPresetsTest, PresetsAreTheirFieldsSpelledOut) {
  const v1::Selection range = SelectRange(0, 9);
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"PAPER", ""},
      {"TUTORIAL", "arithmetic: ARITHMETIC_FLOAT32"},
      {"FAIRSEQ",
       "layout: SINUSOIDAL_LAYOUT_HALF_SIN_COS frequency_rule: FREQUENCY_RULE_T2T padding_row: 1"},
      {"MARIAN", "layout: SINUSOIDAL_LAYOUT_HALF_SIN_COS"},
      {"MARIAN_NMT", "layout: SINUSOIDAL_LAYOUT_HALF_SIN_COS frequency_rule: FREQUENCY_RULE_T2T"},
      {"OPENNMT",
       "layout: SINUSOIDAL_LAYOUT_HALF_SIN_COS frequency_rule: FREQUENCY_RULE_T2T "
       "position_offset: 1"},
      {"MUSICGEN", "layout: SINUSOIDAL_LAYOUT_HALF_COS_SIN frequency_rule: FREQUENCY_RULE_T2T"}};
  for (const auto& [preset, fields] : cases) {
    EXPECT_EQ(Rows(absl::StrCat("d_model: 10 preset: SINUSOIDAL_PRESET_", preset), range),
              Rows(absl::StrCat("d_model: 10 ", fields), range))
        << preset;
  }
}
// x-transformers, ScaledSinusoidalEmbedding: inv_freq = theta ** -(arange(h) / h), and the
// table times d_model^-0.5. The slow twin, step by step in float32.
TEST(SinusoidalPresetsTest, XTransformersScalesByTheRootOfTheWidth) {
  const auto rows = Rows("d_model: 6 preset: SINUSOIDAL_PRESET_X_TRANSFORMERS", SelectIds({7}));
  const auto scale = static_cast<float>(1 / std::sqrt(6.0));
  for (size_t k = 0; k < 3; ++k) {
    const float frequency = PowF(10000.0f, -(static_cast<float>(k) / 3.0f));
    const FloatSinCos value = SinCosF(7.0f * frequency);
    EXPECT_EQ(rows[k], value.sin * scale) << k;
    EXPECT_EQ(rows[3 + k], value.cos * scale) << k;
  }
  // What was learned instead.
  EXPECT_EQ(
      Rows("d_model: 2 preset: SINUSOIDAL_PRESET_X_TRANSFORMERS out_scale: 0.5", SelectIds({0})),
      (std::vector<float>{0.0f, 0.5f}));
}

// mlx.nn.SinusoidalPositionalEncoding: exp(one_zero * (ln max - ln min) + ln min) with
// max 1, the table times sqrt(2 / dims).
TEST(SinusoidalPresetsTest, MlxSpacesTheLogarithmsFromTheSmallestFrequency) {
  const auto rows = Rows("d_model: 8 preset: SINUSOIDAL_PRESET_MLX base: 1000", SelectIds({3}));
  const auto log_base = static_cast<float>(Log(1000.0));
  for (size_t k = 0; k < 4; ++k) {
    const float one_zero = 1.0f - static_cast<float>(k) / 3.0f;
    const FloatSinCos value = SinCosF(3.0f * ExpF(one_zero * log_base - log_base));
    EXPECT_EQ(rows[k], value.sin * 0.5f) << k;
    EXPECT_EQ(rows[4 + k], value.cos * 0.5f) << k;
  }
}

// mlx#3614: dims 2 divided by zero; it has one frequency, 1.
TEST(SinusoidalPresetsTest, MlxOfWidthTwo) {
  const FloatSinCos one = SinCosF(1.0f);
  EXPECT_EQ(Rows("d_model: 2 preset: SINUSOIDAL_PRESET_MLX", SelectIds({1})),
            (std::vector<float>{one.sin, one.cos}));
}

}  // namespace
}  // namespace posenc::testing
