// RoPE over grids: each model's formula, and laws.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"
#include "tests/unit/axial_rope_testing.h"

namespace posenc::testing {
namespace {

std::vector<int64_t> DimsOf(const std::string& spec) {
  const auto canonical = Canonicalize(Spec(spec));
  EXPECT_TRUE(canonical.ok()) << canonical.status();
  std::vector<int64_t> dims;
  for (const auto& axis : canonical->proto().axial_rope().axes()) dims.push_back(axis.dim());
  return dims;
}

// The twin ----------------------------------------------------------------------

// A frequency in the order of the float32 code: 1 / theta^(k/n).
float Frequency(double theta, int64_t k, int64_t n) {
  const float exponent = static_cast<float>(k) / static_cast<float>(n);
  return 1.0f / Pow(Real(theta), Real(exponent)).ToFloat();
}

// The angle of a pair at a place, as each model's code has it.
using AngleOf = std::function<Real(int64_t pair, int64_t t, int64_t y, int64_t x)>;

// Compares cosines and sines over a row-major grid of 2 frames (or 1) of 3 x 5.
void ExpectAngles(const std::string& preset, int64_t head_dim, int64_t pairs, int64_t frames,
                  const AngleOf& angle_of, const std::string& options = "") {
  const auto table =
      FillTable(Spec(Axial(preset, head_dim, "token_order: GRID_TOKEN_ORDER_ROW_MAJOR " + options)),
                SelectPatches(frames, 3, 5), Format("layout: LAYOUT_COS_AND_SIN_HALF"));
  ASSERT_TRUE(table.ok()) << table.status();
  const auto cos = table->tensors[0].As<float>();
  const auto sin = table->tensors[1].As<float>();
  ASSERT_EQ(table->tensors[0].tensor.shape[1], pairs) << preset;
  for (int64_t token = 0; token < frames * 15; ++token) {
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const Real angle = angle_of(pair, token / 15, token / 5 % 3, token % 5);
      const auto at = static_cast<size_t>(token * pairs + pair);
      EXPECT_EQ(cos[at], Cos(angle).ToFloat()) << preset << " " << token << " " << pair;
      EXPECT_EQ(sin[at], Sin(angle).ToFloat()) << preset << " " << token << " " << pair;
    }
  }
}

TEST(AxialRopeTest, QwenTurnsTheFirstHalfByRowsTheSecondByColumns) {
  ExpectAngles("QWEN_VL", 40, 20, 1, [](int64_t pair, int64_t, int64_t y, int64_t x) {
    return Real(static_cast<float>(pair < 10 ? y : x) * Frequency(1e4, pair % 10, 10));
  });
}

TEST(AxialRopeTest, PixtralSharesTheFrequenciesOfTheHead) {
  ExpectAngles("PIXTRAL", 40, 20, 1, [](int64_t pair, int64_t, int64_t y, int64_t x) {
    return pair < 10 ? Real(static_cast<float>(y) * Frequency(1e4, 2 * pair, 20))
                     : Real(static_cast<float>(x) * Frequency(1e4, 2 * (pair - 10) + 1, 20));
  });
}

TEST(AxialRopeTest, KimiTakesColumnsAndRowsInTurns) {
  ExpectAngles("KIMI_VISION", 24, 12, 1, [](int64_t pair, int64_t, int64_t y, int64_t x) {
    return Real(static_cast<float>(pair % 2 == 0 ? x : y) * Frequency(1e4, pair / 2, 6));
  });
}

TEST(AxialRopeTest, Dinov3TurnsByCoordinatesOfTheUnitInterval) {
  ExpectAngles("DINOV3", 24, 12, 1, [](int64_t pair, int64_t, int64_t y, int64_t x) {
    const float unit = pair < 6 ? 2 * ((static_cast<float>(y) + 0.5f) / 3) - 1
                                : 2 * ((static_cast<float>(x) + 0.5f) / 5) - 1;
    return Real(0x1.921fb6p2f * unit * Frequency(100, pair % 6, 6));
  });
}

TEST(AxialRopeTest, Dinov3ExactIsTheRealFormula) {
  ExpectAngles(
      "DINOV3", 24, 12, 1,
      [](int64_t pair, int64_t, int64_t y, int64_t x) {
        const Real unit =
            pair < 6 ? Real::FromInt(2 * y - 2) / Real(3) : Real::FromInt(2 * x - 4) / Real(5);
        return Real(0x1.921fb54442d18p2) * unit / Pow(Real(100), Real::FromInt(pair % 6) / Real(6));
      },
      "arithmetic: ARITHMETIC_EXACT");
}

// The grid of a picture, stretched to the grid that the model was trained on.
TEST(AxialRopeTest, EvaRescalesToTheReferenceGrid) {
  ExpectAngles(
      "EVA02", 16, 8, 1,
      [](int64_t pair, int64_t, int64_t y, int64_t x) {
        const float at = pair < 4 ? static_cast<float>(y) / 3 * 16 : static_cast<float>(x) / 5 * 16;
        return Real(at * Frequency(1e4, pair % 4, 4));
      },
      "coordinate_rule: AXIAL_COORDINATE_RULE_RESCALED "
      "axes { axis: GRID_AXIS_Y dim: 8 stop: 16 } axes { axis: GRID_AXIS_X dim: 8 stop: 16 }");
}

// linspace(0, 16 (n-1) / n, n): in exact arithmetic i / n * 16 as above.
TEST(AxialRopeTest, ARegionIsALinspaceThatLeavesItsEndOut) {
  ExpectAngles(
      "HUNYUAN_DIT", 16, 8, 1,
      [](int64_t pair, int64_t, int64_t y, int64_t x) {
        const Real at =
            pair < 4 ? Real::FromInt(16 * x) / Real(5) : Real::FromInt(16 * y) / Real(3);
        return at / Pow(Real(1e4), Real::FromInt(pair % 4) / Real(4));
      },
      "arithmetic: ARITHMETIC_EXACT coordinate_rule: AXIAL_COORDINATE_RULE_REGION "
      "axes { axis: GRID_AXIS_X dim: 8 stop: 16 } axes { axis: GRID_AXIS_Y dim: 8 stop: 16 }");
}

TEST(AxialRopeTest, TimmPixelModeHasBandsOfPi) {
  for (const bool linear : {false, true}) {
    ExpectAngles(
        "TIMM_PIXEL", 16, 8, 1,
        [linear](int64_t pair, int64_t, int64_t y, int64_t x) {
          const Real at = pair < 4 ? Real::FromInt(y - 1) : Real::FromInt(x - 2) / Real(2);
          const Real part = Real::FromInt(pair % 4) / Real(3);
          const Real band = linear ? Real(1) + part * Real(31)      // 1 to 64 / 2
                                   : Pow(Real(2), part * Real(5));  // 2^0 to 2^(6-1)
          return at * band * Real::Pi();
        },
        absl::StrCat(
            "arithmetic: ARITHMETIC_EXACT max_resolution: 64 frequency_rule: ",
            linear ? "AXIAL_FREQUENCY_RULE_LINEAR_BANDS" : "AXIAL_FREQUENCY_RULE_LOG_BANDS"));
  }
}

// Wan 2.1: 44, 42, 42 channels of 128, computed in float64.
TEST(AxialRopeTest, WanGivesWhatIsLeftOfSixthsToFrames) {
  EXPECT_EQ(DimsOf(Axial("WAN", 128)), (std::vector<int64_t>{44, 42, 42}));
  ExpectAngles("WAN", 128, 64, 2, [](int64_t pair, int64_t t, int64_t y, int64_t x) {
    const int64_t axis = pair < 22 ? 0 : pair < 43 ? 1 : 2;
    const int64_t k = axis == 0 ? pair : axis == 1 ? pair - 22 : pair - 43;
    return Real::FromInt(axis == 0   ? t
                         : axis == 1 ? y
                                     : x) /
           Pow(Real(1e4), Real::FromInt(k) / Real::FromInt(axis == 0 ? 22 : 21));
  });
}

// Qwen-Image: of 3 rows two count below zero, of 5 columns three.
TEST(AxialRopeTest, QwenImageCountsFromTheMiddle) {
  ExpectAngles(
      "QWEN_IMAGE", 16, 7, 2,
      [](int64_t pair, int64_t t, int64_t y, int64_t x) {
        if (pair < 1) return Real(static_cast<float>(t));
        const bool rows = pair < 1 + 3;
        const int64_t at = rows ? y - 2 : x - 3;
        return Real(static_cast<float>(at) * Frequency(1e4, (pair - 1) % 3, 3));
      },
      "axes { axis: GRID_AXIS_T dim: 2 } axes { axis: GRID_AXIS_Y dim: 6 } "
      "axes { axis: GRID_AXIS_X dim: 6 }");
}

TEST(AxialRopeTest, SharesOfTheHeadAreThoseOfEachModel) {
  EXPECT_EQ(DimsOf(Axial("HUNYUAN_VIDEO", 128)), (std::vector<int64_t>{16, 56, 56}));
  EXPECT_EQ(DimsOf(Axial("FLUX", 128)), (std::vector<int64_t>{16, 56, 56}));
  EXPECT_EQ(DimsOf(Axial("COGVIDEOX", 64)), (std::vector<int64_t>{16, 24, 24}));
  EXPECT_EQ(DimsOf(Axial("ALLEGRO", 96)), (std::vector<int64_t>{32, 32, 32}));
  EXPECT_EQ(DimsOf(Axial("V_JEPA2", 64)), (std::vector<int64_t>{20, 20, 20}));
  EXPECT_EQ(DimsOf(Axial("MINIMAX_M3", 80)), (std::vector<int64_t>{26, 26, 26}));
  EXPECT_EQ(DimsOf(Axial("SAM2", 256)), (std::vector<int64_t>{128, 128}));
}

// Layouts ---------------------------------------------------------------------------

TEST(AxialRopeTest, LayoutsArePermutationsOfOneAnother) {
  const auto grid = SelectPatches(1, 3, 4);
  for (const char* preset : {"QWEN_VL", "LLAMA4_VISION", "GEMMA4_VISION"}) {
    const std::string spec = Axial(preset, 16, "token_order: GRID_TOKEN_ORDER_ROW_MAJOR");
    const auto half = FillTable(Spec(spec), grid, Format("layout: LAYOUT_COS_AND_SIN_HALF"));
    const auto full = FillTable(Spec(spec), grid, Format("layout: LAYOUT_COS_AND_SIN_FULL"));
    const auto repeated =
        FillTable(Spec(spec), grid, Format("layout: LAYOUT_COS_AND_SIN_REPEATED"));
    ASSERT_TRUE(half.ok() && full.ok() && repeated.ok());
    const auto packed = FillOne(spec, grid, "layout: LAYOUT_COS_SIN").As<float>();
    const auto pairs = FillOne(spec, grid, "layout: LAYOUT_PAIRS").As<float>();
    const auto sines_first = FillOne(spec, grid, "layout: LAYOUT_SIN_COS").As<float>();
    const auto matrices = FillOne(spec, grid, "layout: LAYOUT_ROTATION_MATRIX").As<float>();
    for (size_t tensor = 0; tensor < 2; ++tensor) {
      const auto values = half->tensors[tensor].As<float>();
      const auto doubled = full->tensors[tensor].As<float>();
      const auto twice = repeated->tensors[tensor].As<float>();
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t row = i / 8;
        const size_t pair = i % 8;
        EXPECT_EQ(packed[row * 16 + tensor * 8 + pair], values[i]);
        EXPECT_EQ(twice[row * 16 + pair], values[i]);
        EXPECT_EQ(twice[row * 16 + 8 + pair], values[i]);
        EXPECT_EQ(pairs[row * 16 + 2 * pair + tensor], values[i]);
        EXPECT_EQ(sines_first[row * 16 + (1 - tensor) * 8 + pair], values[i]);
        const float* matrix = matrices.data() + row * 32 + 4 * pair;
        EXPECT_EQ(matrix[2 * tensor], values[i]);
        EXPECT_EQ(matrix[3 - 2 * tensor], tensor == 0 ? values[i] : -values[i]);
        // The two channels of the pair: halves of the head, neighbours, or halves
        // of the axis's 8 channels.
        const std::string name = preset;
        const size_t first = name == "QWEN_VL"         ? pair
                             : name == "LLAMA4_VISION" ? 2 * pair
                                                       : pair / 4 * 8 + pair % 4;
        const size_t second = first + (name == "QWEN_VL" ? 8 : name == "LLAMA4_VISION" ? 1 : 4);
        EXPECT_EQ(doubled[row * 16 + first], values[i]) << preset << " " << pair;
        EXPECT_EQ(doubled[row * 16 + second], values[i]) << preset << " " << pair;
      }
    }
  }
}

