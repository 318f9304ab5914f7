#include "lib/families/sinusoidal_spec.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/sinusoidal_frequencies.h"
#include "lib/families/sinusoidal_presets.h"
#include "lib/numeric/rotation.h"

namespace posenc {
namespace {

constexpr int64_t kMaxDModel = 65536;
// Phases and factors that any model could mean.
constexpr double kMaxPhase = 0x1p20;
constexpr double kMaxPositionScale = 0x1p20;
// Angles of smaller frequencies would lose their last bits to underflow.
constexpr double kMinFrequency = 1e-100;

bool IsOneSided(const v1::SinusoidalSpec& spec) {
  return spec.layout() == v1::SINUSOIDAL_LAYOUT_COS_ONLY ||
         spec.layout() == v1::SINUSOIDAL_LAYOUT_SIN_ONLY;
}

bool IsHalfSplit(const v1::SinusoidalSpec& spec) {
  return spec.layout() == v1::SINUSOIDAL_LAYOUT_HALF_SIN_COS ||
         spec.layout() == v1::SINUSOIDAL_LAYOUT_HALF_COS_SIN;
}

bool IsNormalFloat32(double value) {
  return value >= std::numeric_limits<float>::min() && value <= std::numeric_limits<float>::max();
}

// Defaults -------------------------------------------------------------------------

absl::Status CheckEnums(const v1::SinusoidalSpec& s) {
  const auto check = [](const char* field, bool is_known, int value) {
    return CheckEnum(absl::StrCat("sinusoidal.", field), is_known, value);
  };
  RETURN_IF_ERROR(check("layout", v1::SinusoidalLayout_IsValid(s.layout()), s.layout()));
  RETURN_IF_ERROR(
      check("frequency_rule", v1::FrequencyRule_IsValid(s.frequency_rule()), s.frequency_rule()));
  RETURN_IF_ERROR(
      check("odd_dim_rule", v1::OddDimRule_IsValid(s.odd_dim_rule()), s.odd_dim_rule()));
  RETURN_IF_ERROR(check("arithmetic", v1::Arithmetic_IsValid(s.arithmetic()), s.arithmetic()));
  RETURN_IF_ERROR(check("preset", v1::SinusoidalPreset_IsValid(s.preset()), s.preset()));
  RETURN_IF_ERROR(check("frequency_expression",
                        v1::FrequencyExpression_IsValid(s.frequency_expression()),
                        s.frequency_expression()));
  RETURN_IF_ERROR(check("row_order", v1::RowOrder_IsValid(s.row_order()), s.row_order()));
  RETURN_IF_ERROR(
      check("linear_column", v1::LinearColumn_IsValid(s.linear_column()), s.linear_column()));
  return check("compute_dtype", v1::ComputeDType_IsValid(s.compute_dtype()), s.compute_dtype());
}

v1::OddDimRule DefaultOddDimRule(const v1::SinusoidalSpec& spec) {
  return IsHalfSplit(spec) && (spec.frequency_rule() == v1::FREQUENCY_RULE_T2T ||
                               spec.frequency_rule() == v1::FREQUENCY_RULE_SHIFT)
             ? v1::ODD_DIM_RULE_ZERO_LAST_COLUMN
             : v1::ODD_DIM_RULE_EXTRA_SIN_COLUMN;
}

void FillDefaults(v1::SinusoidalSpec* spec) {
  if (spec->layout() == v1::SINUSOIDAL_LAYOUT_UNSPECIFIED) {
    spec->set_layout(v1::SINUSOIDAL_LAYOUT_INTERLEAVED);
  }
  if (spec->frequency_rule() == v1::FREQUENCY_RULE_UNSPECIFIED) {
    spec->set_frequency_rule(v1::FREQUENCY_RULE_THETA);
  }
  if (!spec->has_base()) spec->set_base(10000.0);
  if (!spec->has_position_offset()) spec->set_position_offset(0);
  // An even width has no odd column: one canonical form for what changes nothing.
  if (spec->odd_dim_rule() == v1::ODD_DIM_RULE_UNSPECIFIED || spec->d_model() % 2 == 0 ||
      IsOneSided(*spec)) {
    spec->set_odd_dim_rule(DefaultOddDimRule(*spec));
  }
  if (spec->arithmetic() == v1::ARITHMETIC_UNSPECIFIED) {
    spec->set_arithmetic(spec->frequency_rule() == v1::FREQUENCY_RULE_THETA
                             ? v1::ARITHMETIC_EXACT
                             : v1::ARITHMETIC_FLOAT32);
  }
  if (spec->frequency_rule() == v1::FREQUENCY_RULE_SHIFT && !spec->has_frequency_shift()) {
    spec->set_frequency_shift(1.0);
  }
  // EXACT has the real numbers, whatever the expression.
  if (spec->arithmetic() == v1::ARITHMETIC_EXACT) spec->clear_frequency_expression();
}

// Leaves out what was added to the message later and says no more than its default,
// so that specs from before keep their table ids. A preset could say otherwise, so
// with one everything stays.
void ClearDefaults(v1::SinusoidalSpec* spec) {
  if (spec->preset() != v1::SINUSOIDAL_PRESET_UNSPECIFIED) return;
  const v1::FrequencyExpression expression = spec->frequency_expression();
  spec->clear_frequency_expression();
  if (expression != FrequencyExpressionOf(*spec)) spec->set_frequency_expression(expression);
  if (MinTimescaleOf(*spec) == 1) spec->clear_min_timescale();
  if (!spec->single_frequency_guard()) spec->clear_single_frequency_guard();
  if (PositionScaleOf(*spec) == 1) spec->clear_position_scale();
  if (OutScaleOf(*spec) == 1) spec->clear_out_scale();
  if (RowOrderOf(*spec) == v1::ROW_ORDER_ASCENDING) spec->clear_row_order();
  if (!HasLinearColumn(*spec)) spec->clear_linear_column();
  if (ComputeDTypeOf(*spec) == v1::COMPUTE_DTYPE_F32) spec->clear_compute_dtype();
}

// Rules ----------------------------------------------------------------------------

absl::Status CheckWidth(const v1::SinusoidalSpec& spec) {
  const std::string got = absl::StrCat(spec.d_model());
  if (spec.layout() == v1::SINUSOIDAL_LAYOUT_INTERLEAVED &&
      spec.odd_dim_rule() == v1::ODD_DIM_RULE_ZERO_LAST_COLUMN) {
    return FieldError("sinusoidal.odd_dim_rule",
                      "an interleaved row ends with a sine: zero_last_column is for half splits");
  }
  const int64_t least = IsOneSided(spec) ? 2 : 4;
  if (spec.frequency_rule() == v1::FREQUENCY_RULE_T2T && !spec.single_frequency_guard() &&
      spec.d_model() < least) {
    return FieldError("sinusoidal.d_model",
                      absl::StrCat("must be at least ", least, " with the t2t rule, which divides ",
                                   "by the number of frequencies less one; got ", got));
  }
  if (SinusoidalPairs(spec) < 1) {
    return FieldError("sinusoidal.d_model",
                      absl::StrCat("must be at least 2 with zero_last_column, got ", got));
  }
  if (spec.frequency_rule() == v1::FREQUENCY_RULE_SHIFT) {
    const auto frequencies = static_cast<double>(SinusoidalPairs(spec));
    if (!(spec.frequency_shift() >= 0 && spec.frequency_shift() <= frequencies - 1)) {
      return FieldError(
          "sinusoidal.frequency_shift",
          absl::StrCat("must be in [0, ", frequencies - 1, "], one less than the frequencies, got ",
                       spec.frequency_shift()));
    }
  }
  return absl::OkStatus();
}

// Fields that only one frequency rule has.
absl::Status CheckRuleFields(const v1::SinusoidalSpec& spec) {
  const v1::FrequencyRule rule = spec.frequency_rule();
  if (rule != v1::FREQUENCY_RULE_SHIFT && spec.has_frequency_shift()) {
    return FieldError("sinusoidal.frequency_shift", "is for the shift rule only");
  }
  if (rule != v1::FREQUENCY_RULE_T2T && MinTimescaleOf(spec) != 1) {
    return FieldError("sinusoidal.min_timescale", "is for the t2t rule only");
  }
  if (rule != v1::FREQUENCY_RULE_T2T && spec.single_frequency_guard()) {
    return FieldError("sinusoidal.single_frequency_guard", "is for the t2t rule only");
  }
  if (rule != v1::FREQUENCY_RULE_GIVEN && spec.frequencies_size() > 0) {
    return FieldError("sinusoidal.frequencies", "are for the given rule only");
  }
  if (HasLinearColumn(spec) && (rule != v1::FREQUENCY_RULE_GIVEN || !IsOneSided(spec))) {
    return FieldError("sinusoidal.linear_column",
                      "is for the given rule with a cos_only or sin_only layout");
  }
  if (ComputeDTypeOf(spec) != v1::COMPUTE_DTYPE_F32 && spec.arithmetic() == v1::ARITHMETIC_EXACT) {
    return FieldError("sinusoidal.compute_dtype", "is for float32 arithmetic only");
  }
  return absl::OkStatus();
}

// Of a list with a number a frequency.
absl::Status CheckList(absl::string_view field, const google::protobuf::RepeatedField<double>& list,
                       int64_t pairs, double max_magnitude) {
  if (list.size() != pairs) {
    return FieldError(field,
                      absl::StrCat("needs one value a frequency: ", pairs, ", got ", list.size()));
  }
  for (int i = 0; i < list.size(); ++i) {
    if (!(std::abs(list[i]) <= max_magnitude)) {
      return FieldError(
          absl::StrCat(field, "[", i, "]"),
          absl::StrCat("must be at most ", max_magnitude, " in magnitude, got ", list[i]));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFrequencies(const v1::SinusoidalSpec& spec) {
  RETURN_IF_ERROR(CheckFinitePositive("sinusoidal.base", spec.base()));
  RETURN_IF_ERROR(CheckFinitePositive("sinusoidal.min_timescale", MinTimescaleOf(spec)));
  if (const double ratio = spec.base() / MinTimescaleOf(spec);
      !(std::isfinite(ratio) && ratio > 0)) {
    return FieldError(
        "sinusoidal.min_timescale",
        absl::StrCat("must leave base / min_timescale a float64, got ", spec.min_timescale()));
  }
  const v1::FrequencyExpression expression = FrequencyExpressionOf(spec);
  const bool takes_powers = expression == v1::FREQUENCY_EXPRESSION_POW_RECIPROCAL ||
                            expression == v1::FREQUENCY_EXPRESSION_POW;
  if (takes_powers && !IsNormalFloat32(spec.base())) {
    return FieldError("sinusoidal.base",
                      absl::StrCat("must be a float32 for its powers, got ", spec.base()));
  }
  const int64_t pairs = SinusoidalPairs(spec);
  if (spec.phases_size() > 0) {
    RETURN_IF_ERROR(CheckList("sinusoidal.phases", spec.phases(), pairs, kMaxPhase));
  }
  if (spec.frequency_rule() == v1::FREQUENCY_RULE_GIVEN) {
    return CheckList("sinusoidal.frequencies", spec.frequencies(), pairs, kMaxInvFreq);
  }
  const FrequencyRange range = SinusoidalFrequencyRange(spec);
  if (!(range.max <= kMaxInvFreq)) {
    return FieldError("sinusoidal.base", absl::StrCat("gives frequencies up to ", range.max,
                                                      " radians a position, at most ", kMaxInvFreq,
                                                      " are allowed; got ", spec.base()));
  }
  if (!(range.min >= kMinFrequency)) {
    return FieldError(
        "sinusoidal.base",
        absl::StrCat("gives frequencies down to ", range.min, " radians a position, at least ",
                     kMinFrequency, " are allowed; got ", spec.base()));
  }
  return absl::OkStatus();
}

absl::Status CheckPositionFields(const v1::SinusoidalSpec& spec) {
  const auto check = [](const char* field, bool is_set, int64_t value) {
    return is_set ? CheckInRange(absl::StrCat("sinusoidal.", field), value, -kMaxSinusoidalPosition,
                                 kMaxSinusoidalPosition)
                  : absl::OkStatus();
  };
  RETURN_IF_ERROR(check("position_offset", spec.has_position_offset(), spec.position_offset()));
  RETURN_IF_ERROR(check("padding_row", spec.has_padding_row(), spec.padding_row()));
  RETURN_IF_ERROR(check("clamp_min", spec.has_clamp_min(), spec.clamp_min()));
  RETURN_IF_ERROR(check("clamp_max", spec.has_clamp_max(), spec.clamp_max()));
  if (spec.has_clamp_min() && spec.has_clamp_max() && spec.clamp_min() > spec.clamp_max()) {
    return FieldError("sinusoidal.clamp_max",
                      absl::StrCat("must be at least clamp_min (", spec.clamp_min(), "), got ",
                                   spec.clamp_max()));
  }
  return absl::OkStatus();
}

absl::Status CheckScales(const v1::SinusoidalSpec& spec) {
  RETURN_IF_ERROR(
      CheckPositive("sinusoidal.position_scale", PositionScaleOf(spec), kMaxPositionScale));
  // Both arithmetics multiply with it as a float32.
  if (!IsNormalFloat32(OutScaleOf(spec))) {
    return FieldError("sinusoidal.out_scale",
                      absl::StrCat("must be a positive float32, got ", OutScaleOf(spec)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CanonicalizeSinusoidal(v1::SinusoidalSpec* spec) {
  if (!spec->has_d_model()) return FieldError("sinusoidal.d_model", "is required");
  RETURN_IF_ERROR(CheckInRange("sinusoidal.d_model", spec->d_model(), 1, kMaxDModel));
  RETURN_IF_ERROR(CheckEnums(*spec));
  ApplySinusoidalPreset(spec);
  FillDefaults(spec);
  RETURN_IF_ERROR(CheckWidth(*spec));
  RETURN_IF_ERROR(CheckRuleFields(*spec));
  RETURN_IF_ERROR(CheckFrequencies(*spec));
  RETURN_IF_ERROR(CheckPositionFields(*spec));
  RETURN_IF_ERROR(CheckScales(*spec));
  ClearDefaults(spec);
  return absl::OkStatus();
}

int64_t SinusoidalPairs(const v1::SinusoidalSpec& spec) {
  if (IsOneSided(spec)) return spec.d_model();
  return (spec.d_model() + (spec.odd_dim_rule() == v1::ODD_DIM_RULE_EXTRA_SIN_COLUMN)) / 2;
}

v1::FrequencyExpression FrequencyExpressionOf(const v1::SinusoidalSpec& spec) {
  if (spec.frequency_expression() != v1::FREQUENCY_EXPRESSION_UNSPECIFIED) {
    return spec.frequency_expression();
  }
  return spec.frequency_rule() == v1::FREQUENCY_RULE_SHIFT ? v1::FREQUENCY_EXPRESSION_EXP_QUOTIENT
                                                           : v1::FREQUENCY_EXPRESSION_EXP_PRODUCT;
}

v1::RowOrder RowOrderOf(const v1::SinusoidalSpec& spec) {
  return spec.row_order() == v1::ROW_ORDER_UNSPECIFIED ? v1::ROW_ORDER_ASCENDING : spec.row_order();
}

v1::ComputeDType ComputeDTypeOf(const v1::SinusoidalSpec& spec) {
  return spec.compute_dtype() == v1::COMPUTE_DTYPE_UNSPECIFIED ? v1::COMPUTE_DTYPE_F32
                                                               : spec.compute_dtype();
}

double MinTimescaleOf(const v1::SinusoidalSpec& spec) {
  return spec.has_min_timescale() ? spec.min_timescale() : 1.0;
}

double PositionScaleOf(const v1::SinusoidalSpec& spec) {
  return spec.has_position_scale() ? spec.position_scale() : 1.0;
}

double OutScaleOf(const v1::SinusoidalSpec& spec) {
  return spec.has_out_scale() ? spec.out_scale() : 1.0;
}

bool HasLinearColumn(const v1::SinusoidalSpec& spec) {
  return spec.linear_column() == v1::LINEAR_COLUMN_FIRST ||
         spec.linear_column() == v1::LINEAR_COLUMN_LAST;
}

}  // namespace posenc
