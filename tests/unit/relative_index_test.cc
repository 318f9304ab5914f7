// Row indexes of relative tables: each scheme against a slow twin of its own code,
// its laws, and what it refuses.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/families/deberta_buckets.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> Index(const std::string& scheme, const v1::Selection& selection,
                           const std::string& layout = "LAYOUT_RELATIVE_INDEX") {
  return FillOne("relative_index { " + scheme + " }", selection, "layout: " + layout).As<int32_t>();
}

// The reference's Python, line by line. libm serves here: a double logarithm rounded
// to float32 is the correctly rounded one but in one case of 2^29.
int64_t SlowDebertaBucket(int64_t distance, int64_t buckets, int64_t max, bool original) {
  if (original) distance = std::clamp(distance, -(max - 1), max - 1);
  const int64_t mid = buckets / 2;
  const int64_t n = std::abs(distance);
  if (n <= mid) return distance;
  const float numerator = static_cast<float>(
      std::log(static_cast<double>(static_cast<float>(n) / static_cast<float>(mid))));
  const double ratio = static_cast<double>(max - 1) / static_cast<double>(mid);
  const float denominator =
      original ? static_cast<float>(std::log(ratio))
               : static_cast<float>(std::log(static_cast<double>(static_cast<float>(ratio))));
  const int64_t bucket =
      mid + static_cast<int64_t>(std::ceil(numerator / denominator * static_cast<float>(mid - 1)));
  return distance < 0 ? -bucket : bucket;
}

TEST(RelativeIndexTest, ShawClipsKeyMinusQuery) {
  // reference/other-encodings.md, section 4.1: L = 4, k = 2.
  EXPECT_THAT(Index("clipped { left: 2 }", SelectGrid(4, 4)),
              ElementsAre(2, 3, 4, 4, 1, 2, 3, 4, 0, 1, 2, 3, 0, 0, 1, 2));
}

TEST(RelativeIndexTest, ShawWithOneCachedQueryEndsAtTheDiagonal) {
  // The same section: tensor2tensor's cache mode, K = 5, k = 2.
  EXPECT_THAT(Index("clipped { left: 2 }", SelectGrid(1, 5, 4)), ElementsAre(0, 0, 0, 1, 2));
}

// SpeechT5RelativePositionalEncoding of L = 2: query - key from -2 to 1, plus 2.
TEST(RelativeIndexTest, SpeechT5ClipsQueryMinusKey) {
  EXPECT_THAT(Index("clipped { left: 2 right: 1 direction: DISTANCE_DIRECTION_QUERY_MINUS_KEY }",
                    SelectGrid(4, 4)),
              ElementsAre(2, 1, 0, 0, 3, 2, 1, 0, 3, 3, 2, 1, 3, 3, 3, 2));
}

TEST(RelativeIndexTest, BertIsTheOtherWayRoundAndNotClipped) {
  // Section 4.2: query - key + max_position_embeddings - 1.
  EXPECT_THAT(Index("unclipped { max_position_embeddings: 3 }", SelectGrid(2, 3)),
              ElementsAre(2, 1, 0, 3, 2, 1));
}

TEST(RelativeIndexTest, HstuCountsKeyMinusQuery) {
  // Section 7: N = 4, w[N - 1 + j - i].
  EXPECT_THAT(Index("unclipped { max_position_embeddings: 4 "
                    "direction: DISTANCE_DIRECTION_KEY_MINUS_QUERY }",
                    SelectGrid(4, 4)),
              ElementsAre(3, 4, 5, 6, 2, 3, 4, 5, 1, 2, 3, 4, 0, 1, 2, 3));
}

TEST(RelativeIndexTest, DebertaBucketsOfThePaperSize) {
  // Section 4.4: (256, 512).
  const std::vector<std::pair<int64_t, int32_t>> expected = {
      {0, 0},     {127, 127}, {128, 128}, {129, 129}, {130, 130}, {131, 131}, {132, 131},
      {200, 169}, {256, 192}, {300, 207}, {400, 233}, {500, 254}, {509, 255}, {511, 255}};
  for (const auto& [distance, bucket] : expected) {
    EXPECT_THAT(Index("deberta {}", SelectGrid(1, 1, distance), "LAYOUT_BUCKETS"),
                ElementsAre(bucket));
  }
}

