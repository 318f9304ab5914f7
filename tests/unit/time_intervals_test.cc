// Time between interactions: TiSASRec's matrices, HSTU's buckets and positions.
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<int32_t> Fill(const std::string& spec, const std::string& sequences,
                          const std::string& layout) {
  return FillOne(spec, Select("sequences { " + sequences + " }"), "layout: LAYOUT_" + layout)
      .As<int32_t>();
}

// reference/other-encodings.md, section 7 ---------------------------------------------

TEST(TimeIntervalsTest, PublishedMatrix) {
  EXPECT_THAT(Fill("time_intervals {}", "values: [0, 0, 1, 4, 300]", "TIME_INTERVALS"),
              ElementsAreArray({0, 0,   1, 4, 256, 0, 0,   1,   4,   256, 1,   1, 0,
                                3, 256, 4, 4, 3,   0, 256, 256, 256, 256, 256, 0}));
}

TEST(TimeIntervalsTest, PublishedTimesOfAUser) {
  EXPECT_THAT(Fill("time_intervals {}", "values: [1000, 1060, 1300, 1300]", "RELATIVE_TIMES"),
              ElementsAre(1, 2, 6, 6));
}

TEST(TimeIntervalsTest, HalvesRoundToEven) {
  // The gap is 2: 0, 1 (0.5), 2, 3 (1.5), 5 (2.5) units of it.
  EXPECT_THAT(Fill("time_intervals {}", "values: [10, 12, 15, 17]", "RELATIVE_TIMES"),
              ElementsAre(1, 2, 3, 5));
}

TEST(TimeIntervalsTest, IsSymmetricWithAZeroDiagonal) {
  const std::vector<int32_t> m =
      Fill("time_intervals { time_span: 50 }", "values: [3, 9, 9, 40, 100, 7]", "TIME_INTERVALS");
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(m[i * 7], 0);
    for (size_t j = 0; j < 6; ++j) EXPECT_EQ(m[i * 6 + j], m[j * 6 + i]);
  }
}

TEST(TimeIntervalsTest, ABatchIsItsUsersOneByOne) {
  const std::vector<int32_t> both =
      Fill("time_intervals {}", "batch_size: 2 values: [1, 5, 6, 100, 200, 450]", "TIME_INTERVALS");
  std::vector<int32_t> one_by_one =
      Fill("time_intervals {}", "values: [1, 5, 6]", "TIME_INTERVALS");
  for (const int32_t v : Fill("time_intervals {}", "values: [100, 200, 450]", "TIME_INTERVALS")) {
    one_by_one.push_back(v);
  }
  EXPECT_EQ(both, one_by_one);
}

TEST(HstuTimeBiasTest, PublishedBuckets) {
  // A query of the first row looks at the next time: the bucket of the difference itself.
  const std::vector<std::pair<int64_t, int32_t>> buckets = {
      {0, 0},    {1, 0},     {2, 2},      {3, 3},       {10, 7},       {60, 13},
      {100, 15}, {3600, 27}, {86400, 37}, {604800, 44}, {31536000, 57}};
  for (const auto& [difference, bucket] : buckets) {
    EXPECT_EQ(
        Fill("hstu_time_bias {}", absl::StrCat("values: [0, ", difference, "]"), "TIME_BUCKETS")[0],
        bucket);
  }
}

TEST(HstuTimeBiasTest, AQueryTakesTheNextTimestampAndTheLastItsOwn) {
  EXPECT_THAT(Fill("hstu_time_bias {}", "values: [0, 1, 60, 86400]", "TIME_BUCKETS"),
              ElementsAre(0, 0, 13, 37, 13, 13, 0, 37, 37, 37, 37, 0, 37, 37, 37, 0));
}

