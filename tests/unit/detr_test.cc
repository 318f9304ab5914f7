// DETR's sines, its learned tables, and the sines of anchors.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

v1::Selection SelectMask(int64_t height, int64_t width, const std::vector<int>& valid) {
  v1::Selection selection;
  selection.mutable_token_mask()->set_height(height);
  selection.mutable_token_mask()->set_width(width);
  for (const int v : valid) {
    selection.mutable_token_mask()->mutable_valid()->push_back(static_cast<char>(v));
  }
  return selection;
}

v1::Selection SelectPoints(int64_t dimensions, const std::vector<double>& coordinates) {
  v1::Selection selection;
  selection.mutable_points()->set_dimensions(dimensions);
  selection.mutable_points()->mutable_coordinates()->Add(coordinates.begin(), coordinates.end());
  return selection;
}

std::vector<float> Detr(const std::string& options, const v1::Selection& selection,
                        const std::string& format = "layout: LAYOUT_TABLE") {
  return FillOne(absl::StrCat("detr_sine { num_position_features: 8 ", options, " }"), selection,
                 format)
      .As<float>();
}

// A valid rectangle at the top left, a hole in it, and lines without any pixel.
const std::vector<int> kValid = {1, 1, 0, 0, 0,  //
                                 1, 0, 1, 0, 0,  //
                                 1, 1, 1, 0, 0,  //
                                 0, 0, 0, 0, 0};

// The twin: cumulative sums as PositionEmbeddingSine has them, each step in
// float32 or, of the EXACT arithmetic, real.
struct Sums {
  int64_t at = 0;
  int64_t last = 0;
};

Sums SumAlong(bool rows, int64_t y, int64_t x) {
  Sums sums;
  for (int64_t i = 0; i < (rows ? 4 : 5); ++i) {
    const int64_t pixel = rows ? i * 5 + x : y * 5 + i;
    sums.last += kValid[static_cast<size_t>(pixel)];
    if (i == (rows ? y : x)) sums.at = sums.last;
  }
  return sums;
}

struct Options {
  bool exact = false;
  bool normalize = true;
  double offset = 0;
  double temperature = 10000;
};

float Expected(const Options& options, const Sums& sums, int64_t channel) {
  constexpr double kScale = 0x1.921fb54442d18p2;
  const Real exponent = Real::FromInt(2 * (channel / 2)) / Real::FromInt(8);
  Real angle;
  if (options.exact) {
    Real v = Real::FromInt(sums.at);
    if (options.normalize) {
      v = (v + Real(options.offset)) / (Real::FromInt(sums.last) + Real(1e-6)) * Real(kScale);
    }
    angle = v / Pow(Real(options.temperature), exponent);
  } else {
    auto v = static_cast<float>(sums.at);
    if (options.normalize) {
      v = (v + static_cast<float>(options.offset)) / (static_cast<float>(sums.last) + 1e-6f) *
          static_cast<float>(kScale);
    }
    angle = Real(v / Pow(Real(options.temperature), Real(exponent.ToFloat())).ToFloat());
  }
  return (channel % 2 == 0 ? Sin(angle) : Cos(angle)).ToFloat();
}

void ExpectTwin(const std::string& text, const Options& options) {
  const auto got = Detr(text, SelectMask(4, 5, kValid));
  ASSERT_EQ(got.size(), 4u * 5 * 16);
  for (int64_t y = 0; y < 4; ++y) {
    for (int64_t x = 0; x < 5; ++x) {
      for (int64_t c = 0; c < 16; ++c) {
        EXPECT_EQ(got[static_cast<size_t>((y * 5 + x) * 16 + c)],
                  Expected(options, SumAlong(c < 8, y, x), c % 8))
            << text << " y " << y << " x " << x << " channel " << c;
      }
    }
  }
}

TEST(DetrSineTest, ElementsEqualTheSlowTwin) {
  ExpectTwin("", {});
  ExpectTwin("arithmetic: ARITHMETIC_EXACT", {.exact = true});
  ExpectTwin("normalize: false", {.normalize = false});
  ExpectTwin("preset: DETR_PRESET_DEFORMABLE_DETR", {.offset = -0.5});
  ExpectTwin("preset: DETR_PRESET_DEFORMABLE_DETR arithmetic: ARITHMETIC_EXACT",
             {.exact = true, .offset = -0.5});
  ExpectTwin("preset: DETR_PRESET_DAB_DETR", {.temperature = 20});
}