TEST(RelativeIndexTest, DebertaBeyondTheLastDistanceDependsOnWhoseCode) {
  // Section 4.4: Hugging Face goes on (512 -> 256, 1000 -> 317), the original stops.
  const std::string original = "deberta { clamp: DEBERTA_CLAMP_ORIGINAL }";
  EXPECT_THAT(Index("deberta {}", SelectGrid(1, 1, 512), "LAYOUT_BUCKETS"), ElementsAre(256));
  EXPECT_THAT(Index("deberta {}", SelectGrid(1, 1, 1000), "LAYOUT_BUCKETS"), ElementsAre(317));
  EXPECT_THAT(Index(original, SelectGrid(1, 1, 1000), "LAYOUT_BUCKETS"), ElementsAre(255));
  // On the left the index differs too: 0 against 1.
  EXPECT_EQ(Index("deberta {}", SelectGrid(1, 600)).back(), 0);
  EXPECT_EQ(Index(original, SelectGrid(1, 600)).back(), 1);
}

TEST(RelativeIndexTest, DebertaThresholdsEqualTheFormula) {
  struct Case {
    int64_t buckets, max;
  };
  for (const Case c : {Case{2, 3},
                       {3, 3},
                       {4, 4},
                       {5, 300},
                       {8, 16},
                       {32, 128},
                       {100, 100},
                       {256, 512},
                       {512, 4096},
                       {1024, 1024}}) {
    for (const auto clamp : {v1::DEBERTA_CLAMP_HUGGING_FACE, v1::DEBERTA_CLAMP_ORIGINAL}) {
      v1::DebertaScheme scheme;
      scheme.set_position_buckets(c.buckets);
      scheme.set_max_relative_positions(c.max);
      scheme.set_clamp(clamp);
      const DebertaBuckets buckets(scheme);
      const bool original = clamp == v1::DEBERTA_CLAMP_ORIGINAL;
      for (int64_t n = 0; n < DebertaBuckets::kMaxDistance; n += 1 + n / 300) {
        ASSERT_EQ(buckets.BucketOf(n), SlowDebertaBucket(n, c.buckets, c.max, original))
            << n << " of " << c.buckets << ", " << c.max;
        ASSERT_EQ(buckets.BucketOf(-n), -buckets.BucketOf(n));
      }
    }
  }
}

TEST(RelativeIndexTest, DebertaBucketsAreMonotone) {
  v1::DebertaScheme scheme;
  scheme.set_position_buckets(512);
  scheme.set_max_relative_positions(4096);
  const DebertaBuckets buckets(scheme);
  for (int64_t n = 1; n < 20000; ++n) {
    ASSERT_GE(buckets.BucketOf(n), buckets.BucketOf(n - 1));
    ASSERT_LE(buckets.BucketOf(n), buckets.BucketOf(n - 1) + 1);
  }
}

TEST(RelativeIndexTest, DebertaV1TakesItsSpanFromTheGrid) {
  // goldens: rel.deberta_v1.index.L5.max512; rows [507, 517) of the table.
  const std::vector<int32_t> index = Index("deberta_v1 {}", SelectGrid(5, 5));
  EXPECT_EQ(std::vector<int32_t>(index.begin(), index.begin() + 5),
            (std::vector<int32_t>{5, 4, 3, 2, 1}));
  EXPECT_THAT(Index("deberta_v1 { max_relative_positions: 2 }", SelectGrid(1, 5)),
              ElementsAre(2, 1, 0, 0, 0));
}

const char* const kSchemes[] = {
    "clipped { left: 2 }",
    "clipped { left: 5 right: 1 }",
    "clipped { left: 5 right: 4 direction: DISTANCE_DIRECTION_QUERY_MINUS_KEY }",
    "unclipped { max_position_embeddings: 64 }",
    "unclipped { max_position_embeddings: 64 direction: DISTANCE_DIRECTION_KEY_MINUS_QUERY }",
    "deberta { position_buckets: 8 max_relative_positions: 16 }",
    "deberta { position_buckets: 0 max_relative_positions: 7 }",
    "deberta_v1 { max_relative_positions: 6 }"};

TEST(RelativeIndexTest, IsToeplitz) {
  for (const char* scheme : kSchemes) {
    const std::vector<int32_t> index = Index(scheme, SelectGrid(9, 13, 3));
    for (size_t i = 0; i + 1 < 9; ++i) {
      for (size_t j = 0; j + 1 < 13; ++j) {
        ASSERT_EQ(index[i * 13 + j], index[(i + 1) * 13 + j + 1]) << scheme;
      }
    }
  }
}

TEST(RelativeIndexTest, TheVectorHoldsEveryDiagonal) {
  for (const char* scheme : kSchemes) {
    const auto matrix = Index(scheme, SelectGrid(9, 13, 3));
    const auto vector = Index(scheme, SelectGrid(9, 13, 3), "LAYOUT_RELATIVE_INDEX_VECTOR");
    ASSERT_EQ(vector.size(), 21u);
    for (size_t i = 0; i < 9; ++i) {
      for (size_t j = 0; j < 13; ++j) ASSERT_EQ(matrix[i * 13 + j], vector[8 - i + j]) << scheme;
    }
  }
}