TEST(HstuTimeBiasTest, BucketsAreMonotoneAndBounded) {
  int32_t previous = 0;
  for (int64_t difference = 1; difference < (int64_t{1} << 61); difference += 1 + difference / 7) {
    const int32_t bucket = Fill("hstu_time_bias { num_buckets: 90 }",
                                absl::StrCat("values: [0, ", difference, "]"), "TIME_BUCKETS")[0];
    ASSERT_GE(bucket, previous);
    ASSERT_LE(bucket, 90);
    previous = bucket;
  }
  EXPECT_EQ(previous, 90);
}

TEST(HstuTimeBiasTest, BiasIsTheSumOfTwoRows) {
  v1::EncodingSpec spec = Spec(
      "hstu_time_bias { num_buckets: 2 position_table { shape: 5 values: [1, 2, 3, 4, 5] } "
      "time_table { shape: 3 values: [10, 20, 30] } }");
  const auto table =
      FillTable(spec, Select("sequences { values: [0, 100] }"), Format("layout: LAYOUT_BIAS"));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->tensors.front().As<float>(), ElementsAre(33, 14, 32, 13));
}

TEST(HstuPositionsTest, CountFromTheEndWithTargetsSharingIt) {
  // goldens: rel.hstu_production.position.ctx.
  EXPECT_THAT(Fill("hstu_positions { contextual_length: 2 max_positions: 20 }",
                   "batch_size: 2 length: 8 lengths: [8, 6] num_targets: [2, 2]", "POSITION_IDS"),
              ElementsAre(0, 1, 6, 5, 4, 3, 2, 2, 0, 1, 4, 3, 2, 2, 2, 2));
}

TEST(HstuPositionsTest, TimeBucketsOfSquareRoots) {
  EXPECT_THAT(
      Fill("hstu_positions {}", "values: [0, 60, 3600, 7200, 86400] lengths: 5", "TIME_BUCKETS"),
      ElementsAre(37, 37, 37, 36, 0));
}

TEST(HstuPositionsTest, ATimeAfterTheLastIsInBucketZero) {
  for (const char* function : {"SQRT", "LOG"}) {
    EXPECT_THAT(Fill(absl::StrCat("hstu_positions { time_bucket_function: TIME_BUCKET_FUNCTION_",
                                  function, " }"),
                     "values: [50, 99] lengths: 1", "TIME_BUCKETS"),
                ElementsAre(0, 0));
  }
}

TEST(TimeIntervalsTest, AnySplitOfTheTableGivesTheSameBytes) {
  const v1::Selection times =
      Select("sequences { batch_size: 2 values: [1, 5, 6, 8, 100, 200, 450, 451] }");
  const v1::Selection lengths = Select(
      "sequences { batch_size: 2 values: [1, 5, 6, 8, 100, 200, 450, 451] lengths: [4, 3] }");
  for (const int64_t units : {1, 3, 7}) {
    for (const char* layout : {"TIME_INTERVALS", "RELATIVE_TIMES"}) {
      ExpectPartsEqualWhole(Spec("time_intervals {}"), times,
                            Format(absl::StrCat("layout: LAYOUT_", layout)), units);
    }
    ExpectPartsEqualWhole(Spec("hstu_time_bias {}"), times, {}, units);
    ExpectPartsEqualWhole(Spec("hstu_positions {}"), lengths, Format("layout: LAYOUT_TIME_BUCKETS"),
                          units);
  }
}

TEST(TimeIntervalsTest, CanonicalizeIsIdempotent) {
  ExpectIdempotent("time_intervals {}");
  ExpectIdempotent("hstu_time_bias {}");
  ExpectIdempotent("hstu_positions {}");
}