TEST(AxialRopeTest, FrequenciesStandWhereTheirPairsDo) {
  const auto got =
      FillOne(Axial("MOONVIT", 16), v1::Selection(), "layout: LAYOUT_INV_FREQ").As<float>();
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(got[i], Frequency(1e4, static_cast<int64_t>(i) / 2, 4));
  }
}

// Tokens ----------------------------------------------------------------------------

TEST(AxialRopeTest, MergeOrderIsAPermutationOfRows) {
  const auto grid = SelectPatches(2, 4, 6);
  const auto merged = FillOne(Axial("QWEN_VL", 8), grid).As<float>();
  const auto rows =
      FillOne(Axial("SAM2", 8,
                    "axes { axis: GRID_AXIS_T dim: 2 } axes { axis: GRID_AXIS_Y dim: 2 } "
                    "axes { axis: GRID_AXIS_X dim: 2 }"),
              grid)
          .As<float>();
  ASSERT_EQ(merged.size(), 48u * 8);
  ASSERT_EQ(rows.size(), 48u * 6);
  for (size_t token = 0; token < 48; ++token) {
    const size_t i = token % 24;
    const size_t y = i / 12 * 2 + i % 4 / 2;
    const size_t x = i / 4 % 3 * 2 + i % 2;
    // Frequency 0 of each axis is 1, so cos and sin of the first pair of an axis
    // are those of the coordinate itself.
    const size_t row = token / 24 * 24 + y * 6 + x;
    EXPECT_EQ(merged[token * 8 + 0], rows[row * 6 + 1]) << token;
    EXPECT_EQ(merged[token * 8 + 2], rows[row * 6 + 2]) << token;
  }
}