TEST(DetrSineTest, ChannelsFirstIsTheTransposeOfTheTable) {
  for (const char* options : {"", "arithmetic: ARITHMETIC_EXACT"}) {
    const auto table = Detr(options, SelectMask(4, 5, kValid));
    const auto channels = Detr(options, SelectMask(4, 5, kValid), "");
    for (size_t pixel = 0; pixel < 20; ++pixel) {
      for (size_t c = 0; c < 16; ++c) EXPECT_EQ(channels[c * 20 + pixel], table[pixel * 16 + c]);
    }
  }
}

TEST(DetrSineTest, AGridIsAMaskWithoutPadding) {
  EXPECT_EQ(Detr("", Select("patch_grid { height: 3 width: 2 }")),
            Detr("", SelectMask(3, 2, {1, 1, 1, 1, 1, 1})));
}

// Padding at the right and below moves nothing: an image keeps its encoding in
// any batch (the reason why positions are counted and not indexed).
TEST(DetrSineTest, PaddingLeavesValidPixelsAlone) {
  const auto alone = Detr("", Select("patch_grid { height: 2 width: 3 }"));
  const auto padded = Detr("", SelectMask(3, 5, {1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0}));
  for (size_t y = 0; y < 2; ++y) {
    for (size_t x = 0; x < 3; ++x) {
      for (size_t c = 0; c < 16; ++c) {
        EXPECT_EQ(padded[(y * 5 + x) * 16 + c], alone[(y * 3 + x) * 16 + c]);
      }
    }
  }
}

TEST(DetrSineTest, ALineWithoutAnyPixelHasAngleZero) {
  const auto all_padding = Detr("", SelectMask(1, 2, {0, 0}));
  for (size_t i = 0; i < all_padding.size(); ++i) EXPECT_EQ(all_padding[i], i % 2 == 0 ? 0 : 1);
}

TEST(DetrSineTest, TemperaturesAreOfEachAxis) {
  const auto grid = Select("patch_grid { height: 3 width: 3 }");
  const auto both = Detr("temperature_height: 20 temperature_width: 10000", grid);
  const auto cold = Detr("temperature_height: 20", grid);
  const auto warm = Detr("", grid);
  for (size_t i = 0; i < both.size(); ++i) EXPECT_EQ(both[i], i % 16 < 8 ? cold[i] : warm[i]);
}

TEST(DetrSineTest, PartsEqualTheWhole) {
  const auto spec = Spec("detr_sine { num_position_features: 6 }");
  for (const char* layout : {"layout: LAYOUT_TABLE", "layout: LAYOUT_CHANNELS_FIRST"}) {
    ExpectPartsEqualWhole(spec, SelectMask(4, 5, kValid), Format(layout), 3);
    ExpectPartsEqualWhole(spec, SelectMask(4, 5, kValid),
                          Format(absl::StrCat(layout, " dtype: DTYPE_F16")), 1);
  }
  EXPECT_TRUE(Detr("", SelectMask(0, 5, {}), "").empty());
  EXPECT_TRUE(Detr("", SelectMask(5, 0, {}), "").empty());
}

