// Every line of sinusoidal.jsonl, within its tolerance.
//
// A line of profile f32 is what torch gave; its twin f32_correctly_rounded is the
// same operation order with each function correctly rounded: ARITHMETIC_FLOAT32,
// bit for bit. Profiles f64 and exact are ARITHMETIC_EXACT.
#include <bit>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "tests/support/golden.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using golden::Get;
using golden::Has;
using golden::Json;

std::vector<int64_t> Integers(const Json& list) {
  std::vector<int64_t> integers;
  for (const Json& value : list.GetArray()) integers.push_back(value.GetInt64());
  return integers;
}

// The table rows of token ids, as fairseq and its descendants number them: a pad
// looks up padding_index, the others count up from padding_index + 1.
std::vector<int64_t> RobertaPositions(const Json& params) {
  const int64_t padding = Get(params, "padding_index").GetInt64();
  std::vector<int64_t> positions;
  for (const Json& sequence : Get(params, "input_ids").GetArray()) {
    int64_t tokens = Get(params, "past_length").GetInt64();
    for (const int64_t id : Integers(sequence)) {
      positions.push_back(id == padding ? padding : padding + ++tokens);
    }
  }
  return positions;
}

v1::Selection SelectionOf(const Json& params) {
  if (Has(params, "positions")) return SelectIds(Integers(params["positions"]));
  if (Has(params, "rows")) return SelectIds(Integers(params["rows"]));
  if (Has(params, "input_ids")) return SelectIds(RobertaPositions(params));
  const int64_t first = Get(params, "first_position").GetInt64();
  return SelectRange(first, first + Get(params, "position_count").GetInt64());
}

v1::SinusoidalLayout LayoutOf(const std::string& name) {
  if (name == "half_sin_cos") return v1::SINUSOIDAL_LAYOUT_HALF_SIN_COS;
  if (name == "half_cos_sin") return v1::SINUSOIDAL_LAYOUT_HALF_COS_SIN;
  EXPECT_EQ(name, "interleaved");
  return v1::SINUSOIDAL_LAYOUT_INTERLEAVED;
}

v1::FrequencyExpression ExpressionOf(absl::string_view text) {
  if (absl::StartsWith(text, "1/(10000**")) return v1::FREQUENCY_EXPRESSION_POW_RECIPROCAL;
  EXPECT_TRUE(absl::StartsWith(text, "exp(arange")) << text;
  return v1::FREQUENCY_EXPRESSION_EXP_PRODUCT;
}

v1::Arithmetic ArithmeticOf(absl::string_view profile) {
  if (profile == "f64" || profile == "exact") return v1::ARITHMETIC_EXACT;
  EXPECT_TRUE(profile == "f32" || profile == "f32_correctly_rounded" || profile == "model_dtype")
      << profile;
  return v1::ARITHMETIC_FLOAT32;
}

v1::SinusoidalSpec SpecOf(const Json& params) {
  v1::SinusoidalSpec spec;
  spec.set_d_model(Get(params, "dim").GetInt64());
  // A list of frequencies alone has no layout; t2t's is a half split.
  spec.set_layout(Has(params, "layout") ? LayoutOf(params["layout"].GetString())
                                        : v1::SINUSOIDAL_LAYOUT_HALF_SIN_COS);
  spec.set_frequency_rule(absl::string_view(Get(params, "frequency_rule").GetString()) == "t2t"
                              ? v1::FREQUENCY_RULE_T2T
                              : v1::FREQUENCY_RULE_THETA);
  spec.set_base(Get(params, Has(params, "base") ? "base" : "max_timescale").GetDouble());
  if (Has(params, "min_timescale")) spec.set_min_timescale(params["min_timescale"].GetDouble());
  if (Has(params, "single_frequency_guard")) {
    spec.set_single_frequency_guard(params["single_frequency_guard"].GetBool());
  }
  if (Has(params, "padding_index")) spec.set_padding_row(params["padding_index"].GetInt64());
  if (Has(params, "odd_dim_rule")) {
    spec.set_odd_dim_rule(absl::string_view(params["odd_dim_rule"].GetString()) ==
                                  "zero_last_column"
                              ? v1::ODD_DIM_RULE_ZERO_LAST_COLUMN
                              : v1::ODD_DIM_RULE_EXTRA_SIN_COLUMN);
  }
  if (Has(params, "frequency_expression")) {
    spec.set_frequency_expression(ExpressionOf(params["frequency_expression"].GetString()));
  }
  spec.set_arithmetic(ArithmeticOf(Get(params, "profile").GetString()));
  return spec;
}

FilledTable Fill(const v1::EncodingSpec& spec, const v1::Selection& selection, v1::DType dtype) {
  v1::TensorFormat format;
  format.set_dtype(dtype);
  absl::StatusOr<FilledTable> table = FillTable(spec, selection, format);
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? *std::move(table) : FilledTable{};
}

void Check(const Json& line, const v1::EncodingSpec& spec, const v1::Selection& selection) {
  const v1::DType dtype = golden::DTypeOf(Get(line, "dtype").GetString());
  const FilledTable table = Fill(spec, selection, dtype);
  if (!table.tensors.empty()) golden::ExpectValues(line, dtype, table.tensors.front().bytes);
}

void CheckTable(const Json& line, const Json& params) {
  v1::EncodingSpec spec;
  *spec.mutable_sinusoidal() = SpecOf(params);
  if (absl::string_view(Get(params, "profile").GetString()) == "model_dtype" &&
      absl::string_view(Get(line, "dtype").GetString()) == "bf16") {
    spec.mutable_sinusoidal()->set_compute_dtype(v1::COMPUTE_DTYPE_BF16);
  }
  Check(line, spec, SelectionOf(params));
}

