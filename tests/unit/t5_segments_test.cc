// T5 buckets as CPM-Ant has them: tokens of other segments have buckets of their own.
// And the factor of x-transformers, and UDOP's real coordinates.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

v1::Selection SelectSegments(int64_t queries, int64_t offset, const std::vector<int64_t>& ids) {
  v1::Selection selection;
  v1::TokenGrid* tokens = selection.mutable_token_grid();
  *tokens->mutable_attention_grid() =
      SelectGrid(queries, static_cast<int64_t>(ids.size()), offset).attention_grid();
  tokens->mutable_sequence_ids()->Add(ids.begin(), ids.end());
  return selection;
}

const std::vector<int64_t> kSegments = {0, 0, 2, 2, 2, 1, 0};

// CpmAntSegmentPositionEmbedding: num_buckets + query_segment * num_segments + key_segment
// where the segments differ, T5's bucket of key - query where they do not.
TEST(T5SegmentsTest, OtherSegmentsHaveBucketsOfTheirOwn) {
  const auto plain = FillOne("t5 {}", SelectGrid(4, 7, 3)).As<int32_t>();
  const auto buckets =
      FillOne("t5 { num_segments: 3 }", SelectSegments(4, 3, kSegments)).As<int32_t>();
  ASSERT_EQ(buckets.size(), 28u);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 7; ++j) {
      const int64_t query = kSegments[3 + i];
      const int64_t expected =
          query == kSegments[j] ? plain[i * 7 + j] : 32 + query * 3 + kSegments[j];
      EXPECT_EQ(buckets[i * 7 + j], expected) << i << " " << j;
    }
  }
  // Relative positions do not know of segments.
  EXPECT_EQ(
      FillOne("t5 { num_segments: 3 }", SelectSegments(4, 3, kSegments),
              "layout: LAYOUT_RELATIVE_POSITION")
          .As<int32_t>(),
      FillOne("t5 {}", SelectGrid(4, 7, 3), "layout: LAYOUT_RELATIVE_POSITION").As<int32_t>());
}

// A table whose entry is 100 * bucket + head, in every float dtype that holds it.
TEST(T5SegmentsTest, TheBiasIsLookedUpThere) {
  std::string values;
  for (int bucket = 0; bucket < 32 + 9; ++bucket) {
    absl::StrAppend(&values, " values: ", 100 * bucket, " values: ", 100 * bucket + 1);
  }
  const std::string spec =
      absl::StrCat("t5 { num_segments: 3 bias_table { shape: 41 shape: 2", values, " } }");
  const v1::Selection selection = SelectSegments(4, 3, kSegments);
  const auto buckets = FillOne(spec, selection).As<int32_t>();
  const auto bias = FillOne(spec, selection, "layout: LAYOUT_BIAS");
  EXPECT_THAT(bias.tensor.shape, ElementsAre(2, 4, 7));
  std::vector<float> expected;
  for (int head = 0; head < 2; ++head) {
    for (const int32_t bucket : buckets)
      expected.push_back(static_cast<float>(100 * bucket + head));
  }
  EXPECT_EQ(bias.As<float>(), expected);
  ExpectPartsEqualWhole(Spec(spec), selection, Format("layout: LAYOUT_BIAS"), 3);
  ExpectPartsEqualWhole(Spec(spec), selection, {}, 5);
}

// x-transformers: bias * scale, scale = dim_head ** 0.5 as a Python double.
TEST(T5ScaleTest, TheBiasIsMultipliedInFloat32) {
  const std::string table =
      "num_buckets: 4 max_distance: 8 bias_table { shape: 4 shape: 1 values: 0.1 values: 1 "
      "values: 2 values: 3 }";
  const auto bias = [&](const std::string& scale) {
    return FillOne(absl::StrCat("t5 { ", table, scale, " }"), SelectGrid(1, 1),
                   "layout: LAYOUT_BIAS")
        .As<float>()
        .front();
  };
  EXPECT_EQ(bias(" bias_scale: 5.656854249492381"), 0.1f * 5.656854249492381f);
  EXPECT_EQ(Canonicalize(Spec(absl::StrCat("t5 { ", table, " bias_scale: 1 }")))->key(),
            Canonicalize(Spec(absl::StrCat("t5 { ", table, " }")))->key());
}

