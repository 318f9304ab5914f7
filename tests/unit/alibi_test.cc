// ALiBi: the bias of each form, against its own words.
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/families/alibi_slopes.h"
#include "lib/numeric/dtype.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"
#include "tests/unit/alibi_testing.h"

namespace posenc::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// x-transformers#85: of 8 heads, 4 carry a bias; the last four have none at all,
// not even a negative zero.
TEST(AlibiTest, HeadsWithoutABiasAreZero) {
  const auto bias = FillOne("alibi { num_heads: 4 total_heads: 8 }", SelectGrid(3, 3));
  EXPECT_THAT(bias.tensor.shape, ElementsAre(8, 3, 3));
  const auto bits = bias.As<uint32_t>();
  EXPECT_THAT(std::vector<uint32_t>(bits.begin() + 4 * 9, bits.end()), Each(0u));
  EXPECT_EQ(bias.As<float>()[3], -Slopes(4)[0]);
}

TEST(AlibiTest, SlopesNeedNoGridAndComeInEveryDtype) {
  const std::string spec = "alibi { num_heads: 12 }";
  const auto slopes = FillOne(spec, {}, "layout: LAYOUT_SLOPES");
  EXPECT_EQ(slopes.tensor.name, "alibi_slopes");
  EXPECT_EQ(slopes.As<float>(), Slopes(12));
  EXPECT_EQ(FillOne(spec, {}, "layout: LAYOUT_SLOPES dtype: DTYPE_F64").As<double>()[8],
            static_cast<double>(0.707106769f));
  EXPECT_EQ(FillOne(spec, {}, "layout: LAYOUT_SLOPES dtype: DTYPE_BF16").As<uint16_t>()[8],
            RoundToBf16(0.707106769f));
  EXPECT_EQ(FillOne(spec, {}, "layout: LAYOUT_SLOPES dtype: DTYPE_F16").As<uint16_t>()[8],
            RoundToF16(0.707106769f));
}

TEST(AlibiTest, SlopesDoNotDependOnTheGrid) {
  const auto with =
      FillTable(Spec("alibi { num_heads: 3 }"), SelectGrid(4, 4), Format("layout: LAYOUT_SLOPES"));
  ASSERT_TRUE(with.ok());
  EXPECT_FALSE(with->shape.selection.has_attention_grid());
  EXPECT_EQ(with->shape.coordinates_key, "");
}

// attention-gym#86: the sign. Query 3 and key 1 are two apart, and far is less.
TEST(AlibiTest, KeysBeforeTheQueryAreBiasedDown) {
  const auto bias = FillOne("alibi { num_heads: 8 }", SelectGrid(4, 4)).As<float>();
  EXPECT_EQ(bias[3 * 4 + 1], -2 * 0.5f);
  EXPECT_THAT(std::vector<float>(bias.begin(), bias.begin() + 4), Each(0.0f));
}

// The slow twin: the distance of each form, in its own words.
float SlowDistance(const std::string& form, int64_t query, int64_t key, int64_t keys) {
  if (form == "SYMMETRIC") return static_cast<float>(-std::abs(key - query));
  if (form == "KEY_POSITION") return static_cast<float>(key);
  if (form == "LAST_ROW") return static_cast<float>(key - (keys - 1));
  if (form == "SQRT") return key < query ? -std::sqrt(static_cast<float>(query - key)) : 0.0f;
  return key < query ? static_cast<float>(key - query) : 0.0f;
}

TEST(AlibiTest, EveryBiasEqualsTheSlowTwin) {
  const std::vector<float> slopes = Slopes(5);
  for (const char* form : {"RELATIVE_CAUSAL", "SYMMETRIC", "KEY_POSITION", "LAST_ROW", "SQRT"}) {
    const std::string spec = absl::StrCat("alibi { num_heads: 5 form: ALIBI_FORM_", form, " }");
    for (const auto& [queries, keys, offset] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
             {1, 9, 8}, {5, 5, 0}, {4, 7, 3}, {7, 4, 0}, {1, 1, 100000}, {3, 1500, 700}}) {
      const auto bias = FillOne(spec, SelectGrid(queries, keys, offset)).As<float>();
      size_t index = 0;
      for (const float slope : slopes) {
        for (int64_t query = offset; query < offset + queries; ++query) {
          for (int64_t key = 0; key < keys; ++key) {
            ASSERT_EQ(bias[index++], slope * SlowDistance(form, query, key, keys))
                << spec << " query " << query << " key " << key;
          }
        }
      }
    }
  }
}

