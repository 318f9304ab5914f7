// The laws of sinusoids of grids, and each element against a slow twin.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

v1::Selection SelectPatches(int64_t frames, int64_t height, int64_t width) {
  return Select(
      absl::StrCat("patch_grid { frames: ", frames, " height: ", height, " width: ", width, " }"));
}

std::vector<float> Values(const std::string& options, const v1::Selection& selection) {
  return FillOne(absl::StrCat("sinusoidal_grid { ", options, " }"), selection).As<float>();
}

// The twin ----------------------------------------------------------------------

// One sine or cosine at column `k` of n, as a sentence of the reference's.
// FLOAT32: every step rounded. EXACT: the real number.
Real Element(const v1::SinusoidalGridSpec& spec, float coordinate, int64_t k, int64_t n,
             bool is_sine) {
  const int64_t denominator = spec.frequency_rule() == v1::GRID_FREQUENCY_RULE_THETA ? n : n - 1;
  Real angle;
  if (spec.arithmetic() == v1::ARITHMETIC_EXACT) {
    angle =
        Real(coordinate) / Pow(Real(spec.base()), Real::FromInt(k) / Real::FromInt(denominator));
  } else if (spec.frequency_rule() == v1::GRID_FREQUENCY_RULE_SHIFTED_EXP) {
    const double step = -(Log(Real(spec.base())).ToDouble() / static_cast<double>(denominator));
    const float exponent = static_cast<float>(k) * static_cast<float>(step);
    angle = Real(coordinate * Exp(Real(exponent)).ToFloat());
  } else {
    const float exponent = static_cast<float>(k) / static_cast<float>(denominator);
    const float power = Pow(Real(static_cast<float>(spec.base())), Real(exponent)).ToFloat();
    angle = Real(coordinate * (1.0f / power));
  }
  return is_sine ? Sin(angle) : Cos(angle);
}

// Rows of [sin | cos] per axis over a row-major grid, without prefix or scales.
void ExpectTwin(const std::string& options, int64_t height, int64_t width) {
  const std::string text = absl::StrCat("sinusoidal_grid { ", options, " }");
  const auto canonical = Canonicalize(Spec(text));
  ASSERT_TRUE(canonical.ok()) << canonical.status();
  const v1::SinusoidalGridSpec& spec = canonical->proto().sinusoidal_grid();
  const auto got = FillOne(text, SelectPatches(1, height, width)).As<float>();
  size_t at = 0;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      int64_t left = spec.d_model();
      for (const auto& block : spec.blocks()) {
        const auto coordinate = static_cast<float>(block.axis() == v1::GRID_AXIS_Y ? y : x);
        const int64_t n = block.width() / 2;
        for (int64_t c = 0; c < 2 * n; ++c) {
          EXPECT_EQ(got[at++], Element(spec, coordinate, c % n, n, c < n).ToFloat())
              << options << " y " << y << " x " << x << " column " << c;
        }
        left -= 2 * n;
      }
      for (; left > 0; --left) EXPECT_EQ(got[at++], 0.0f);
    }
  }
}

TEST(SinusoidalGridTest, ElementsEqualTheSlowTwin) {
  ExpectTwin("preset: SINUSOIDAL_GRID_PRESET_MAE d_model: 24", 3, 5);
  ExpectTwin("preset: SINUSOIDAL_GRID_PRESET_MAE d_model: 24 arithmetic: ARITHMETIC_FLOAT32", 3, 5);
  ExpectTwin("preset: SINUSOIDAL_GRID_PRESET_BIG_VISION d_model: 24", 3, 5);
  ExpectTwin("preset: SINUSOIDAL_GRID_PRESET_T2T_2D d_model: 27", 3, 5);
  ExpectTwin("preset: SINUSOIDAL_GRID_PRESET_T2T_2D d_model: 27 arithmetic: ARITHMETIC_EXACT", 2,
             3);
  ExpectTwin("d_model: 8 base: 123.456 arithmetic: ARITHMETIC_FLOAT32", 2, 40);
}