TEST(DetrSineTest, BadInputIsRefusedByField) {
  const struct {
    const char* options;
    const char* refusal;
  } kSpecs[] = {
      {"", "detr_sine.num_position_features: is required"},
      {"num_position_features: 7", "detr_sine.num_position_features: must be even, got 7"},
      {"num_position_features: 0", "detr_sine.num_position_features: must be in [2, 32768], got 0"},
      {"num_position_features: 8 preset: 9", "detr_sine.preset: unknown value 9"},
      {"num_position_features: 8 temperature_width: 0",
       "detr_sine.temperature_width: must be in [1, 1e+30], got 0"},
      {"num_position_features: 8 temperature_height: nan",
       "detr_sine.temperature_height: must be in [1, 1e+30], got nan"},
      {"num_position_features: 8 eps: 0", "detr_sine.eps: must be in [1e-12, 1], got 0"},
      {"num_position_features: 8 scale: inf",
       "detr_sine.scale: must be in [-1.04858e+06, 1.04858e+06], got inf"},
      {"num_position_features: 8 offset: 1e9",
       "detr_sine.offset: must be in [-1.04858e+06, 1.04858e+06], got 1e+09"},
      {"num_position_features: 8 normalize: false scale: 1",
       "detr_sine.scale: has no effect without normalize"},
      {"num_position_features: 8 arithmetic: 8", "detr_sine.arithmetic: unknown value 8"},
  };
  for (const auto& c : kSpecs) {
    EXPECT_EQ(SpecRefusal(absl::StrCat("detr_sine { ", c.options, " }")), c.refusal);
  }
  const std::string spec = "detr_sine { num_position_features: 8 }";
  ExpectIdempotent(spec);
  ExpectIdempotent("detr_sine { num_position_features: 8 normalize: false }");
  EXPECT_EQ(TableRefusal(spec, SelectMask(2, 2, {1, 0, 1})),
            "selection.token_mask.valid: must have height * width (4) bytes, got 3");
  EXPECT_EQ(TableRefusal(spec, SelectMask(1, 2, {1, 7})),
            "selection.token_mask.valid[1]: must be 1 (valid) or 0 (padding), got 7");
  EXPECT_EQ(TableRefusal(spec, Select("token_mask { height: 2 }")),
            "selection.token_mask.width: is required");
  EXPECT_EQ(TableRefusal(spec, Select("patch_grid { height: 2000 width: 2000 }")),
            "selection.patch_grid: must have at most 1048576 patches here, got 4000000");
  EXPECT_EQ(TableRefusal(spec, SelectRange(0, 3)),
            "selection: needs a token_mask or a patch_grid for this encoding, got position_range");
}

// Learned -------------------------------------------------------------------------

TEST(DetrLearnedTest, ColumnsComeBeforeRows) {
  const std::string spec =
      "detr_learned { num_position_features: 2 row_embeddings: [1, 2, 3, 4] "
      "column_embeddings: [10, 20, 30, 40, 50, 60] }";
  const auto grid = Select("patch_grid { height: 2 width: 3 }");
  EXPECT_EQ(FillOne(spec, grid, "layout: LAYOUT_TABLE").As<float>(),
            (std::vector<float>{10, 20, 1, 2, 30, 40, 1, 2, 50, 60, 1, 2,  //
                                10, 20, 3, 4, 30, 40, 3, 4, 50, 60, 3, 4}));
  EXPECT_EQ(FillOne(spec, grid).As<float>(),
            (std::vector<float>{10, 30, 50, 10, 30, 50, 20, 40, 60, 20, 40, 60,  //
                                1,  1,  1,  3,  3,  3,  2,  2,  2,  4,  4,  4}));
  ExpectPartsEqualWhole(Spec(spec), grid, Format("dtype: DTYPE_BF16"), 1);
}

TEST(DetrLearnedTest, PastTheLastRowIsRefused) {
  const std::string spec =
      "detr_learned { num_position_features: 1 row_embeddings: [1, 2] column_embeddings: 1 }";
  EXPECT_EQ(TableRefusal(spec, Select("patch_grid { height: 3 width: 1 }")),
            "selection.patch_grid.height: must be at most the rows of row_embeddings (2), got 3");
  EXPECT_EQ(TableRefusal(spec, Select("patch_grid { height: 2 width: 2 }")),
            "selection.patch_grid.width: must be at most the rows of column_embeddings (1), got 2");
  EXPECT_EQ(SpecRefusal("detr_learned { row_embeddings: 1 }"),
            "detr_learned.num_position_features: is required");
  EXPECT_EQ(SpecRefusal("detr_learned { num_position_features: 2 row_embeddings: 1 }"),
            "detr_learned.row_embeddings: must be a multiple of num_position_features (2) in "
            "number, got 1");
  EXPECT_EQ(SpecRefusal("detr_learned { num_position_features: 1 row_embeddings: 1 }"),
            "detr_learned.column_embeddings: is required");
  EXPECT_EQ(SpecRefusal("detr_learned { num_position_features: 1 row_embeddings: nan }"),
            "detr_learned.row_embeddings[0]: must be finite, got nan");
}