// All images of a frame count have the same encoding: Qwen-VL repeats it.
TEST(AxialRopeTest, QwenRepeatsTheEncodingOfAFrame) {
  const auto one = FillOne(Axial("QWEN2_5_VL", 8), SelectPatches(1, 12, 20)).As<float>();
  const auto two = FillOne(Axial("QWEN2_5_VL", 8), SelectPatches(2, 12, 20)).As<float>();
  ASSERT_EQ(two.size(), 2 * one.size());
  for (size_t i = 0; i < two.size(); ++i) EXPECT_EQ(two[i], one[i % one.size()]);
}

TEST(AxialRopeTest, GivenPositionsAreTheRowsOfTheGrid) {
  const std::string spec = Axial("LLAMA4_VISION", 16, "suffix_identity_rows: 0");
  const auto grid = FillOne(spec, SelectPatches(1, 2, 3)).As<float>();
  v1::Selection ids;
  v1::Selection points;
  auto* x = ids.mutable_axis_position_ids()->add_axes();
  auto* y = ids.mutable_axis_position_ids()->add_axes();
  points.mutable_points()->set_dimensions(2);
  for (int token = 0; token < 6; ++token) {
    x->add_ids(token % 3);
    y->add_ids(token / 3);
    points.mutable_points()->add_coordinates(token % 3);
    points.mutable_points()->add_coordinates(token / 3);
  }
  EXPECT_EQ(FillOne(spec, ids).As<float>(), grid);
  EXPECT_EQ(FillOne(spec, points).As<float>(), grid);
}