TEST(T5SegmentsTest, Refusals) {
  const std::string spec = "t5 { num_segments: 3 }";
  EXPECT_EQ(TableRefusal(spec, SelectGrid(2, 2)),
            "selection: needs a token_grid for this encoding, got attention_grid");
  EXPECT_EQ(TableRefusal(spec, SelectSegments(1, 0, {0, 3})),
            "selection.token_grid.sequence_ids[1]: must be in [0, 2], got 3");
  EXPECT_EQ(TableRefusal(spec, SelectSegments(3, 0, {0, 1})),
            "selection.token_grid.attention_grid: the last query must be one of the key_length "
            "(2) tokens, got position 2");
  v1::Selection padded = SelectSegments(1, 0, {0});
  padded.mutable_token_grid()->add_padding_mask(1);
  EXPECT_EQ(TableRefusal(spec, padded), "selection.token_grid.padding_mask: nothing here reads it");
  EXPECT_EQ(TableRefusal(spec, SelectSegments(1, 0, {0}), "layout: LAYOUT_BUCKET_VECTOR"),
            "format.layout: a vector is of the relative positions of an attention_grid");
  EXPECT_EQ(SpecRefusal("t5 { num_segments: 0 }"), "t5.num_segments: must be in [1, 1024], got 0");
  EXPECT_EQ(SpecRefusal("t5 { num_segments: 2 global_block_size: 4 }"),
            "t5.num_segments: has no meaning with global_block_size");
  EXPECT_EQ(SpecRefusal("t5 { num_segments: 2 bias_table { shape: 32 shape: 1 } }"),
            "t5.bias_table.shape: must be [36, any], got [32, 1]");
  EXPECT_EQ(SpecRefusal("t5 { bias_scale: 2 }"), "t5.bias_scale: needs a bias_table");
  EXPECT_EQ(SpecRefusal("t5 { bias_scale: 0 bias_table { shape: 32 shape: 1 } }"),
            "t5.bias_scale: must be above 0 and at most 1.04858e+06, got 0");
}

// UDOP: the difference of two box centres times 100, each step rounded to a float32, then cut
// towards zero (RelativePositionBiasBase.get_relative_position). 0.7 - 0.4 is a little less than
// 0.3 there, and so 29; in real numbers it would be 30.
TEST(T5PointsTest, PointsAreCoordinatesThatAreScaledAndCut) {
  const v1::Selection points =
      Select("points { dimensions: 1 coordinates: [0.4, 0.7, 0.005, 1.0, 0.7] }");
  const std::string spec = "t5 { num_buckets: 32 max_distance: 100 coordinate_scale: 100 }";
  const auto positions = FillOne(spec, points, "layout: LAYOUT_RELATIVE_POSITION").As<int32_t>();
  EXPECT_THAT(std::vector<int32_t>(positions.begin(), positions.begin() + 5),
              ElementsAre(0, 29, -39, 60, 29));
  EXPECT_EQ(positions[5], -29) << "cut towards zero on either side";
  const auto buckets = FillOne(spec, points).As<int32_t>();
  for (size_t i = 0; i < 25; ++i) {
    const auto of_ids =
        FillOne("t5 { num_buckets: 32 max_distance: 100 }", SelectIds({0, positions[i]}));
    EXPECT_EQ(buckets[i], of_ids.As<int32_t>()[1]) << i;
  }
  const auto bias = FillOne(
      "t5 { num_buckets: 4 max_distance: 8 coordinate_scale: 10 bias_table { shape: 4 "
      "shape: 2 values: [0, 1, 2, 3, 4, 5, 6, 7] } }",
      points, "layout: LAYOUT_BIAS");
  EXPECT_THAT(bias.tensor.shape, ElementsAre(2, 5, 5));
  EXPECT_EQ(SpecRefusal("t5 { coordinate_scale: 0 }").substr(0, 20), "t5.coordinate_scale:");
  EXPECT_EQ(SpecRefusal("t5 { coordinate_scale: 2 global_block_size: 4 }"),
            "t5.coordinate_scale: has no meaning with global_block_size");
  EXPECT_EQ(TableRefusal("t5 {}", points), "t5.coordinate_scale: is required for points");
  EXPECT_EQ(TableRefusal(spec, SelectGrid(2, 2)).substr(0, 10), "selection:");
}

// Far coordinates share the last bucket, however large the scale makes their distance.
TEST(T5PointsTest, FarPointsStayInTheTable) {
  const v1::Selection points =
      Select("points { dimensions: 1 coordinates: [-16777216, 16777216] }");
  const std::string spec = "t5 { coordinate_scale: 1048576 }";
  EXPECT_THAT(FillOne(spec, points).As<int32_t>(), ElementsAre(0, 31, 15, 0));
  EXPECT_EQ(TableRefusal(spec, points, "layout: LAYOUT_RELATIVE_POSITION"),
            "selection.points.coordinates: relative positions must fit an i32, got 4294967296");
}

}  // namespace
}  // namespace posenc::testing
