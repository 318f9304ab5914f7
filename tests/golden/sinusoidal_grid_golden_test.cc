// Every line of sinusoidal_2d.jsonl that is a sinusoid of a grid, a mask or
// points, within its tolerance. Specs are built from the line's parameters.
#include <bit>
#include <optional>
#include <string>
#include <vector>

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

// The mask of the line, 1 for valid; the file has it as padding, or as the
// rectangle that is not padding.
void SetMask(const Json& params, v1::Selection* selection) {
  v1::TokenMask* mask = selection->mutable_token_mask();
  mask->set_height(Get(params, "height").GetInt64());
  mask->set_width(Get(params, "width").GetInt64());
  for (int64_t y = 0; y < mask->height(); ++y) {
    for (int64_t x = 0; x < mask->width(); ++x) {
      const bool valid =
          Has(params, "padding_mask")
              ? Get(params, "padding_mask")[static_cast<unsigned>(y)][static_cast<unsigned>(x)]
                        .GetInt() == 0
              : y < Get(params, "valid_height").GetInt64() &&
                    x < Get(params, "valid_width").GetInt64();
      mask->mutable_valid()->push_back(valid ? 1 : 0);
    }
  }
}

Request DetrRequest(const Json& params) {
  Request request;
  v1::DetrSineSpec* spec = request.spec.mutable_detr_sine();
  const std::string source = Get(params, "source_layout").GetString();
  spec->set_preset(source == "deformable_detr" ? v1::DETR_PRESET_DEFORMABLE_DETR
                   : source == "dab_detr"      ? v1::DETR_PRESET_DAB_DETR
                                               : v1::DETR_PRESET_DETR);
  spec->set_num_position_features(Get(params, "num_position_features").GetInt64());
  spec->set_temperature_height(Get(params, "temperature").GetDouble());
  spec->set_normalize(Get(params, "normalize").GetBool());
  if (spec->normalize()) spec->set_scale(Get(params, "scale").GetDouble());
  SetMask(params, &request.selection);
  return request;
}

// The tables of the line are rules: row_table[i][c] = i + 100·(c + 1), and the
// column table is its negative.
Request DetrLearnedRequest(const Json& params) {
  Request request;
  v1::DetrLearnedSpec* spec = request.spec.mutable_detr_learned();
  spec->set_num_position_features(Get(params, "num_position_features").GetInt64());
  for (int i = 0; i < 50; ++i) {
    for (int c = 0; c < spec->num_position_features(); ++c) {
      spec->add_row_embeddings(static_cast<float>(i + 100 * (c + 1)));
      spec->add_column_embeddings(static_cast<float>(-(i + 100 * (c + 1))));
    }
  }
  SetGrid(params, &request.selection);
  return request;
}

float FloatOfHex(const Json& hex) {
  return std::bit_cast<float>(static_cast<uint32_t>(golden::BitsOfHex(hex.GetString())));
}

Request AnchorRequest(const Json& params) {
  Request request;
  v1::AnchorSineSpec* spec = request.spec.mutable_anchor_sine();
  spec->set_num_position_features(Get(params, "num_position_features").GetInt64());
  spec->set_temperature(Get(params, "temperature").GetDouble());
  spec->set_scale(Get(params, "scale").GetDouble());
  v1::Points* points = request.selection.mutable_points();
  points->set_dimensions(Get(params, "boxes")[0].Size());
  for (const Json& hex : Get(params, "boxes_hex").GetArray()) {
    points->add_coordinates(static_cast<double>(FloatOfHex(hex)));
  }
  return request;
}

Request RandomFourierRequest(const Json& params) {
  Request request;
  v1::RandomFourierSpec* spec = request.spec.mutable_random_fourier();
  for (const Json& hex : Get(params, "gaussian_matrix_hex").GetArray()) {
    spec->add_gaussian_matrix(FloatOfHex(hex));
  }
  if (!Has(params, "points")) {
    SetGrid(params, &request.selection);
    return request;
  }
  spec->set_image_height(Get(params, "image_height").GetDouble());
  spec->set_image_width(Get(params, "image_width").GetDouble());
  v1::Points* points = request.selection.mutable_points();
  points->set_dimensions(2);
  for (const Json& point : Get(params, "points").GetArray()) {
    for (const Json& coordinate : point.GetArray()) {
      points->add_coordinates(coordinate.GetDouble());
    }
  }
  return request;
}

Request PerceiverRequest(const Json& params) {
  Request request;
  v1::PerceiverFourierSpec* spec = request.spec.mutable_perceiver_fourier();
  spec->set_num_bands(Get(params, "bands").GetInt64());
  for (const Json& resolution : Get(params, "max_resolution").GetArray()) {
    spec->add_max_resolution(resolution.GetInt64());
  }
  spec->set_concat_position(Get(params, "concat_position").GetBool());
  spec->set_sine_only(Get(params, "sine_only").GetBool());
  request.selection.mutable_patch_grid()->set_height(Get(params, "grid")[0].GetInt64());
  request.selection.mutable_patch_grid()->set_width(Get(params, "grid")[1].GetInt64());
  return request;
}

std::optional<Request> MakeRequest(const Json& line) {
  const std::string encoding = Get(line, "encoding").GetString();
  const Json& params = Get(line, "params");
  if (encoding == "sinusoidal_2d" || encoding == "sinusoidal_3d") return GridRequest(params);
  if (encoding == "detr_sine" || encoding == "detr_sine_selected") return DetrRequest(params);
  if (encoding == "detr_learned") return DetrLearnedRequest(params);
  if (encoding == "anchor_sine") return AnchorRequest(params);
  if (encoding == "perceiver_fourier") return PerceiverRequest(params);
  if (encoding == "sam_random_fourier" || encoding == "sam_random_fourier_points") {
    return RandomFourierRequest(params);
  }
  return std::nullopt;
}

// The elements that a line selects, when it does not give all.
std::vector<std::byte> Selected(const Json& line, const FilledTensor& tensor) {
  const Json& params = Get(line, "params");
  if (!Has(params, "selected_indices")) return tensor.bytes;
  std::vector<std::byte> selected;
  for (const Json& index : Get(params, "selected_indices").GetArray()) {
    int64_t at = 0;
    for (unsigned d = 0; d < index.Size(); ++d) {
      at = at * tensor.tensor.shape[d] + index[d].GetInt64();
    }
    const std::byte* element = tensor.bytes.data() + 4 * at;
    selected.insert(selected.end(), element, element + 4);
  }
  return selected;
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
    golden::ExpectValues(line, request->format.dtype(), Selected(line, table->tensors.front()));
  }
  golden::ExpectNotYetCovered("sinusoidal_2d.jsonl", skipped);
}

}  // namespace
}  // namespace posenc::testing
