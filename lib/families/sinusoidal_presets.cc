#include "lib/families/sinusoidal_presets.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>

namespace posenc {
namespace {

constexpr auto kInterleaved = v1::SINUSOIDAL_LAYOUT_INTERLEAVED;
constexpr auto kSinCos = v1::SINUSOIDAL_LAYOUT_HALF_SIN_COS;
constexpr auto kCosSin = v1::SINUSOIDAL_LAYOUT_HALF_COS_SIN;
constexpr auto kTheta = v1::FREQUENCY_RULE_THETA;
constexpr auto kT2t = v1::FREQUENCY_RULE_T2T;
constexpr auto kShift = v1::FREQUENCY_RULE_SHIFT;
constexpr auto kExact = v1::ARITHMETIC_EXACT;
constexpr auto kFloat32 = v1::ARITHMETIC_FLOAT32;

// out_scale, where it depends on d_model.
enum class OutScale { kOne, kInverseRoot, kRootOfTwice };

// Fields at 0 or UNSPECIFIED are left alone; NONE is for those where 0 is a value.
constexpr int64_t kNone = -1;

struct Preset {
  v1::SinusoidalPreset preset;
  v1::SinusoidalLayout layout;
  v1::FrequencyRule frequency_rule;
  v1::Arithmetic arithmetic;
  v1::FrequencyExpression frequency_expression = v1::FREQUENCY_EXPRESSION_UNSPECIFIED;
  v1::RowOrder row_order = v1::ROW_ORDER_UNSPECIFIED;
  v1::LinearColumn linear_column = v1::LINEAR_COLUMN_UNSPECIFIED;
  double base = 0;
  int64_t position_offset = 0;
  int64_t padding_row = kNone;
  int64_t frequency_shift = kNone;
  bool single_frequency_guard = false;
  OutScale out_scale = OutScale::kOne;
};

constexpr Preset kPresets[] = {
    {v1::SINUSOIDAL_PRESET_PAPER, kInterleaved, kTheta, kExact},
    {v1::SINUSOIDAL_PRESET_TUTORIAL, kInterleaved, kTheta, kFloat32},
    {.preset = v1::SINUSOIDAL_PRESET_TENSOR2TENSOR,
     .layout = kSinCos,
     .frequency_rule = kT2t,
     .arithmetic = kFloat32,
     .single_frequency_guard = true},
    {.preset = v1::SINUSOIDAL_PRESET_FAIRSEQ,
     .layout = kSinCos,
     .frequency_rule = kT2t,
     .arithmetic = kFloat32,
     .padding_row = 1},
    {.preset = v1::SINUSOIDAL_PRESET_XGLM,
     .layout = kSinCos,
     .frequency_rule = kT2t,
     .arithmetic = kFloat32,
     .position_offset = 2,
     .padding_row = 1},
    {v1::SINUSOIDAL_PRESET_MARIAN, kSinCos, kTheta, kExact},
    {v1::SINUSOIDAL_PRESET_MARIAN_NMT, kSinCos, kT2t, kFloat32},
    {.preset = v1::SINUSOIDAL_PRESET_OPENNMT,
     .layout = kSinCos,
     .frequency_rule = kT2t,
     .arithmetic = kFloat32,
     .position_offset = 1},
    {v1::SINUSOIDAL_PRESET_WHISPER, kSinCos, kT2t, kFloat32},
    {v1::SINUSOIDAL_PRESET_MUSICGEN, kCosSin, kT2t, kFloat32},
    {v1::SINUSOIDAL_PRESET_PEGASUS_X, kSinCos, kT2t, kFloat32},
    {.preset = v1::SINUSOIDAL_PRESET_DIFFUSERS_TIMESTEP,
     .layout = kSinCos,
     .frequency_rule = kShift,
     .arithmetic = kFloat32,
     .frequency_shift = 1},
    {.preset = v1::SINUSOIDAL_PRESET_GUIDED_DIFFUSION,
     .layout = kCosSin,
     .frequency_rule = kShift,
     .arithmetic = kFloat32,
     .frequency_shift = 0},
    {.preset = v1::SINUSOIDAL_PRESET_TRANSFORMER_XL,
     .layout = kSinCos,
     .frequency_rule = kTheta,
     .arithmetic = kFloat32,
     .frequency_expression = v1::FREQUENCY_EXPRESSION_POW_RECIPROCAL,
     .row_order = v1::ROW_ORDER_DESCENDING},
    {.preset = v1::SINUSOIDAL_PRESET_XLNET,
     .layout = kSinCos,
     .frequency_rule = kTheta,
     .arithmetic = kFloat32,
     .frequency_expression = v1::FREQUENCY_EXPRESSION_POW_RECIPROCAL,
     .row_order = v1::ROW_ORDER_DESCENDING},
    {.preset = v1::SINUSOIDAL_PRESET_CONFORMER,
     .layout = kInterleaved,
     .frequency_rule = kTheta,
     .arithmetic = kFloat32,
     .row_order = v1::ROW_ORDER_RELATIVE},
    // 1 / 10^linspace(0, 9, d_model) in float64: T2T's frequencies of base 10^9.
    {.preset = v1::SINUSOIDAL_PRESET_TGAT,
     .layout = v1::SINUSOIDAL_LAYOUT_COS_ONLY,
     .frequency_rule = kT2t,
     .arithmetic = kFloat32,
     .frequency_expression = v1::FREQUENCY_EXPRESSION_ROUNDED,
     .base = 1e9},
    {.preset = v1::SINUSOIDAL_PRESET_TIME2VEC,
     .layout = v1::SINUSOIDAL_LAYOUT_SIN_ONLY,
     .frequency_rule = v1::FREQUENCY_RULE_GIVEN,
     .arithmetic = kFloat32,
     .linear_column = v1::LINEAR_COLUMN_FIRST},
    {.preset = v1::SINUSOIDAL_PRESET_X_TRANSFORMERS,
     .layout = kSinCos,
     .frequency_rule = kTheta,
     .arithmetic = kFloat32,
     .frequency_expression = v1::FREQUENCY_EXPRESSION_POW,
     .out_scale = OutScale::kInverseRoot},
    {.preset = v1::SINUSOIDAL_PRESET_MLX,
     .layout = kSinCos,
     .frequency_rule = kT2t,
     .arithmetic = kFloat32,
     .frequency_expression = v1::FREQUENCY_EXPRESSION_EXP_LINSPACE,
     .single_frequency_guard = true,
     .out_scale = OutScale::kRootOfTwice},
};

double OutScaleOf(OutScale rule, double d_model) {
  switch (rule) {
    case OutScale::kOne:
      return 1;
    case OutScale::kInverseRoot:
      return 1 / std::sqrt(d_model);
    case OutScale::kRootOfTwice:
      return std::sqrt(2 / d_model);
  }
  return 1;
}

}  // namespace

void ApplySinusoidalPreset(v1::SinusoidalSpec* spec) {
  const auto* const row =
      std::find_if(std::begin(kPresets), std::end(kPresets),
                   [&](const Preset& preset) { return preset.preset == spec->preset(); });
  if (row == std::end(kPresets)) return;  // UNSPECIFIED
  if (spec->layout() == 0) spec->set_layout(row->layout);
  if (spec->frequency_rule() == 0) spec->set_frequency_rule(row->frequency_rule);
  if (spec->arithmetic() == 0) spec->set_arithmetic(row->arithmetic);
  if (spec->row_order() == 0) spec->set_row_order(row->row_order);
  if (spec->linear_column() == 0) spec->set_linear_column(row->linear_column);
  if (!spec->has_base() && row->base != 0) spec->set_base(row->base);
  if (!spec->has_position_offset()) spec->set_position_offset(row->position_offset);
  if (!spec->has_out_scale() && row->out_scale != OutScale::kOne) {
    spec->set_out_scale(OutScaleOf(row->out_scale, static_cast<double>(spec->d_model())));
  }
  if (!spec->has_padding_row() && row->padding_row != kNone) {
    spec->set_padding_row(row->padding_row);
  }
  // What belongs to the preset's rule goes with it when the request has another.
  if (spec->frequency_rule() != row->frequency_rule) return;
  if (spec->frequency_expression() == 0 && spec->arithmetic() == kFloat32) {
    spec->set_frequency_expression(row->frequency_expression);
  }
  if (!spec->has_frequency_shift() && row->frequency_shift != kNone) {
    spec->set_frequency_shift(static_cast<double>(row->frequency_shift));
  }
  if (!spec->has_single_frequency_guard() && row->single_frequency_guard) {
    spec->set_single_frequency_guard(true);
  }
}

}  // namespace posenc
