// SAM's random Fourier features and Perceiver's.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

v1::Selection SelectPatches(int64_t height, int64_t width) {
  return Select(absl::StrCat("patch_grid { height: ", height, " width: ", width, " }"));
}

const std::string kMatrix = "gaussian_matrix: [0.5, -0.25, 1.7, 1, 0.75, -0.3]";  // F = 3
constexpr float kGx[] = {0.5f, -0.25f, 1.7f};
constexpr float kGy[] = {1.0f, 0.75f, -0.3f};

TEST(RandomFourierTest, ElementsEqualTheSlowTwin) {
  for (const bool exact : {false, true}) {
    const auto got =
        FillOne(absl::StrCat("random_fourier { ", kMatrix, " arithmetic: ", exact ? 2 : 1, " }"),
                SelectPatches(3, 5), "layout: LAYOUT_TABLE")
            .As<float>();
    for (int64_t token = 0; token < 15; ++token) {
      for (int64_t c = 0; c < 6; ++c) {
        const float gx = kGx[c % 3];
        const float gy = kGy[c % 3];
        const Real x = Real::FromInt(2 * (token % 5) + 1) / Real(5) - Real(1);
        const Real y = Real::FromInt(2 * (token / 5) + 1) / Real(3) - Real(1);
        const float x32 = 2 * ((static_cast<float>(token % 5) + 0.5f) / 5) - 1;
        const float y32 = 2 * ((static_cast<float>(token / 5) + 0.5f) / 3) - 1;
        const Real angle = exact ? (x * Real(gx) + y * Real(gy)) * Real(2) * Real::Pi()
                                 : Real(0x1.921fb6p2f * (x32 * gx + y32 * gy));
        EXPECT_EQ(got[static_cast<size_t>(token * 6 + c)],
                  (c < 3 ? Sin(angle) : Cos(angle)).ToFloat())
            << exact << " token " << token << " channel " << c;
      }
    }
  }
}

TEST(RandomFourierTest, ChannelsFirstIsTheTransposeOfTheTable) {
  const std::string spec = absl::StrCat("random_fourier { ", kMatrix, " }");
  const auto table = FillOne(spec, SelectPatches(3, 5), "layout: LAYOUT_TABLE").As<float>();
  const auto channels = FillOne(spec, SelectPatches(3, 5)).As<float>();
  for (size_t token = 0; token < 15; ++token) {
    for (size_t c = 0; c < 6; ++c) EXPECT_EQ(channels[c * 15 + token], table[token * 6 + c]);
  }
  ExpectPartsEqualWhole(Spec(spec), SelectPatches(3, 5), Format(""), 2);
  ExpectPartsEqualWhole(Spec(spec), SelectPatches(3, 5), Format("layout: LAYOUT_TABLE"), 4);
}

// The prompt encoder adds half a pixel, so that the middle of a patch given as a
// point has the encoding that the dense grid has there.
TEST(RandomFourierTest, PointsAtPixelCentresAreTheDenseGrid) {
  const std::string spec = absl::StrCat("random_fourier { ", kMatrix,
                                        " image_height: 4 image_width: 8 point_offset: 0.5 }");
  v1::Selection points;
  points.mutable_points()->set_dimensions(2);
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 8; ++x) {
      points.mutable_points()->add_coordinates(x);
      points.mutable_points()->add_coordinates(y);
    }
  }
  EXPECT_EQ(FillOne(spec, points).As<float>(),
            FillOne(spec, SelectPatches(4, 8), "layout: LAYOUT_TABLE").As<float>());
}

TEST(RandomFourierTest, BadInputIsRefusedByField) {
  const std::string spec = absl::StrCat("random_fourier { ", kMatrix, " }");
  ExpectIdempotent(spec);
  EXPECT_EQ(SpecRefusal("random_fourier { }"), "random_fourier.gaussian_matrix: is required");
  EXPECT_EQ(SpecRefusal("random_fourier { gaussian_matrix: [1, 2, 3] }"),
            "random_fourier.gaussian_matrix: must have two rows of at most 32768 entries, got 3 "
            "entries");
  EXPECT_EQ(SpecRefusal("random_fourier { gaussian_matrix: [1, inf] }"),
            "random_fourier.gaussian_matrix[1]: must be in [-1.04858e+06, 1.04858e+06], got inf");
  EXPECT_EQ(SpecRefusal(absl::StrCat("random_fourier { ", kMatrix, " image_width: 0 }")),
            "random_fourier.image_width: must be in [9.53674e-07, 1.04858e+06], got 0");
  EXPECT_EQ(SpecRefusal(absl::StrCat("random_fourier { ", kMatrix, " point_offset: nan }")),
            "random_fourier.point_offset: must be in [-1.04858e+06, 1.04858e+06], got nan");
  EXPECT_EQ(SpecRefusal(absl::StrCat("random_fourier { ", kMatrix, " arithmetic: 4 }")),
            "random_fourier.arithmetic: unknown value 4");
  EXPECT_EQ(TableRefusal(spec, Select("")), "selection: is required: a patch_grid or points");
  EXPECT_EQ(TableRefusal(spec, Select("points { dimensions: 2 }"), "layout: LAYOUT_CHANNELS_FIRST"),
            "format.layout: points have no channels_first, only table");
  EXPECT_EQ(TableRefusal(spec, Select("points { dimensions: 3 }")),
            "selection.points.dimensions: must be in [2, 2] for this encoding, got 3");
}

