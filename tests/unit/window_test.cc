// Swin, SwinV2 and BEiT windows, against their definitions written as loops.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<int32_t> Index(const std::string& fields) {
  return FillOne("window { " + fields + " }", {}).As<int32_t>();
}

std::vector<float> Coordinates(const std::string& fields) {
  return FillOne("window { " + fields + " }", {}, "layout: LAYOUT_RELATIVE_COORDINATES")
      .As<float>();
}

// The reference's way: both patches' coordinates, subtracted, shifted to 0, and the
// row scaled by the number of columns.
std::vector<int32_t> SlowSwinIndex(int height, int width) {
  std::vector<int32_t> index;
  for (int yq = 0; yq < height; ++yq) {
    for (int xq = 0; xq < width; ++xq) {
      for (int yk = 0; yk < height; ++yk) {
        for (int xk = 0; xk < width; ++xk) {
          index.push_back((yq - yk + height - 1) * (2 * width - 1) + (xq - xk + width - 1));
        }
      }
    }
  }
  return index;
}

TEST(WindowTest, SwinIndexOfTwoByTwo) {
  // reference/other-encodings.md, section 4.5.
  EXPECT_THAT(Index("window_height: 2"),
              ElementsAre(4, 3, 1, 0, 5, 4, 2, 1, 7, 6, 4, 3, 8, 7, 5, 4));
}

TEST(WindowTest, SwinIndexEqualsItsDefinition) {
  for (const auto& [height, width] : {std::pair(1, 1), {1, 5}, {5, 1}, {2, 3}, {7, 7}, {8, 12}}) {
    EXPECT_EQ(Index(absl::StrCat("window_height: ", height, " window_width: ", width)),
              SlowSwinIndex(height, width));
  }
}

TEST(WindowTest, BeitPutsTheClassTokenFirstAndItsRowsLast) {
  // The same section: 2 x 2.
  EXPECT_THAT(Index("window_height: 2 class_token: true"),
              ElementsAreArray({11, 9, 9,  9, 9, 10, 4, 3,  1, 0, 10, 5, 4,
                                2,  1, 10, 7, 6, 4,  3, 10, 8, 7, 5,  4}));
}

TEST(WindowTest, AnIndexAndItsMirrorAddUpToTheTablesEnd) {
  const std::vector<int32_t> index = Index("window_height: 3 window_width: 5");
  for (size_t q = 0; q < 15; ++q) {
    for (size_t k = 0; k < 15; ++k) ASSERT_EQ(index[q * 15 + k] + index[k * 15 + q], 5 * 9 - 1);
  }
}

TEST(WindowTest, BiasIsTheTableAtTheIndex) {
  // One head per column; row r of head h holds 100 h + r.
  v1::EncodingSpec spec = Spec("window { window_height: 2 window_width: 3 class_token: true }");
  v1::FloatTable* table = spec.mutable_window()->mutable_bias_table();
  table->add_shape(18);
  table->add_shape(2);
  for (int row = 0; row < 18; ++row) {
    for (int head = 0; head < 2; ++head) table->add_values(static_cast<float>(100 * head + row));
  }
  const auto filled = FillTable(spec, {}, Format("layout: LAYOUT_BIAS"));
  ASSERT_TRUE(filled.ok()) << filled.status();
  const std::vector<float> bias = filled->tensors.front().As<float>();
  const std::vector<int32_t> index = Index("window_height: 2 window_width: 3 class_token: true");
  ASSERT_EQ(bias.size(), 2 * index.size());
  for (size_t i = 0; i < index.size(); ++i) {
    ASSERT_EQ(bias[i], static_cast<float>(index[i]));
    ASSERT_EQ(bias[index.size() + i], static_cast<float>(100 + index[i]));
  }
}

TEST(WindowTest, SwinV2CoordinatesReachLog2Of9NotLog2Of8) {
  // Section 4.5 and Swin-Transformer#224: +-log2(9)/3 = 1.0566417 at the window's edge.
  EXPECT_THAT(Coordinates("window_height: 2 window_width: 1"),
              ElementsAre(-1.0566417f, 0, 0, 0, 1.0566417f, 0));
  const std::vector<float> wide = Coordinates("window_height: 1 window_width: 4");
  EXPECT_THAT(wide, ElementsAre(0, -1.0566417f, 0, -0.88765502f, 0, -0.624823034f, 0, 0, 0,
                                0.624823034f, 0, 0.88765502f, 0, 1.0566417f));
}

TEST(WindowTest, SwinV2CoordinatesOfAPretrainedWindowGoFarther) {
  // The same section: 16 from 8. 31 rows of (y, x); the last y.
  EXPECT_FLOAT_EQ(Coordinates("window_height: 16 window_width: 1 pretrained_window_height: 8")[60],
                  1.3937765f);
}

TEST(WindowTest, SwinV2CoordinatesEqualTheRoundedFormula) {
  const int window = 24, pretrained = 12;
  const std::vector<float> got = Coordinates(absl::StrCat(
      "window_height: ", window, " window_width: 1 pretrained_window_height: ", pretrained,
      " pretrained_window_width: 0"));
  for (int offset = 1; offset < window; ++offset) {
    const float scaled = static_cast<float>(offset) / static_cast<float>(pretrained - 1) * 8.0f;
    const float log2 = (Log(Real(static_cast<double>(scaled + 1.0f))) / Log(Real(2.0))).ToFloat();
    ASSERT_EQ(got[static_cast<size_t>(2 * (window - 1 + offset))], log2 / 3.0f);
    ASSERT_EQ(got[static_cast<size_t>(2 * (window - 1 - offset))], -log2 / 3.0f);
  }
}