void CheckFrequencies(const Json& line, const Json& params) {
  v1::EncodingSpec spec;
  *spec.mutable_sinusoidal() = SpecOf(params);
  const FilledTable table = Fill(spec, SelectRange(0, 0), v1::DTYPE_F32);
  std::vector<uint64_t> bits;
  for (const double w : table.description.inv_freq()) {
    bits.push_back(std::bit_cast<uint32_t>(static_cast<float>(w)));
  }
  golden::ExpectBits(line, v1::DTYPE_F32, bits);
}

v1::Selection SelectPoints(const Json& values) {
  v1::Selection selection;
  selection.mutable_points()->set_dimensions(1);
  for (const Json& value : values.GetArray()) {
    selection.mutable_points()->add_coordinates(value.GetDouble());
  }
  return selection;
}

void CheckTimesteps(const Json& line, const Json& params) {
  v1::EncodingSpec spec;
  v1::SinusoidalSpec* sinusoidal = spec.mutable_sinusoidal();
  sinusoidal->set_d_model(Get(params, "dim").GetInt64());
  sinusoidal->set_preset(Get(params, "flip_sin_to_cos").GetBool()
                             ? v1::SINUSOIDAL_PRESET_GUIDED_DIFFUSION
                             : v1::SINUSOIDAL_PRESET_DIFFUSERS_TIMESTEP);
  sinusoidal->set_frequency_shift(Get(params, "downscale_frequency_shift").GetDouble());
  sinusoidal->set_position_scale(Get(params, "scale").GetDouble());
  sinusoidal->set_base(Get(params, "max_period").GetDouble());
  Check(line, spec, SelectPoints(Get(params, "timesteps")));
}

v1::EncodingSpec PresetSpec(v1::SinusoidalPreset preset, const Json& params) {
  v1::EncodingSpec spec;
  spec.mutable_sinusoidal()->set_preset(preset);
  spec.mutable_sinusoidal()->set_d_model(Get(params, "dim").GetInt64());
  if (Has(params, "base")) spec.mutable_sinusoidal()->set_base(params["base"].GetDouble());
  return spec;
}

void CheckTransformerXl(const Json& line, const Json& params) {
  v1::EncodingSpec spec = PresetSpec(v1::SINUSOIDAL_PRESET_TRANSFORMER_XL, params);
  const int64_t clamp = Get(params, "clamp_length").GetInt64();
  if (clamp > 0) spec.mutable_sinusoidal()->set_clamp_max(clamp);
  Check(line, spec, SelectRange(0, Get(params, "key_length").GetInt64()));
}

void CheckXlnet(const Json& line, const Json& params) {
  v1::EncodingSpec spec = PresetSpec(v1::SINUSOIDAL_PRESET_XLNET, params);
  const int64_t clamp = Get(params, "clamp_length").GetInt64();
  if (clamp > 0) {
    spec.mutable_sinusoidal()->set_clamp_min(-clamp);
    spec.mutable_sinusoidal()->set_clamp_max(clamp);
  }
  const bool both_ways = absl::string_view(Get(params, "attention_type").GetString()) == "bi";
  const int64_t begin = both_ways ? 1 - Get(params, "query_length").GetInt64() : 0;
  Check(line, spec, SelectRange(begin, Get(params, "key_length").GetInt64() + 1));
}

// What a cache of another length has in its middle is what the length itself gives.
void CheckConformer(const Json& line, const Json& params) {
  const int64_t length = Get(params, "length").GetInt64();
  Check(line, PresetSpec(v1::SINUSOIDAL_PRESET_CONFORMER, params), SelectGrid(length, length));
}

void CheckTgat(const Json& line, const Json& params) {
  const v1::EncodingSpec preset = PresetSpec(v1::SINUSOIDAL_PRESET_TGAT, params);
  v1::EncodingSpec given = preset;
  given.mutable_sinusoidal()->set_frequency_rule(v1::FREQUENCY_RULE_GIVEN);
  for (const uint64_t bits : golden::BitsOfHexList(Get(params, "frequencies_hex"))) {
    given.mutable_sinusoidal()->add_frequencies(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (const v1::EncodingSpec& spec : {preset, given}) {
    Check(line, spec, SelectPoints(Get(params, "times")));
  }
}

// tensor2tensor's n-dimensional signal is a family of its own: sinusoids of grids.
void CheckT2tGrid(const Json& line, const Json& params) {
  v1::EncodingSpec spec = Spec("sinusoidal_grid { preset: SINUSOIDAL_GRID_PRESET_T2T_2D }");
  spec.mutable_sinusoidal_grid()->set_d_model(Get(params, "dim").GetInt64());
  EXPECT_EQ(Get(params, "min_timescale").GetDouble(), 1.0);
  spec.mutable_sinusoidal_grid()->set_base(Get(params, "max_timescale").GetDouble());
  v1::Selection selection;
  selection.mutable_patch_grid()->set_height(Get(params, "height").GetInt64());
  selection.mutable_patch_grid()->set_width(Get(params, "width").GetInt64());
  Check(line, spec, selection);
}

TEST(SinusoidalGoldenTest, EveryLineWithinItsTolerance) {
  golden::CheckLines("sinusoidal.jsonl", {{"sinusoidal", CheckTable},
                                          {"sinusoidal_frequencies", CheckFrequencies},
                                          {"timestep_embedding", CheckTimesteps},
                                          {"transformer_xl_relative", CheckTransformerXl},
                                          {"xlnet_relative", CheckXlnet},
                                          {"conformer_relative", CheckConformer},
                                          {"tgat_time_encoding", CheckTgat},
                                          {"sinusoidal_nd", CheckT2tGrid}});
}

}  // namespace
}  // namespace posenc::testing
