// Sinusoids: what is refused, in which words.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

v1::Selection SelectPoints(const std::vector<double>& points) {
  v1::Selection selection;
  selection.mutable_points()->set_dimensions(1);
  selection.mutable_points()->mutable_coordinates()->Add(points.begin(), points.end());
  return selection;
}

TEST(SinusoidalRefusalTest, RefusesWhatMakesNoSense) {
  const std::string shift = "d_model: 8 frequency_rule: FREQUENCY_RULE_SHIFT ";
  const std::string t2t = "d_model: 8 frequency_rule: FREQUENCY_RULE_T2T ";
  const std::string given =
      "d_model: 2 layout: SINUSOIDAL_LAYOUT_SIN_ONLY frequency_rule: FREQUENCY_RULE_GIVEN ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {shift + "frequency_shift: 4",
       "frequency_shift: must be in [0, 3], one less than the frequencies, got 4"},
      {shift + "frequency_shift: nan",
       "frequency_shift: must be in [0, 3], one less than the frequencies, got nan"},
      {"d_model: 2 preset: SINUSOIDAL_PRESET_DIFFUSERS_TIMESTEP",
       "frequency_shift: must be in [0, 0], one less than the frequencies, got 1"},
      {"d_model: 8 frequency_shift: 0", "frequency_shift: is for the shift rule only"},
      {shift + "min_timescale: 2", "min_timescale: is for the t2t rule only"},
      {t2t + "min_timescale: 0", "min_timescale: must be finite and above 0, got 0"},
      {t2t + "min_timescale: 1e-300 base: 1e100",
       "min_timescale: must leave base / min_timescale a float64, got 1e-300"},
      {t2t + "min_timescale: 500",
       "base: gives frequencies up to 500 radians a position, at most 256 are allowed; got "
       "10000"},
      {t2t + "base: 1e200",
       "base: gives frequencies down to 1e-200 radians a position, at least 1e-100 are allowed; "
       "got 1e+200"},
      {"d_model: 8 single_frequency_guard: true",
       "single_frequency_guard: is for the t2t rule only"},
      {"d_model: 8 frequencies: 1", "frequencies: are for the given rule only"},
      {given + "frequencies: 1", "frequencies: needs one value a frequency: 2, got 1"},
      {given + "frequencies: [1, 300]",
       "frequencies[1]: must be at most 256 in magnitude, got 300"},
      {given + "frequencies: [nan, 0]",
       "frequencies[0]: must be at most 256 in magnitude, got nan"},
      {given + "frequencies: [1, 2] phases: 1", "phases: needs one value a frequency: 2, got 1"},
      {given + "frequencies: [1, 2] phases: [0, inf]",
       "phases[1]: must be at most 1.04858e+06 in magnitude, got inf"},
      {"d_model: 8 linear_column: LINEAR_COLUMN_FIRST",
       "linear_column: is for the given rule with a cos_only or sin_only layout"},
      {"d_model: 8 compute_dtype: COMPUTE_DTYPE_BF16",
       "compute_dtype: is for float32 arithmetic only"},
      {"d_model: 8 position_scale: 0",
       "position_scale: must be above 0 and at most 1.04858e+06, got 0"},
      {"d_model: 8 out_scale: 1e-39", "out_scale: must be a positive float32, got 1e-39"},
      {"d_model: 8 out_scale: nan", "out_scale: must be a positive float32, got nan"},
      {"d_model: 8 clamp_min: 3 clamp_max: 2", "clamp_max: must be at least clamp_min (3), got 2"},
      {"d_model: 8 clamp_max: 2147483648",
       "clamp_max: must be in [-2147483647, 2147483647], got 2147483648"},
      {"d_model: 8 preset: SINUSOIDAL_PRESET_TRANSFORMER_XL base: 1e39",
       "base: must be a float32 for its powers, got 1e+39"},
      {"d_model: 8 preset: SINUSOIDAL_PRESET_X_TRANSFORMERS base: 1e39",
       "base: must be a float32 for its powers, got 1e+39"},
      {"d_model: 1 preset: SINUSOIDAL_PRESET_TGAT",
       "d_model: must be at least 2 with the t2t rule, which divides by the number of "
       "frequencies less one; got 1"},
  };
  for (const auto& [fields, message] : cases) {
    EXPECT_EQ(SpecRefusal(absl::StrCat("sinusoidal { ", fields, " }")), "sinusoidal." + message);
  }
}

TEST(SinusoidalRefusalTest, RefusesUnknownEnumValues) {
  const auto refusal = [](auto set) {
    v1::EncodingSpec spec = Spec("sinusoidal { d_model: 4 }");
    set(spec.mutable_sinusoidal());
    return std::string(Canonicalize(spec).status().message());
  };
  using S = v1::SinusoidalSpec;
  EXPECT_EQ(refusal([](S* s) { s->set_preset(static_cast<v1::SinusoidalPreset>(99)); }),
            "sinusoidal.preset: unknown value 99");
  EXPECT_EQ(refusal([](S* s) { s->set_row_order(static_cast<v1::RowOrder>(99)); }),
            "sinusoidal.row_order: unknown value 99");
  EXPECT_EQ(refusal([](S* s) { s->set_linear_column(static_cast<v1::LinearColumn>(99)); }),
            "sinusoidal.linear_column: unknown value 99");
  EXPECT_EQ(refusal([](S* s) { s->set_compute_dtype(static_cast<v1::ComputeDType>(99)); }),
            "sinusoidal.compute_dtype: unknown value 99");
  EXPECT_EQ(
      refusal([](S* s) { s->set_frequency_expression(static_cast<v1::FrequencyExpression>(99)); }),
      "sinusoidal.frequency_expression: unknown value 99");
}

TEST(SinusoidalRefusalTest, RefusesSelectionsThatTheOrderDoesNotHave) {
  const auto refusal = [](const char* fields, const v1::Selection& selection) {
    return TableRefusal(absl::StrCat("sinusoidal { d_model: 4 ", fields, " }"), selection);
  };
  EXPECT_EQ(refusal("row_order: ROW_ORDER_DESCENDING", SelectIds({1})),
            "selection: needs a position_range (its row_order is descending) for this encoding, "
            "got position_ids");
  EXPECT_EQ(refusal("row_order: ROW_ORDER_RELATIVE", SelectRange(0, 4)),
            "selection: needs an attention_grid for this encoding, got position_range");
  EXPECT_EQ(refusal("row_order: ROW_ORDER_RELATIVE", SelectGrid(2, 1, 2147483647)),
            "selection.attention_grid: with position_offset 0 must stay in [-2147483647, "
            "2147483647], got 2147483648");
  EXPECT_EQ(refusal("position_offset: 1", SelectPoints({1})),
            "sinusoidal.position_offset: must be 0 with points, which are real positions, got 1");
  EXPECT_EQ(refusal("position_scale: 1000", SelectIds({2147483647})),
            "selection.position_ids.ids[0]: angles must stay within 1.09951e+12 radians, got "
            "2.14748e+12 at 2.14748e+09");
}

}  // namespace
}  // namespace posenc::testing