v1::Selection SelectMask(int64_t batch, int64_t keys, const std::string& attended) {
  v1::Selection selection;
  selection.mutable_token_mask()->set_height(batch);
  selection.mutable_token_mask()->set_width(keys);
  for (const char key : attended) {
    selection.mutable_token_mask()->mutable_valid()->push_back(key == '1' ? '\1' : '\0');
  }
  return selection;
}

// BLOOM: pads have 0 and do not count. Executed from transformers 5.16.0.dev0.
TEST(AlibiTest, AMasksKeysCountTheAttendedOnesBeforeThem) {
  const std::string spec = "alibi { num_heads: 2 form: ALIBI_FORM_KEY_MASK }";
  const auto bias = FillOne(spec, SelectMask(2, 5, "0011111100"));
  EXPECT_THAT(bias.tensor.shape, ElementsAre(4, 1, 5));
  const float s0 = 0.0625f;
  const float s1 = 0.00390625f;
  EXPECT_THAT(bias.As<float>(), ElementsAre(0.0f, 0.0f, 0.0f, s0, 2 * s0,  //
                                            0.0f, 0.0f, 0.0f, s1, 2 * s1,  //
                                            0.0f, s0, 2 * s0, 0.0f, 0.0f,  //
                                            0.0f, s1, 2 * s1, 0.0f, 0.0f));
}

// data2vec 2.0: patches of a 2 x 3 image, row by row.
TEST(AlibiTest, PatchesAreAsFarApartAsTheirRowsAndColumns) {
  v1::Selection grid;
  grid.mutable_patch_grid()->set_height(2);
  grid.mutable_patch_grid()->set_width(3);
  for (const char* form : {"MANHATTAN", "EUCLIDEAN"}) {
    const auto bias =
        FillOne(absl::StrCat("alibi { num_heads: 3 form: ALIBI_FORM_", form, " }"), grid);
    EXPECT_THAT(bias.tensor.shape, ElementsAre(3, 6, 6));
    size_t index = 0;
    for (const float slope : Slopes(3)) {
      for (int query = 0; query < 6; ++query) {
        for (int key = 0; key < 6; ++key) {
          const int y = query / 3 - key / 3;
          const int x = query % 3 - key % 3;
          const float distance = form[0] == 'M' ? static_cast<float>(std::abs(y) + std::abs(x))
                                                : static_cast<float>(std::hypot(y, x));
          EXPECT_EQ(bias.As<float>()[index++], -slope * distance) << form << query << key;
        }
      }
    }
  }
}

// Falcon in transformers: bf16(bf16(slope) * bf16(key)), so key 2049 is 2048; then
// divided by sqrt(head_dim), here 96, in float32 and rounded again.
TEST(AlibiTest, FalconRoundsEveryOperationToBfloat16) {
  const auto round = [](float value) { return Bf16ToFloat(RoundToBf16(value)); };
  const std::string fields =
      "num_heads: 12 slope_rounding: SLOPE_ROUNDING_FALCON_BF16 form: ALIBI_FORM_KEY_POSITION";
  const auto bias = FillOne(absl::StrCat("alibi { ", fields, " }"), SelectGrid(1, 3000));
  const auto scaled =
      FillOne(absl::StrCat("alibi { ", fields, " scale_head_dim: 96 }"), SelectGrid(1, 3000));
  const std::vector<float> slopes = Slopes(12, v1::SLOPE_ROUNDING_FALCON_BF16);
  for (size_t head = 0; head < 12; ++head) {
    for (size_t key = 0; key < 3000; ++key) {
      const float product = round(slopes[head] * round(static_cast<float>(key)));
      ASSERT_EQ(bias.As<float>()[head * 3000 + key], product);
      ASSERT_EQ(scaled.As<float>()[head * 3000 + key], round(product / std::sqrt(96.0f)));
    }
  }
}

TEST(AlibiTest, TheDiagonalIsPositiveZero) {
  for (const char* form :
       {"ALIBI_FORM_SYMMETRIC", "ALIBI_FORM_RELATIVE_CAUSAL", "ALIBI_FORM_SQRT"}) {
    const auto bias =
        FillOne(absl::StrCat("alibi { num_heads: 1 form: ", form, " }"), SelectGrid(3, 3));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(bias.As<float>()[4 * i]), 0u) << form;
    }
  }
}