// Perceiver ---------------------------------------------------------------------------

TEST(PerceiverFourierTest, ElementsEqualTheSlowTwin) {
  const auto got = FillOne(
                       "perceiver_fourier { num_bands: 3 max_resolution: [4, 6] "
                       "arithmetic: ARITHMETIC_EXACT }",
                       SelectPatches(4, 6))
                       .As<float>();
  for (int64_t token = 0; token < 24; ++token) {
    const Real position[] = {Real::FromInt(2 * (token / 6)) / Real(3) - Real(1),
                             Real::FromInt(2 * (token % 6)) / Real(5) - Real(1)};
    const float* row = got.data() + token * 14;
    for (int64_t axis = 0; axis < 2; ++axis) {
      EXPECT_EQ(row[axis], position[axis].ToFloat());
      for (int64_t k = 0; k < 3; ++k) {
        const Real last = Real(axis == 0 ? 2 : 3);
        const Real band = Real(1) + (last - Real(1)) * Real::FromInt(k) / Real(2);
        const Real angle = Real::Pi() * position[axis] * band;
        EXPECT_EQ(row[2 + axis * 3 + k], Sin(angle).ToFloat()) << token << " " << axis << " " << k;
        EXPECT_EQ(row[8 + axis * 3 + k], Cos(angle).ToFloat()) << token << " " << axis << " " << k;
      }
    }
  }
}

// Columns that an option leaves out leave the others as they are.
TEST(PerceiverFourierTest, OptionsOnlyDropColumns) {
  const std::string bands = "num_bands: 4 max_resolution: [3, 5]";
  const auto all =
      FillOne(absl::StrCat("perceiver_fourier { ", bands, " }"), SelectPatches(3, 5)).As<float>();
  const auto sines = FillOne(absl::StrCat("perceiver_fourier { ", bands,
                                          " sine_only: true concat_position: false }"),
                             SelectPatches(3, 5))
                         .As<float>();
  ASSERT_EQ(all.size(), 15u * 18);
  ASSERT_EQ(sines.size(), 15u * 8);
  for (size_t i = 0; i < sines.size(); ++i) EXPECT_EQ(sines[i], all[i / 8 * 18 + 2 + i % 8]);
}

TEST(PerceiverFourierTest, AxesAreTheLastOnesOfTheGrid) {
  const auto line =
      FillOne("perceiver_fourier { num_bands: 2 max_resolution: 5 }", SelectPatches(1, 5))
          .As<float>();
  const auto video = FillOne("perceiver_fourier { num_bands: 2 max_resolution: [2, 1, 5] }",
                             Select("patch_grid { frames: 2 height: 1 width: 5 }"))
                         .As<float>();
  for (size_t x = 0; x < 5; ++x) {
    EXPECT_EQ(video[x * 15 + 2], line[x * 5]);
    EXPECT_EQ(video[x * 15 + 3 + 4], line[x * 5 + 1]);
  }
  ExpectPartsEqualWhole(Spec("perceiver_fourier { num_bands: 2 max_resolution: [2, 1, 5] }"),
                        Select("patch_grid { frames: 2 height: 3 width: 5 }"),
                        Format("dtype: DTYPE_F16"), 7);
}

TEST(PerceiverFourierTest, BadInputIsRefusedByField) {
  ExpectIdempotent("perceiver_fourier { num_bands: 2 max_resolution: [2, 3] }");
  EXPECT_EQ(SpecRefusal("perceiver_fourier { }"), "perceiver_fourier.num_bands: is required");
  EXPECT_EQ(SpecRefusal("perceiver_fourier { num_bands: 0 }"),
            "perceiver_fourier.num_bands: must be in [1, 4096], got 0");
  EXPECT_EQ(SpecRefusal("perceiver_fourier { num_bands: 2 }"),
            "perceiver_fourier.max_resolution: must have 1 to 3 entries, one per axis, got 0");
  EXPECT_EQ(SpecRefusal("perceiver_fourier { num_bands: 2 max_resolution: [2, 0] }"),
            "perceiver_fourier.max_resolution[1]: must be in [1, 1048576], got 0");
  EXPECT_EQ(SpecRefusal("perceiver_fourier { num_bands: 2 max_resolution: 2 arithmetic: 9 }"),
            "perceiver_fourier.arithmetic: unknown value 9");
  EXPECT_EQ(
      TableRefusal("perceiver_fourier { num_bands: 2 max_resolution: 2 }", SelectPatches(2, 2)),
      "selection.patch_grid.height: must be 1 for one axis, got 2");
  EXPECT_EQ(TableRefusal("perceiver_fourier { num_bands: 2 max_resolution: [2, 2] }",
                         Select("patch_grid { frames: 2 height: 2 width: 2 }")),
            "selection.patch_grid.frames: must be 1 for an encoding of images, got 2");
}

}  // namespace
}  // namespace posenc::testing