// In every dtype a value is the real number rounded once, not a rounded float32.
TEST(SinusoidalGridTest, ExactRoundsOnceToEachDType) {
  const std::string text = "sinusoidal_grid { d_model: 64 }";
  const auto canonical = Canonicalize(Spec(text));
  ASSERT_TRUE(canonical.ok());
  const auto selection = SelectPatches(1, 1, 30);
  const auto f64 = FillOne(text, selection, "dtype: DTYPE_F64").As<double>();
  const auto f16 = FillOne(text, selection, "dtype: DTYPE_F16").As<uint16_t>();
  const auto bf16 = FillOne(text, selection, "dtype: DTYPE_BF16").As<uint16_t>();
  for (int64_t x = 0; x < 30; ++x) {
    for (int64_t c = 0; c < 32; ++c) {
      const Real want =
          Element(canonical->proto().sinusoidal_grid(), static_cast<float>(x), c % 16, 16, c < 16);
      const auto at = static_cast<size_t>(x * 64 + c);
      EXPECT_EQ(f64[at], want.ToDouble());
      EXPECT_EQ(f16[at], want.ToF16());
      EXPECT_EQ(bf16[at], want.ToBf16());
    }
  }
}

// The laws ------------------------------------------------------------------------

// facebookresearch/mae#18: MAE's names for the two halves are swapped, so its
// table is transformers 5's with the halves exchanged.
TEST(SinusoidalGridTest, MaeIsHfWithItsHalvesExchanged) {
  const auto grid = SelectPatches(1, 3, 7);
  const auto mae = Values("preset: SINUSOIDAL_GRID_PRESET_MAE d_model: 16", grid);
  const auto hf = Values("preset: SINUSOIDAL_GRID_PRESET_HF d_model: 16", grid);
  for (size_t i = 0; i < mae.size(); ++i) EXPECT_EQ(mae[i], hf[i ^ 8u]) << i;
}

TEST(SinusoidalGridTest, MocoIsMaeInColumnOrderAfterAZeroRow) {
  const auto grid = SelectPatches(1, 3, 7);
  const auto mae = Values("d_model: 16 arithmetic: ARITHMETIC_FLOAT32", grid);
  const auto moco = Values("preset: SINUSOIDAL_GRID_PRESET_MOCO_V3 d_model: 16", grid);
  ASSERT_EQ(moco.size(), mae.size() + 16);
  for (size_t c = 0; c < 16; ++c) {
    EXPECT_EQ(moco[c], 0.0f);
    for (size_t y = 0; y < 3; ++y) {
      for (size_t x = 0; x < 7; ++x) {
        EXPECT_EQ(moco[(1 + x * 3 + y) * 16 + c], mae[(y * 7 + x) * 16 + c]);
      }
    }
  }
}

TEST(SinusoidalGridTest, MocoOnASquareIsHfInRowOrder) {
  const auto grid = SelectPatches(1, 5, 5);
  EXPECT_EQ(
      Values("preset: SINUSOIDAL_GRID_PRESET_MOCO_V3 d_model: 16 prefix_zero_rows: 0", grid),
      Values("preset: SINUSOIDAL_GRID_PRESET_HF d_model: 16 arithmetic: ARITHMETIC_FLOAT32", grid));
}

TEST(SinusoidalGridTest, TimmPutsBothSinesBeforeBothCosines) {
  const auto grid = SelectPatches(1, 3, 4);
  const auto timm = Values("preset: SINUSOIDAL_GRID_PRESET_TIMM d_model: 16", grid);
  const auto hf =
      Values("preset: SINUSOIDAL_GRID_PRESET_HF d_model: 16 arithmetic: ARITHMETIC_FLOAT32", grid);
  for (size_t token = 0; token < 12; ++token) {
    for (size_t block = 0; block < 4; ++block) {  // [sin y, cos y, sin x, cos x] there
      const size_t moved = block == 1 ? 2 : block == 2 ? 1 : block;
      for (size_t c = 0; c < 4; ++c) {
        EXPECT_EQ(timm[token * 16 + block * 4 + c], hf[token * 16 + moved * 4 + c]);
      }
    }
  }
}