// Anchors -------------------------------------------------------------------------

TEST(AnchorSineTest, DabDetrExchangesTheFirstTwoBlocksOfDeformable) {
  const auto boxes = SelectPoints(4, {0.5, 0.25, 0.1, 0.9, 0.0, 1.0, 0.33, 0.5});
  const auto dab = FillOne("anchor_sine { num_position_features: 8 }", boxes).As<float>();
  const auto deformable =
      FillOne("anchor_sine { num_position_features: 8 preset: ANCHOR_PRESET_DEFORMABLE }", boxes)
          .As<float>();
  for (size_t i = 0; i < dab.size(); ++i) {
    const size_t block = i / 8 % 4;
    EXPECT_EQ(dab[i], deformable[block == 0 ? i + 8 : block == 1 ? i - 8 : i]) << i;
  }
}

TEST(AnchorSineTest, ElementsEqualTheSlowTwin) {
  for (const bool exact : {false, true}) {
    const auto got = FillOne(absl::StrCat("anchor_sine { num_position_features: 6 temperature: 20 ",
                                          "arithmetic: ", exact ? 2 : 1, " }"),
                             SelectPoints(2, {0.3, 0.7}))
                         .As<float>();
    const double coordinates[] = {0.7, 0.3};  // y, then x
    for (int64_t c = 0; c < 12; ++c) {
      const double coordinate = coordinates[c / 6];
      const Real exponent = Real::FromInt(c % 6 / 2) / Real::FromInt(3);
      const float rounded = static_cast<float>(coordinate) * 0x1.921fb6p2f /
                            Pow(Real(20), Real(exponent.ToFloat())).ToFloat();
      const Real angle =
          exact ? Real(coordinate) * Real(0x1.921fb54442d18p2) / Pow(Real(20), exponent)
                : Real(rounded);
      EXPECT_EQ(got[static_cast<size_t>(c)], (c % 2 == 0 ? Sin(angle) : Cos(angle)).ToFloat()) << c;
    }
  }
}

TEST(AnchorSineTest, BadInputIsRefusedByField) {
  ExpectIdempotent("anchor_sine { }");
  EXPECT_EQ(SpecRefusal("anchor_sine { num_position_features: 3 }"),
            "anchor_sine.num_position_features: must be even, got 3");
  EXPECT_EQ(SpecRefusal("anchor_sine { preset: 3 }"), "anchor_sine.preset: unknown value 3");
  EXPECT_EQ(SpecRefusal("anchor_sine { temperature: 0 }"),
            "anchor_sine.temperature: must be in [1, 1e+30], got 0");
  EXPECT_EQ(SpecRefusal("anchor_sine { scale: nan }"),
            "anchor_sine.scale: must be in [-1.04858e+06, 1.04858e+06], got nan");
  EXPECT_EQ(SpecRefusal("anchor_sine { arithmetic: 3 }"),
            "anchor_sine.arithmetic: unknown value 3");
  EXPECT_EQ(TableRefusal("anchor_sine { }", Select("")), "selection: is required: points");
  EXPECT_EQ(TableRefusal("anchor_sine { }", SelectPoints(3, {})),
            "selection.points.dimensions: must be 2 (x, y) or 4 (x, y, w, h), got 3");
  EXPECT_EQ(TableRefusal("anchor_sine { }", SelectPoints(0, {})),
            "selection.points.dimensions: must be in [2, 4] for this encoding, got 0");
  EXPECT_EQ(TableRefusal("anchor_sine { }", SelectPoints(2, {1, 2, 3})),
            "selection.points.coordinates: must be a multiple of dimensions (2) in number, got 3");
  EXPECT_EQ(TableRefusal("anchor_sine { }", SelectPoints(2, {1, 1e300})),
            "selection.points.coordinates[1]: must be a number of at most 1.67772e+07 in "
            "magnitude, got 1e+300");
}

}  // namespace
}  // namespace posenc::testing
