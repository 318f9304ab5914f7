// Reference: hf-rope 3.4 and 5.2, serving-stacks 6.2 and 6.3.
#include "lib/families/axial_presets.h"

#include <array>

namespace posenc {
namespace {

using Axes = std::vector<v1::AxialRopeAxis>;

constexpr auto kT = v1::GRID_AXIS_T;
constexpr auto kY = v1::GRID_AXIS_Y;
constexpr auto kX = v1::GRID_AXIS_X;

v1::AxialRopeAxis Axis(v1::GridAxis axis, int64_t dim) {
  v1::AxialRopeAxis made;
  made.set_axis(axis);
  made.set_dim(dim);
  return made;
}

Axes Video(int64_t t, int64_t y, int64_t x) { return {Axis(kT, t), Axis(kY, y), Axis(kX, x)}; }

// Half of the head each.
Axes RowsThenColumns(int64_t head_dim) { return {Axis(kY, head_dim / 2), Axis(kX, head_dim / 2)}; }
Axes ColumnsThenRows(int64_t head_dim) { return {Axis(kX, head_dim / 2), Axis(kY, head_dim / 2)}; }

Axes Thirds(int64_t head_dim) { return Video(head_dim / 3, head_dim / 3, head_dim / 3); }

// The largest even third, as V-JEPA 2 and MiniMax-M3 round it; the rest of the
// head is not rotated.
Axes EvenThirds(int64_t head_dim) {
  const int64_t dim = head_dim / 3 / 2 * 2;
  return Video(dim, dim, dim);
}
Axes EvenThirdsOfPairs(int64_t head_dim) {
  const int64_t dim = 2 * (head_dim / 2) / 3 / 2 * 2;
  return Video(dim, dim, dim);
}

// Sixths to rows and columns in pairs, what is left to frames: 44, 42, 42 of 128.
Axes WanShares(int64_t head_dim) {
  const int64_t spatial = 2 * (head_dim / 6);
  return Video(head_dim - 2 * spatial, spatial, spatial);
}

// 16, 56, 56 of 128.
Axes EighthToFrames(int64_t head_dim) {
  const int64_t t = head_dim / 8;
  return Video(t, (head_dim - t) / 2, (head_dim - t) / 2);
}

Axes QuarterToFrames(int64_t head_dim) {
  return Video(head_dim / 4, head_dim * 3 / 8, head_dim * 3 / 8);
}

constexpr auto kHalf = v1::AXIAL_PAIRING_HALF;
constexpr auto kInterleaved = v1::AXIAL_PAIRING_INTERLEAVED;
constexpr auto kHalfPerAxis = v1::AXIAL_PAIRING_HALF_PER_AXIS;
constexpr auto kFloat32 = v1::ARITHMETIC_FLOAT32;
constexpr auto kExact = v1::ARITHMETIC_EXACT;
constexpr auto kAlternating = v1::AXIAL_ARRANGEMENT_ALTERNATING;
constexpr double kTwoPi = 0x1.921fb54442d18p2;

constexpr std::array kPresets = {
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_QWEN_VL,
                .axes = RowsThenColumns,
                .rope_theta = 1e4,
                .pairing = kHalf,
                .arithmetic = kFloat32,
                .token_order = v1::GRID_TOKEN_ORDER_MERGE_BLOCKS},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_QWEN2_5_VL,
                .axes = RowsThenColumns,
                .rope_theta = 1e4,
                .pairing = kHalf,
                .arithmetic = kFloat32,
                .token_order = v1::GRID_TOKEN_ORDER_MERGE_WINDOWS},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_PIXTRAL,
                .axes = RowsThenColumns,
                .rope_theta = 1e4,
                .pairing = kHalf,
                .arithmetic = kFloat32,
                .frequency_rule = v1::AXIAL_FREQUENCY_RULE_SHARED},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_LLAMA4_VISION,
                .axes = ColumnsThenRows,
                .rope_theta = 1e4,
                .pairing = kInterleaved,
                .arithmetic = kFloat32,
                .coordinate_offset = 1,
                .suffix_identity_rows = 1},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_GEMMA4_VISION,
                .axes = ColumnsThenRows,
                .rope_theta = 100,
                .pairing = kHalfPerAxis,
                .arithmetic = kFloat32},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_KIMI_VISION,
                .axes = ColumnsThenRows,
                .rope_theta = 1e4,
                .pairing = kHalf,
                .arithmetic = kFloat32,
                .arrangement = kAlternating},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_MOONVIT,
                .axes = ColumnsThenRows,
                .rope_theta = 1e4,
                .pairing = kInterleaved,
                .arithmetic = kFloat32,
                .arrangement = kAlternating},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_DINOV3,
                .axes = RowsThenColumns,
                .rope_theta = 100,
                .pairing = kHalf,
                .arithmetic = kFloat32,
                .coordinate_rule = v1::AXIAL_COORDINATE_RULE_UNIT_CENTERED,
                .coordinate_scale = kTwoPi},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_SAM2,
                .axes = ColumnsThenRows,
                .rope_theta = 1e4,
                .pairing = kInterleaved,
                .arithmetic = kFloat32},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_EVA02,
                .axes = RowsThenColumns,
                .rope_theta = 1e4,
                .pairing = kInterleaved,
                .arithmetic = kFloat32},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_TIMM_PIXEL,
                .axes = RowsThenColumns,
                .rope_theta = 1e4,
                .pairing = kInterleaved,
                .arithmetic = kFloat32,
                .frequency_rule = v1::AXIAL_FREQUENCY_RULE_LOG_BANDS,
                .coordinate_rule = v1::AXIAL_COORDINATE_RULE_UNIT},
    // Its tables are tiled as halves of each axis, but turn adjacent channels: a
    // mismatch that checkpoints depend on. The full row is what its code has.
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_V_JEPA2,
                .axes = EvenThirds,
                .rope_theta = 1e4,
                .pairing = kHalfPerAxis,
                .arithmetic = kFloat32},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_MINIMAX_M3,
                .axes = EvenThirdsOfPairs,
                .rope_theta = 1e4,
                .pairing = kHalf,
                .arithmetic = kFloat32,
                .token_order = v1::GRID_TOKEN_ORDER_MERGE_BLOCKS},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_WAN,
                .axes = WanShares,
                .rope_theta = 1e4,
                .pairing = kInterleaved,
                .arithmetic = kExact},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_HUNYUAN_VIDEO,
                .axes = EighthToFrames,
                .rope_theta = 256,
                .pairing = kInterleaved,
                .arithmetic = kFloat32},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_COGVIDEOX,
                .axes = QuarterToFrames,
                .rope_theta = 1e4,
                .pairing = kInterleaved,
                .arithmetic = kFloat32},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_ALLEGRO,
                .axes = Thirds,
                .rope_theta = 1e4,
                .pairing = kHalfPerAxis,
                .arithmetic = kFloat32},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_FLUX,
                .axes = EighthToFrames,
                .rope_theta = 1e4,
                .pairing = kInterleaved,
                .arithmetic = kExact},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_QWEN_IMAGE,
                .axes = EighthToFrames,
                .rope_theta = 1e4,
                .pairing = kInterleaved,
                .arithmetic = kFloat32,
                .coordinate_rule = v1::AXIAL_COORDINATE_RULE_CENTERED},
    AxialPreset{.preset = v1::AXIAL_ROPE_PRESET_HUNYUAN_DIT,
                .axes = ColumnsThenRows,
                .rope_theta = 1e4,
                .pairing = kInterleaved,
                .arithmetic = kFloat32},
};

}  // namespace

std::span<const AxialPreset> AxialPresets() { return kPresets; }

}  // namespace posenc