// CogVideoX: a frame is the image table of its spatial width beside E(t).
TEST(SinusoidalGridTest, EveryFrameOfAVideoHasTheSameSpatialPart) {
  const auto video =
      Values("preset: SINUSOIDAL_GRID_PRESET_COGVIDEOX d_model: 32", SelectPatches(3, 2, 5));
  const auto image = Values("d_model: 24", SelectPatches(1, 2, 5));
  for (size_t token = 0; token < 30; ++token) {
    for (size_t c = 0; c < 24; ++c) {
      EXPECT_EQ(video[token * 32 + 8 + c], image[(token % 10) * 24 + c]);
    }
  }
}

// SD3 builds a square table and cuts its middle: top = (max - height) / 2.
TEST(SinusoidalGridTest, ASmallGridIsTheMiddleOfTheLargestOne) {
  const std::string options =
      "preset: SINUSOIDAL_GRID_PRESET_DIFFUSERS d_model: 8 base_size: 4 max_grid_size: 9";
  const auto whole = Values(options, SelectPatches(1, 9, 9));
  const auto part = Values(options, SelectPatches(1, 4, 5));
  for (size_t y = 0; y < 4; ++y) {
    for (size_t x = 0; x < 5; ++x) {
      for (size_t c = 0; c < 8; ++c) {
        EXPECT_EQ(part[(y * 5 + x) * 8 + c], whole[((y + 2) * 9 + x + 2) * 8 + c]);
      }
    }
  }
}

TEST(SinusoidalGridTest, PartsEqualTheWhole) {
  for (const char* options :
       {"d_model: 16 prefix_zero_rows: 3", "preset: SINUSOIDAL_GRID_PRESET_MOCO_V3 d_model: 8",
        "preset: SINUSOIDAL_GRID_PRESET_T2T_3D d_model: 31"}) {
    const auto spec = Spec(absl::StrCat("sinusoidal_grid { ", options, " }"));
    ExpectPartsEqualWhole(spec, SelectPatches(1, 3, 4), Format("dtype: DTYPE_BF16"), 2);
    ExpectPartsEqualWhole(spec, SelectPatches(1, 3, 4), Format("dtype: DTYPE_F64"), 5);
  }
}

TEST(SinusoidalGridTest, AnEmptyGridHasOnlyItsPrefix) {
  EXPECT_TRUE(Values("d_model: 8", SelectPatches(1, 0, 7)).empty());
  EXPECT_EQ(Values("d_model: 8 prefix_zero_rows: 1", SelectPatches(1, 4, 0)),
            std::vector<float>(8, 0.0f));
}

// Refusals --------------------------------------------------------------------------

TEST(SinusoidalGridTest, CanonicalizeIsIdempotent) {
  for (int preset = 0; v1::SinusoidalGridPreset_IsValid(preset); ++preset) {
    ExpectIdempotent(absl::StrCat("sinusoidal_grid { preset: ", preset, " d_model: 48 }"));
  }
  ExpectIdempotent("sinusoidal_grid { d_model: 9 blocks { axis: GRID_AXIS_T width: 6 } }");
}

