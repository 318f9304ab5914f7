// Rows of a square table for the patches of any image, and BEiT's stretched offsets.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using ::testing::ElementsAre;

v1::Selection Patches(int64_t height, int64_t width) {
  return Select(absl::StrCat("patch_grid { height: ", height, " width: ", width, " }"));
}

std::vector<int32_t> Nearest(const std::string& fields, const v1::Selection& patches) {
  return FillOne("patch_positions { " + fields + " }", patches).As<int32_t>();
}

TEST(PatchPositionsTest, NearestRowIsTheFloorOfTheFraction) {
  EXPECT_THAT(Nearest("patches_per_side: 4", Patches(2, 6)),
              ElementsAre(0, 0, 1, 2, 2, 3, 8, 8, 9, 10, 10, 11));
}

TEST(PatchPositionsTest, AnImageOfTheTablesSizeTakesItsRowsInOrder) {
  for (const int64_t side : {1, 4, 27, 70}) {
    const std::vector<int32_t> ids =
        Nearest(absl::StrCat("patches_per_side: ", side), Patches(side, side));
    for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], static_cast<int32_t>(i));
  }
}

// transformers#47133 and section 5.3: in bfloat16, 6 of 27 and 34 of 70 ids are others.
TEST(PatchPositionsTest, FractionsInBfloat16MovePatches) {
  for (const auto& [side, moved] : {std::pair<int64_t, int>(27, 6), {70, 34}}) {
    const std::string table = absl::StrCat("patches_per_side: ", side);
    const std::vector<int32_t> exact = Nearest(table, Patches(1, side));
    const std::vector<int32_t> rounded =
        Nearest(table + " pixel_dtype: PIXEL_DTYPE_BF16", Patches(1, side));
    int differ = 0;
    for (size_t i = 0; i < exact.size(); ++i) differ += exact[i] != rounded[i] ? 1 : 0;
    EXPECT_EQ(differ, moved) << side;
  }
}

TEST(PatchPositionsTest, InterpolationHasIndexesAndWeights) {
  const auto table =
      FillTable(Spec("patch_positions { patches_per_side: 3 kernel: RESAMPLE_KERNEL_BILINEAR }"),
                Patches(2, 5), {});
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->tensors.size(), 2u);
  const std::vector<int32_t> indices = table->tensors[0].As<int32_t>();
  const std::vector<float> weights = table->tensors[1].As<float>();
  // Patch (0, 1) stands at x = 1 * 2 / 4 = 0.5 of row 0: align_corners is the default.
  EXPECT_THAT(std::vector<int32_t>(indices.begin() + 4, indices.begin() + 8),
              ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(std::vector<float>(weights.begin() + 4, weights.begin() + 8),
              ElementsAre(0.5f, 0.5f, 0, 0));
}

TEST(PatchPositionsTest, MergedPatchesFollowOneAnother) {
  // Blocks of 2 x 2, row by row within: Qwen3-VL.
  EXPECT_THAT(Nearest("patches_per_side: 4 spatial_merge_size: 2", Patches(2, 4)),
              ElementsAre(0, 1, 8, 9, 2, 3, 10, 11));
}

TEST(PatchPositionsTest, AnySplitOfTheTableGivesTheSameBytes) {
  for (const int64_t units : {1, 5, 7}) {
    ExpectPartsEqualWhole(Spec("patch_positions { patches_per_side: 7 }"), Patches(5, 6), {},
                          units);
    ExpectPartsEqualWhole(
        Spec("patch_positions { patches_per_side: 7 kernel: RESAMPLE_KERNEL_BICUBIC }"),
        Patches(5, 6), {}, units);
  }
}

TEST(PatchPositionsTest, CanonicalizeIsIdempotent) {
  ExpectIdempotent("patch_positions { patches_per_side: 7 }");
  ExpectIdempotent("patch_positions { patches_per_side: 7 kernel: RESAMPLE_KERNEL_BILINEAR }");
}