TEST(RelativeIndexTest, AnySplitOfTheTableGivesTheSameBytes) {
  for (const char* scheme : kSchemes) {
    for (const char* layout : {"LAYOUT_RELATIVE_INDEX", "LAYOUT_RELATIVE_INDEX_VECTOR"}) {
      for (const int64_t units : {1, 5, 13, 40}) {
        ExpectPartsEqualWhole(Spec(std::string("relative_index { ") + scheme + " }"),
                              SelectGrid(9, 13, 3), Format(std::string("layout: ") + layout),
                              units);
      }
    }
  }
}

TEST(RelativeIndexTest, CanonicalizeIsIdempotent) {
  for (const char* scheme : kSchemes) {
    ExpectIdempotent(std::string("relative_index { ") + scheme + " }");
  }
  ExpectIdempotent("relative_index { deberta {} }");
}

TEST(RelativeIndexTest, AnEmptyGridIsAnEmptyTable) {
  EXPECT_TRUE(Index("clipped { left: 2 }", SelectGrid(0, 5)).empty());
  EXPECT_TRUE(Index("deberta_v1 {}", SelectGrid(5, 0), "LAYOUT_RELATIVE_INDEX_VECTOR").empty());
}

TEST(RelativeIndexTest, BadSpecsAreRefusedWithTheFieldTheRuleAndTheValue) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "relative_index: a scheme is required: clipped, unclipped, deberta or deberta_v1"},
      {"clipped {}", "relative_index.clipped.left: is required"},
      {"clipped { left: -1 }", "relative_index.clipped.left: must be in [0, 1073741824], got -1"},
      {"clipped { left: 1 right: 1073741825 }",
       "relative_index.clipped.right: must be in [0, 1073741824], got 1073741825"},
      {"unclipped {}", "relative_index.unclipped.max_position_embeddings: is required"},
      {"unclipped { max_position_embeddings: 0 }",
       "relative_index.unclipped.max_position_embeddings: must be in [1, 1073741824], got 0"},
      {"unclipped { max_position_embeddings: 1 direction: 7 }",
       "relative_index.unclipped.direction: unknown value 7"},
      {"deberta { position_buckets: 1 }",
       "relative_index.deberta.position_buckets: must be 0 (none) or at least 2, got 1"},
      {"deberta { position_buckets: -1 }",
       "relative_index.deberta.position_buckets: must be in [0, 1024], got -1"},
      {"deberta { position_buckets: 9223372036854775807 }",
       "relative_index.deberta.position_buckets: must be in [0, 1024], got 9223372036854775807"},
      {"deberta { position_buckets: 64 max_relative_positions: 63 }",
       "relative_index.deberta.max_relative_positions: must be in [64, 1073741824], got 63"},
      {"deberta { position_buckets: 2 max_relative_positions: 2 }",
       "relative_index.deberta.max_relative_positions: must be in [3, 1073741824], got 2"},
      {"deberta { clamp: 9 }", "relative_index.deberta.clamp: unknown value 9"},
      {"deberta_v1 { max_relative_positions: 0 }",
       "relative_index.deberta_v1.max_relative_positions: must be in [1, 1073741824], got 0"}};
  for (const auto& [spec, message] : cases) {
    EXPECT_EQ(SpecRefusal("relative_index { " + spec + " }"), message);
  }
}

TEST(RelativeIndexTest, BadTablesAreRefused) {
  EXPECT_EQ(TableRefusal("relative_index { clipped { left: 2 } }", SelectRange(0, 4)),
            "selection: needs an attention_grid for this encoding, got position_range");
  EXPECT_EQ(TableRefusal("relative_index { clipped { left: 2 } }", SelectGrid(2, 2),
                         "layout: LAYOUT_BUCKETS"),
            "format.layout: only the deberta scheme has buckets");
  EXPECT_EQ(
      TableRefusal("relative_index { clipped { left: 2 } }", SelectGrid(2, 2), "dtype: DTYPE_F32"),
      "format.dtype: relative_index has i32, got f32");
}

// transformers#17026, #9164: the model would read past its table.
TEST(RelativeIndexTest, AnUnclippedDistanceBeyondTheTableIsRefused) {
  const std::string spec = "relative_index { unclipped { max_position_embeddings: 8 } }";
  EXPECT_EQ(TableRefusal(spec, SelectGrid(8, 8)), "");
  EXPECT_EQ(TableRefusal(spec, SelectGrid(8, 9)),
            "selection.attention_grid: distances must be below "
            "unclipped.max_position_embeddings (8), got 8");
  EXPECT_EQ(TableRefusal(spec, SelectGrid(1, 4, 8)),
            "selection.attention_grid: distances must be below "
            "unclipped.max_position_embeddings (8), got 8");
}

}  // namespace
}  // namespace posenc::testing