// Gemma 4 pads with position -1, which turns the other way round.
TEST(AxialRopeTest, NegativePositionsTurnBack) {
  const std::string spec = Axial("GEMMA4_VISION", 16);
  const auto forth =
      FillOne(spec, Select("axis_position_ids { axes { ids: 1 } axes { ids: 1 } }")).As<float>();
  const auto back =
      FillOne(spec, Select("axis_position_ids { axes { ids: -1 } axes { ids: -1 } }")).As<float>();
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(back[i], i < 8 ? forth[i] : -forth[i]);
}

TEST(AxialRopeTest, IdentityRowsAreNotRotated) {
  const auto rows = FillOne(Axial("FLUX", 128, "prefix_identity_rows: 3 suffix_identity_rows: 2"),
                            SelectPatches(1, 1, 2))
                        .As<float>();
  ASSERT_EQ(rows.size(), 7u * 128);
  for (const size_t row : {0u, 1u, 2u, 3u, 5u, 6u}) {  // 3 is the patch (0, 0)
    for (size_t c = 0; c < 128; ++c) EXPECT_EQ(rows[row * 128 + c], c < 64 ? 1.0f : 0.0f);
  }
  EXPECT_EQ(rows[4 * 128 + 8 + 28], 0x1.14a28p-1f);  // cos(1) = 0.54030..., the canary
}