TEST(PatchPositionsTest, BadSpecsAreRefusedWithTheFieldTheRuleAndTheValue) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "patch_positions.patches_per_side: is required"},
      {"patches_per_side: 0", "patch_positions.patches_per_side: must be in [1, 4096], got 0"},
      {"patches_per_side: 4 kernel: 8", "patch_positions.kernel: unknown value 8"},
      {"patches_per_side: 4 align_corners: true",
       "patch_positions.align_corners: the nearest row has none"},
      {"patches_per_side: 4 spatial_merge_size: 0",
       "patch_positions.spatial_merge_size: must be in [1, 1048576], got 0"},
      {"patches_per_side: 4 pixel_dtype: 8", "patch_positions.pixel_dtype: unknown value 8"},
      {"patches_per_side: 4 kernel: RESAMPLE_KERNEL_BICUBIC pixel_dtype: PIXEL_DTYPE_F16",
       "patch_positions.pixel_dtype: only the nearest row has one"}};
  for (const auto& [spec, message] : cases) {
    EXPECT_EQ(SpecRefusal("patch_positions { " + spec + " }"), message);
  }
}

TEST(PatchPositionsTest, BadTablesAreRefused) {
  EXPECT_EQ(TableRefusal("patch_positions { patches_per_side: 4 }", Patches(2, 2),
                         "layout: LAYOUT_INTERPOLATION_TAPS"),
            "format.layout: the nearest rows are position_ids");
  EXPECT_EQ(TableRefusal("patch_positions { patches_per_side: 4 kernel: RESAMPLE_KERNEL_BICUBIC }",
                         Patches(2, 2), "layout: LAYOUT_POSITION_IDS"),
            "format.layout: interpolated rows are interpolation_taps");
  EXPECT_NE(
      TableRefusal("patch_positions { patches_per_side: 4 spatial_merge_size: 2 }", Patches(3, 2)),
      "");
}

TEST(GeometricCoordinatesTest, AreOddAndGrowByAConstantFactor) {
  const std::vector<double> x =
      FillOne("geometric_coordinates { source_size: 13 target_size: 27 }", {}).As<double>();
  ASSERT_EQ(x.size(), 13u);
  EXPECT_EQ(x[6], 0);
  EXPECT_EQ(x[7], 1);
  const double q = x[8] - x[7];
  for (size_t i = 8; i + 1 < 13; ++i) EXPECT_NEAR((x[i + 1] - x[i]) / (x[i] - x[i - 1]), q, 1e-12);
  for (size_t i = 0; i < 13; ++i) EXPECT_EQ(x[i], -x[12 - i]);
  EXPECT_NEAR(x[12], 13, 1e-3) << "half of the target size";
}

// Code that stretches one side of a table asks for the other as well, and unilm's goes on
// when a window shrinks: bisection ends at its lower bound.
TEST(GeometricCoordinatesTest, AWindowThatDoesNotGrowHasTheLeastRatio) {
  for (const int64_t target_size : {13, 5, 1}) {
    const std::vector<double> x =
        FillOne(absl::StrCat("geometric_coordinates { source_size: 13 target_size: ", target_size,
                             " }"),
                {})
            .As<double>();
    EXPECT_NEAR(x[8] - x[7], 1.01, 1e-6);
    EXPECT_GT(x[12], 6) << "beyond half of the target size";
  }
}

TEST(GeometricCoordinatesTest, BadSpecsAreRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "geometric_coordinates.source_size: is required"},
      {"source_size: 3", "geometric_coordinates.target_size: is required"},
      {"source_size: 1 target_size: 5",
       "geometric_coordinates.source_size: must be in [3, 8191], got 1"},
      {"source_size: 4 target_size: 9",
       "geometric_coordinates.source_size: must be odd (2 window - 1), got 4"},
      {"source_size: 5 target_size: 0",
       "geometric_coordinates.target_size: must be in [1, 8191], got 0"},
      {"source_size: 5 target_size: 8",
       "geometric_coordinates.target_size: must be odd (2 window - 1), got 8"}};
  for (const auto& [spec, message] : cases) {
    EXPECT_EQ(SpecRefusal("geometric_coordinates { " + spec + " }"), message);
  }
}

}  // namespace
}  // namespace posenc::testing
