// Every line of sinusoidal_2d.jsonl that is a sinusoid of a grid, a mask or
// points, within its tolerance. Specs are built from the line's parameters.
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/golden.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using golden::Get;
using golden::Has;
using golden::Json;

struct Request {
  v1::EncodingSpec spec;
  v1::Selection selection;
  v1::TensorFormat format;
};

void SetGrid(const Json& params, v1::Selection* selection) {
  v1::PatchGrid* grid = selection->mutable_patch_grid();
  if (Has(params, "frames")) grid->set_frames(Get(params, "frames").GetInt64());
  const bool long_names = Has(params, "grid_height");
  grid->set_height(Get(params, long_names ? "grid_height" : "height").GetInt64());
  grid->set_width(Get(params, long_names ? "grid_width" : "width").GetInt64());
}

v1::SinusoidalGridPreset PresetOf(const std::string& source_layout) {
  if (source_layout == "mae") return v1::SINUSOIDAL_GRID_PRESET_MAE;
  if (source_layout == "moco_v3") return v1::SINUSOIDAL_GRID_PRESET_MOCO_V3;
  if (source_layout == "hf_v5") return v1::SINUSOIDAL_GRID_PRESET_HF;
  if (source_layout == "big_vision") return v1::SINUSOIDAL_GRID_PRESET_BIG_VISION;
  if (source_layout == "timm") return v1::SINUSOIDAL_GRID_PRESET_TIMM;
  if (source_layout == "diffusers_patch_embed") return v1::SINUSOIDAL_GRID_PRESET_DIFFUSERS;
  if (source_layout == "cogvideox") return v1::SINUSOIDAL_GRID_PRESET_COGVIDEOX;
  ADD_FAILURE() << "source_layout " << source_layout;
  return v1::SINUSOIDAL_GRID_PRESET_UNSPECIFIED;
}

// timm's two switches.
void SetTimm(const Json& params, v1::SinusoidalGridSpec* spec) {
  if (Get(params, "interleave_sin_cos").GetBool()) {
    spec->set_block_layout(v1::GRID_BLOCK_LAYOUT_SIN_COS_PER_AXIS);
  }
  if (!Get(params, "reverse_coord").GetBool()) return;
  spec->set_token_order(v1::GRID_TOKEN_ORDER_COLUMN_MAJOR);
  for (const v1::GridAxis axis : {v1::GRID_AXIS_X, v1::GRID_AXIS_Y}) {
    auto* block = spec->add_blocks();
    block->set_axis(axis);
    block->set_width(spec->d_model() / 2);
  }
}

Request GridRequest(const Json& params) {
  Request request;
  v1::SinusoidalGridSpec* spec = request.spec.mutable_sinusoidal_grid();
  spec->set_preset(PresetOf(Get(params, "source_layout").GetString()));
  spec->set_d_model(Get(params, "dim").GetInt64());
  spec->set_base(Get(params, "base").GetDouble());
  if (Has(params, "prefix_zero_rows")) {
    spec->set_prefix_zero_rows(Get(params, "prefix_zero_rows").GetInt64());
  }
  if (Has(params, "interleave_sin_cos")) SetTimm(params, spec);
  if (Has(params, "base_size")) spec->set_base_size(Get(params, "base_size").GetInt64());
  for (const char* name : {"interpolation_scale", "spatial_interpolation_scale"}) {
    if (Has(params, name)) spec->set_interpolation_scale(Get(params, name).GetDouble());
  }
  if (Has(params, "temporal_interpolation_scale")) {
    spec->set_temporal_interpolation_scale(Get(params, "temporal_interpolation_scale").GetDouble());
  }
  SetGrid(params, &request.selection);
  return request;
}

// What the preset expands to is what the line says that the reference does.
void ExpectOptions(const Json& line, const v1::SinusoidalGridSpec& spec) {
  const Json& params = Get(line, "params");
  const bool float64 = std::string(Get(params, "profile").GetString()) == "f64";
  EXPECT_EQ(spec.arithmetic(), float64 ? v1::ARITHMETIC_EXACT : v1::ARITHMETIC_FLOAT32)
      << golden::Id(line);
  if (!Has(params, "token_order")) return;
  const std::string token_order = Get(params, "token_order").GetString();
  EXPECT_EQ(spec.token_order() == v1::GRID_TOKEN_ORDER_COLUMN_MAJOR, token_order == "column_major")
      << golden::Id(line);
  const std::string axis_order = Get(params, "axis_order").GetString();
  EXPECT_EQ(spec.blocks(0).axis() == v1::GRID_AXIS_Y, axis_order == "y_then_x") << golden::Id(line);
}

std::optional<Request> MakeRequest(const Json& line) {
  const std::string encoding = Get(line, "encoding").GetString();
  const Json& params = Get(line, "params");
  if (encoding == "sinusoidal_2d" || encoding == "sinusoidal_3d") return GridRequest(params);
  return std::nullopt;
}

TEST(SinusoidalGridGoldenTest, EveryLineWithinItsTolerance) {
  golden::NotCovered skipped;
  for (const auto& line : golden::ReadLines("sinusoidal_2d.jsonl")) {
    std::optional<Request> request = MakeRequest(line);
    if (!request.has_value()) {
      skipped[golden::Id(line)] = absl::StrCat("encoding ", Get(line, "encoding").GetString());
      continue;
    }
    request->format.set_dtype(golden::DTypeOf(Get(line, "dtype").GetString()));
    const absl::StatusOr<CanonicalSpec> canonical = Canonicalize(request->spec);
    ASSERT_TRUE(canonical.ok()) << golden::Id(line) << ": " << canonical.status();
    if (canonical->proto().has_sinusoidal_grid()) {
      ExpectOptions(line, canonical->proto().sinusoidal_grid());
    }
    const auto table = FillTable(request->spec, request->selection, request->format);
    ASSERT_TRUE(table.ok()) << golden::Id(line) << ": " << table.status();
    golden::ExpectValues(line, request->format.dtype(), table->tensors.front().bytes);
  }
  golden::ExpectNotYetCovered("sinusoidal_2d.jsonl", skipped);
}

}  // namespace
}  // namespace posenc::testing