// Scores depend on differences of places only: q·k of a pair is cos of the
// difference of angles, which is that of the grid at the difference.
TEST(AxialRopeTest, ScoresDependOnDifferencesOfPlacesOnly) {
  const auto table = FillTable(Spec(Axial("WAN", 16, "")), SelectPatches(4, 4, 4),
                               Format("layout: LAYOUT_COS_AND_SIN_HALF dtype: DTYPE_F64"));
  ASSERT_TRUE(table.ok());
  const auto cos = table->tensors[0].As<double>();
  const auto sin = table->tensors[1].As<double>();
  for (size_t a = 0; a < 64; ++a) {
    for (size_t b = 0; b < 64; ++b) {
      if (a / 16 < b / 16 || a / 4 % 4 < b / 4 % 4 || a % 4 < b % 4) continue;
      for (size_t pair = 0; pair < 8; ++pair) {
        const double score =
            cos[a * 8 + pair] * cos[b * 8 + pair] + sin[a * 8 + pair] * sin[b * 8 + pair];
        EXPECT_NEAR(score, cos[(a - b) * 8 + pair], 4e-16);
      }
    }
  }
}

TEST(AxialRopeTest, PartsEqualTheWhole) {
  for (const char* preset : {"QWEN2_5_VL", "LLAMA4_VISION", "GEMMA4_VISION", "WAN"}) {
    for (const char* layout : {"COS_SIN", "COS_AND_SIN_HALF", "COS_AND_SIN_FULL", "PAIRS"}) {
      ExpectPartsEqualWhole(Spec(Axial(preset, 32)), SelectPatches(1, 4, 6),
                            Format(absl::StrCat("layout: LAYOUT_", layout, " dtype: DTYPE_F16")),
                            5);
    }
  }
}

}  // namespace
}  // namespace posenc::testing