TEST(TimeIntervalsTest, BadSpecsAreRefusedWithTheFieldTheRuleAndTheValue) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"time_intervals { time_span: 0 }",
       "time_intervals.time_span: must be in [1, 1073741824], got 0"},
      {"hstu_time_bias { num_buckets: 0 }",
       "hstu_time_bias.num_buckets: must be in [1, 1048576], got 0"},
      {"hstu_time_bias { divisor: 0 }", "hstu_time_bias.divisor: must be in [0.001, 1000], got 0"},
      {"hstu_time_bias { time_table { shape: 1 values: 1 } }",
       "hstu_time_bias.position_table: is required with the other table"},
      {"hstu_time_bias { position_table { shape: 1 values: 1 } }",
       "hstu_time_bias.time_table: is required with the other table"},
      {"hstu_time_bias { position_table { shape: 2 values: [1, 2] } time_table { shape: 129 } }",
       "hstu_time_bias.position_table.shape: must be odd (2 length - 1), got 2"},
      {"hstu_time_bias { position_table { shape: 1 values: 1 } time_table { shape: 128 } }",
       "hstu_time_bias.time_table.shape: must be [129], got [128]"},
      {"hstu_positions { max_positions: 0 }",
       "hstu_positions.max_positions: must be in [1, 1073741824], got 0"},
      {"hstu_positions { contextual_length: -1 }",
       "hstu_positions.contextual_length: must be in [0, 1073741824], got -1"},
      {"hstu_positions { num_time_buckets: 0 }",
       "hstu_positions.num_time_buckets: must be in [1, 1073741824], got 0"},
      {"hstu_positions { increment: nan }",
       "hstu_positions.increment: must be in [0.001, 1e+09], got nan"},
      {"hstu_positions { divisor: 0 }", "hstu_positions.divisor: must be in [0.001, 1e+09], got 0"},
      {"hstu_positions { time_bucket_function: 5 }",
       "hstu_positions.time_bucket_function: unknown value 5"}};
  for (const auto& [spec, message] : cases) EXPECT_EQ(SpecRefusal(spec), message);
}

TEST(TimeIntervalsTest, BadTablesAreRefused) {
  const std::vector<std::tuple<std::string, std::string, std::string, std::string>> cases = {
      {"time_intervals {}", "values: 9223372036854775807", "TIME_INTERVALS",
       "selection.sequences.values[0]: must be in [-1125899906842624, 1125899906842624], got "
       "9223372036854775807"},
      {"time_intervals {}", "values: [5, 4]", "RELATIVE_TIMES",
       "selection.sequences.values[1]: must not go down: got 4 after 5"},
      {"time_intervals {}", "values: [0, 1, 2147483647]", "RELATIVE_TIMES",
       "selection.sequences: sequence 0: spans 2147483647 of its shortest gaps, more than 32 bits "
       "hold"},
      {"hstu_time_bias {}", "values: [1, 2]", "BIAS",
       "hstu_time_bias.time_table: is required for a bias"},
      {"hstu_positions {}", "length: 3", "POSITION_IDS",
       "selection.sequences.lengths: must have batch_size (1) entries, got 0"},
      {"hstu_positions {}", "length: 3 lengths: 4", "POSITION_IDS",
       "selection.sequences.lengths[0]: must be in [0, 3], got 4"},
      {"hstu_positions { interleave_targets: true }", "length: 3 lengths: 3 num_targets: 2",
       "POSITION_IDS",
       "selection.sequences.num_targets[0]: targets take 4 columns of a sequence of 3"},
      {"hstu_positions {}", "length: 3 lengths: 3 values: [1, 2, 3]", "POSITION_IDS",
       "selection.sequences.values: this encoding does not read it"}};
  for (const auto& [spec, sequences, layout, message] : cases) {
    EXPECT_EQ(
        TableRefusal(spec, Select("sequences { " + sequences + " }"), "layout: LAYOUT_" + layout),
        message);
  }
  EXPECT_EQ(
      TableRefusal("hstu_time_bias { num_buckets: 1 position_table { shape: 3 values: [1, 2, 3] } "
                   "time_table { shape: 2 values: [1, 2] } }",
                   Select("sequences { values: [1, 2, 3] }"), "layout: LAYOUT_BIAS"),
      "selection.sequences.length: position_table has rows for 2 tokens, got 3");
}

}  // namespace
}  // namespace posenc::testing