TEST(WindowTest, SignedLogCoordinatesAreNotScaled) {
  EXPECT_THAT(Coordinates("window_height: 1 window_width: 3 "
                          "coordinates: WINDOW_COORDINATES_SIGNED_LOG"),
              ElementsAre(0, -1.0986123f, 0, -0.6931472f, 0, 0, 0, 0.6931472f, 0, 1.0986123f));
}

// timm and the original divide 0 by 0 here; Hugging Face does not divide.
TEST(WindowTest, AWindowOfOneHasCoordinateZero) {
  EXPECT_THAT(Coordinates("window_height: 1"), ElementsAre(0, 0));
}

TEST(WindowTest, AnySplitOfTheTableGivesTheSameBytes) {
  const v1::EncodingSpec spec = Spec("window { window_height: 3 window_width: 4 class_token: 1 }");
  for (const int64_t units : {1, 7, 13, 50}) {
    ExpectPartsEqualWhole(spec, {}, Format("layout: LAYOUT_RELATIVE_INDEX"), units);
    ExpectPartsEqualWhole(spec, {}, Format("layout: LAYOUT_RELATIVE_COORDINATES"), units);
  }
}

TEST(WindowTest, CanonicalizeIsIdempotent) {
  ExpectIdempotent("window { window_height: 3 }");
  ExpectIdempotent("window { window_height: 1 bias_table { shape: 1 shape: 2 values: [1, 2] } }");
}

TEST(WindowTest, BytesAndValuesAreTheSameTable) {
  const auto values =
      Canonicalize(Spec("window { window_height: 1 bias_table { shape: 1 shape: 1 values: 1 } }"));
  const auto bytes =
      Canonicalize(Spec("window { window_height: 1 bias_table { shape: 1 shape: 1 f32: "
                        "\"\\000\\000\\200\\077\" } }"));
  ASSERT_TRUE(values.ok() && bytes.ok());
  EXPECT_EQ(values->key(), bytes->key());
}

TEST(WindowTest, BadSpecsAreRefusedWithTheFieldTheRuleAndTheValue) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "window.window_height: is required"},
      {"window_height: 0", "window.window_height: must be in [1, 4096], got 0"},
      {"window_height: 1 window_width: 4097",
       "window.window_width: must be in [1, 4096], got 4097"},
      {"window_height: 2 coordinates: 5", "window.coordinates: unknown value 5"},
      {"window_height: 2 pretrained_window_height: -1",
       "window.pretrained_window_height: must be in [0, 4096], got -1"},
      {"window_height: 2 pretrained_window_height: 1",
       "window.pretrained_window_height: must be 0 (none) or at least 2, got 1"},
      {"window_height: 2 pretrained_window_height: 2 pretrained_window_width: 1",
       "window.pretrained_window_width: must be 0 (none) or at least 2, got 1"},
      {"window_height: 2 pretrained_window_height: 2 coordinates: WINDOW_COORDINATES_SIGNED_LOG",
       "window.pretrained_window_height: only SwinV2's coordinates have one"},
      {"window_height: 2 bias_table {}", "window.bias_table.shape: must be [9, any], got []"},
      {"window_height: 2 bias_table { shape: [8, 2] }",
       "window.bias_table.shape: must be [9, any], got [8, 2]"},
      {"window_height: 2 bias_table { shape: [9, 0] }",
       "window.bias_table.shape: must be [9, any], got [9, 0]"},
      {"window_height: 2 class_token: true bias_table { shape: [12, 1] f32: \"abc\" }",
       "window.bias_table: shape [12, 1] needs 48 bytes of f32, got 3"},
      {"window_height: 2 bias_table { shape: [9, 9223372036854775807] }",
       "window.bias_table.shape: is too large: [9, 9223372036854775807]"},
      {"window_height: 1 bias_table { shape: [1, 1] f32: \"abcd\" values: 1 }",
       "window.bias_table: takes f32 or values, not both"}};
  for (const auto& [spec, message] : cases) {
    EXPECT_EQ(SpecRefusal("window { " + spec + " }"), message);
  }
}

TEST(WindowTest, BadTablesAreRefused) {
  EXPECT_EQ(TableRefusal("window { window_height: 2 }", SelectGrid(2, 2)),
            "selection: must be unset: this encoding has no coordinates but its own");
  EXPECT_EQ(TableRefusal("window { window_height: 2 }", {}, "layout: LAYOUT_BIAS"),
            "window.bias_table: is required for a bias");
  EXPECT_EQ(TableRefusal("window { window_height: 2 }", {}, "dtype: DTYPE_F32"),
            "format.dtype: window as relative_index has i32, got f32");
  EXPECT_EQ(TableRefusal("window { window_height: 2 }", {}, "layout: LAYOUT_SLOPES"),
            "format.layout: window has relative_index, bias, relative_coordinates, got slopes");
}

}  // namespace
}  // namespace posenc::testing