TEST(AlibiTest, OtherDtypesRoundTheFloat32ProductOnce) {
  const std::string spec = "alibi { num_heads: 12 form: ALIBI_FORM_SYMMETRIC }";
  const v1::Selection grid = SelectGrid(2, 5000, 0);
  const auto f32 = FillOne(spec, grid).As<float>();
  const auto f64 = FillOne(spec, grid, "dtype: DTYPE_F64").As<double>();
  const auto f16 = FillOne(spec, grid, "dtype: DTYPE_F16").As<uint16_t>();
  const auto bf16 = FillOne(spec, grid, "dtype: DTYPE_BF16").As<uint16_t>();
  for (size_t i = 0; i < f32.size(); ++i) {
    ASSERT_EQ(f64[i], static_cast<double>(f32[i]));
    ASSERT_EQ(f16[i], RoundToF16(f32[i]));
    ASSERT_EQ(bf16[i], RoundToBf16(f32[i]));
  }
}

TEST(AlibiTest, MatrixIsTheExpandedVector) {
  const std::string spec = "alibi { num_heads: 3 form: ALIBI_FORM_SYMMETRIC }";
  const v1::Selection grid = SelectGrid(4, 6, 2);
  const auto matrix = FillOne(spec, grid).As<float>();
  const auto vectors = FillOne(spec, grid, "layout: LAYOUT_BIAS_VECTOR");
  EXPECT_THAT(vectors.tensor.shape, ElementsAre(3, 9));
  for (size_t head = 0; head < 3; ++head) {
    for (size_t i = 0; i < 4; ++i) {
      for (size_t j = 0; j < 6; ++j) {
        EXPECT_EQ(matrix[(head * 4 + i) * 6 + j], vectors.As<float>()[head * 9 + j + 3 - i]);
      }
    }
  }
}

// keras-hub#2861: a bias built over the query length is zero at every decode step.
TEST(AlibiTest, ADecodeStepIsTheLastRowOfTheWhole) {
  const auto whole = FillOne("alibi { num_heads: 2 }", SelectGrid(20, 20)).As<float>();
  const auto step = FillOne("alibi { num_heads: 2 }", SelectGrid(1, 20, 19)).As<float>();
  for (size_t head = 0; head < 2; ++head) {
    for (size_t j = 0; j < 20; ++j) {
      EXPECT_EQ(step[head * 20 + j], whole[(head * 20 + 19) * 20 + j]);
    }
  }
}

TEST(AlibiTest, AnyPartsEqualTheWhole) {
  for (const char* layout : {"layout: LAYOUT_BIAS", "layout: LAYOUT_BIAS_VECTOR",
                             "layout: LAYOUT_SLOPES", "layout: LAYOUT_BIAS dtype: DTYPE_BF16"}) {
    for (const int64_t units : {1, 2, 7, 23, 64, 1000}) {
      ExpectPartsEqualWhole(Spec("alibi { num_heads: 3 }"), SelectGrid(13, 23, 5), Format(layout),
                            units);
    }
  }
  for (const int64_t units : {1, 2, 5, 100}) {
    for (const char* form : {"KEY_POSITION", "LAST_ROW", "SQRT"}) {
      ExpectPartsEqualWhole(
          Spec(absl::StrCat("alibi { num_heads: 3 form: ALIBI_FORM_", form, " }")),
          SelectGrid(3, 7, 2), {}, units);
    }
    ExpectPartsEqualWhole(Spec("alibi { num_heads: 3 form: ALIBI_FORM_KEY_MASK }"),
                          SelectMask(2, 7, "01101110111010"), {}, units);
  }
}

TEST(AlibiTest, AGridWithAnEmptySideIsAnEmptyTable) {
  for (const auto& grid : {SelectGrid(0, 5), SelectGrid(5, 0), SelectGrid(0, 0, 9)}) {
    EXPECT_TRUE(FillOne("alibi { num_heads: 2 }", grid).bytes.empty());
    EXPECT_TRUE(
        FillOne("alibi { num_heads: 2 }", grid, "layout: LAYOUT_BIAS_VECTOR").bytes.empty());
  }
}

// Distances past 2^31 do not fit the fast path's 32-bit integers.
TEST(AlibiTest, TheFarthestDistancesAreRight) {
  const int64_t offset = (int64_t{1} << 31) - 1;
  const auto bias = FillOne("alibi { num_heads: 1 }", SelectGrid(4, 3, offset)).As<float>();
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      EXPECT_EQ(bias[static_cast<size_t>(i * 3 + j)],
                0.00390625f * static_cast<float>(j - offset - i));
    }
  }
}

}  // namespace
}  // namespace posenc::testing