TEST(SinusoidalGridTest, BadSpecsAreRefusedByField) {
  const struct {
    const char* options;
    const char* refusal;
  } kCases[] = {
      {"", "sinusoidal_grid.d_model: is required"},
      {"d_model: 0", "sinusoidal_grid.d_model: must be in [1, 65536], got 0"},
      {"d_model: 70000", "sinusoidal_grid.d_model: must be in [1, 65536], got 70000"},
      {"d_model: 6", "sinusoidal_grid.d_model: must be a multiple of 4 for this preset, got 6"},
      {"d_model: 24 preset: SINUSOIDAL_GRID_PRESET_COGVIDEOX",
       "sinusoidal_grid.d_model: must be a multiple of 16 for this preset, got 24"},
      {"d_model: 8 preset: 99", "sinusoidal_grid.preset: unknown value 99"},
      {"d_model: 4 preset: SINUSOIDAL_GRID_PRESET_BIG_VISION",
       "sinusoidal_grid.blocks[0].width: must be even, at least 4 and fit in what is left of "
       "d_model (4), got 2"},
      {"d_model: 8 blocks { axis: GRID_AXIS_X width: 4 } blocks { axis: GRID_AXIS_Y width: 6 }",
       "sinusoidal_grid.blocks[1].width: must be even, at least 2 and fit in what is left of "
       "d_model (4), got 6"},
      {"d_model: 8 blocks { axis: GRID_AXIS_X width: 3 }",
       "sinusoidal_grid.blocks[0].width: must be even, at least 2 and fit in what is left of "
       "d_model (8), got 3"},
      {"d_model: 8 blocks { width: 4 }", "sinusoidal_grid.blocks[0].axis: is required: t, y or x"},
      {"d_model: 8 base: 0.5", "sinusoidal_grid.base: must be in [1, 1e+30], got 0.5"},
      {"d_model: 8 base: nan", "sinusoidal_grid.base: must be in [1, 1e+30], got nan"},
      {"d_model: 8 token_order: GRID_TOKEN_ORDER_MERGE_BLOCKS",
       "sinusoidal_grid.token_order: unknown value 3"},
      {"d_model: 8 block_layout: 7", "sinusoidal_grid.block_layout: unknown value 7"},
      {"d_model: 8 frequency_rule: 9", "sinusoidal_grid.frequency_rule: unknown value 9"},
      {"d_model: 8 arithmetic: 5", "sinusoidal_grid.arithmetic: unknown value 5"},
      {"d_model: 8 prefix_zero_rows: -1",
       "sinusoidal_grid.prefix_zero_rows: must be in [0, 1048576], got -1"},
      {"d_model: 8 base_size: 0", "sinusoidal_grid.base_size: must be in [1, 1048576], got 0"},
      {"d_model: 8 max_grid_size: 0",
       "sinusoidal_grid.max_grid_size: must be in [1, 1048576], got 0"},
      {"d_model: 8 interpolation_scale: 0",
       "sinusoidal_grid.interpolation_scale: must be in [9.53674e-07, 1.04858e+06], got 0"},
      {"d_model: 8 temporal_interpolation_scale: inf",
       "sinusoidal_grid.temporal_interpolation_scale: must be in [9.53674e-07, 1.04858e+06], "
       "got inf"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(SpecRefusal(absl::StrCat("sinusoidal_grid { ", c.options, " }")), c.refusal);
  }
}

TEST(SinusoidalGridTest, BadSelectionsAreRefusedByField) {
  const struct {
    const char* options;
    const char* selection;
    const char* refusal;
  } kCases[] = {
      {"d_model: 8", "", "selection: is required: a patch_grid"},
      {"d_model: 8", "position_range { end: 4 }",
       "selection: needs a patch_grid for this encoding, got position_range"},
      {"d_model: 8", "patch_grid { width: 4 }", "selection.patch_grid.height: is required"},
      {"d_model: 8", "patch_grid { height: 4 }", "selection.patch_grid.width: is required"},
      {"d_model: 8", "patch_grid { height: -1 width: 4 }",
       "selection.patch_grid.height: must be in [0, 1048576], got -1"},
      {"d_model: 8", "patch_grid { height: 4 width: 4 frames: 2 }",
       "selection.patch_grid.frames: must be 1 for an encoding of images, got 2"},
      {"d_model: 8 max_grid_size: 5", "patch_grid { height: 6 width: 4 }",
       "selection.patch_grid.height: must be at most max_grid_size (5), got 6"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(
        TableRefusal(absl::StrCat("sinusoidal_grid { ", c.options, " }"), Select(c.selection)),
        c.refusal);
  }
  EXPECT_EQ(TableRefusal("sinusoidal_grid { d_model: 8 }", SelectPatches(1, 2, 2),
                         "layout: LAYOUT_COS_SIN"),
            "format.layout: sinusoidal_grid has table, got cos_sin");
}

}  // namespace
}  // namespace posenc::testing
