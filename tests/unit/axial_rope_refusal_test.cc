// RoPE over grids: what a spec and a selection may not say.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/tables.h"
#include "tests/unit/axial_rope_testing.h"

namespace posenc::testing {
namespace {

TEST(AxialRopeRefusalTest, EveryPresetIsCanonicalAtOnce) {
  for (int preset = 0; v1::AxialRopePreset_IsValid(preset); ++preset) {
    ExpectIdempotent(absl::StrCat("axial_rope { preset: ", preset, " head_dim: 96 }"));
  }
}

TEST(AxialRopeRefusalTest, BadSpecsAreRefusedByField) {
  const struct {
    const char* options;
    const char* refusal;
  } kCases[] = {
      {"", "axial_rope.head_dim: is required"},
      {"head_dim: 0", "axial_rope.head_dim: must be in [2, 65536], got 0"},
      {"head_dim: 64 preset: 99", "axial_rope.preset: unknown value 99"},
      {"head_dim: 42",
       "axial_rope.axes[0].dim: must be even, at least 2 and fit in what is left "
       "of head_dim (42), got 21"},
      {"head_dim: 8 axes { axis: GRID_AXIS_X dim: 6 } axes { axis: GRID_AXIS_Y dim: 4 }",
       "axial_rope.axes[1].dim: must be even, at least 2 and fit in what is left of head_dim (2), "
       "got 4"},
      {"head_dim: 8 axes { dim: 4 }", "axial_rope.axes[0].axis: is required: t, y or x"},
      {"head_dim: 8 axes { axis: 7 dim: 4 }", "axial_rope.axes[0].axis: must be t, y or x, got 7"},
      {"head_dim: 64 rope_theta: 0", "axial_rope.rope_theta: must be in [1, 1e+30], got 0"},
      {"head_dim: 64 rope_theta: inf", "axial_rope.rope_theta: must be in [1, 1e+30], got inf"},
      {"head_dim: 64 coordinate_scale: 0",
       "axial_rope.coordinate_scale: must be in [9.53674e-07, 1.04858e+06], got 0"},
      {"head_dim: 64 coordinate_offset: nan",
       "axial_rope.coordinate_offset: must be in [-1.67772e+07, 1.67772e+07], got nan"},
      {"head_dim: 64 merge_size: 0", "axial_rope.merge_size: must be in [1, 1048576], got 0"},
      {"head_dim: 64 window_size: 4",
       "axial_rope.window_size: has no effect without token_order merge_windows"},
      {"head_dim: 64 preset: AXIAL_ROPE_PRESET_SAM2 merge_size: 2",
       "axial_rope.merge_size: has no effect without a token_order that merges"},
      {"head_dim: 64 max_resolution: 9",
       "axial_rope.max_resolution: has no effect without a frequency_rule of bands"},
      {"head_dim: 64 coordinate_rule: AXIAL_COORDINATE_RULE_REGION",
       "axial_rope.axes[0].stop: is required for this coordinate_rule"},
      {"head_dim: 8 axes { axis: GRID_AXIS_X dim: 8 stop: 3 }",
       "axial_rope.axes[0].stop: has no effect without coordinate_rule region or rescaled, or on "
       "frames"},
      {"head_dim: 64 prefix_identity_rows: -1",
       "axial_rope.prefix_identity_rows: must be in [0, 1048576], got -1"},
      {"head_dim: 16 frequency_rule: AXIAL_FREQUENCY_RULE_SHARED "
       "axes { axis: GRID_AXIS_X dim: 4 } axes { axis: GRID_AXIS_Y dim: 8 }",
       "axial_rope.axes[1].dim: must equal that of axes[0] (4) for frequency_rule shared, got 8"},
      {"head_dim: 16 arrangement: AXIAL_ARRANGEMENT_ALTERNATING "
       "pairing: AXIAL_PAIRING_HALF_PER_AXIS",
       "axial_rope.pairing: half_per_axis needs arrangement blocks"},
      {"head_dim: 64 pairing: 9", "axial_rope.pairing: unknown value 9"},
      {"head_dim: 64 arrangement: 9", "axial_rope.arrangement: unknown value 9"},
      {"head_dim: 64 frequency_rule: 9", "axial_rope.frequency_rule: unknown value 9"},
      {"head_dim: 64 coordinate_rule: 9", "axial_rope.coordinate_rule: unknown value 9"},
      {"head_dim: 64 token_order: 9", "axial_rope.token_order: unknown value 9"},
      {"head_dim: 64 arithmetic: 9", "axial_rope.arithmetic: unknown value 9"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(SpecRefusal(absl::StrCat("axial_rope { ", c.options, " }")), c.refusal) << c.options;
  }
}

TEST(AxialRopeRefusalTest, BadSelectionsAreRefusedByField) {
  EXPECT_EQ(TableRefusal(Axial("QWEN_VL", 8), SelectPatches(1, 3, 4)),
            "selection.patch_grid.height: must be a multiple of merge_size (2), got 3");
  EXPECT_EQ(TableRefusal(Axial("PIXTRAL", 8), SelectPatches(2, 3, 4)),
            "selection.patch_grid.frames: must be 1 for an encoding of images, got 2");
  EXPECT_EQ(TableRefusal(Axial("PIXTRAL", 8), SelectRange(0, 4)),
            "selection: needs a patch_grid, axis_position_ids or points for this encoding, got "
            "position_range");
  EXPECT_EQ(TableRefusal(Axial("WAN", 32), Select("axis_position_ids { axes { ids: 1 } }")),
            "selection.axis_position_ids.axes: must have the 3 axes of this encoding, got 1");
  EXPECT_EQ(TableRefusal(Axial("PIXTRAL", 8), Select("points { dimensions: 3 }")),
            "selection.points.dimensions: must be in [2, 2] for this encoding, got 3");
}

}  // namespace
}  // namespace posenc::testing
