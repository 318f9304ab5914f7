#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/families/t5_buckets.h"
#include "tests/support/golden.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

struct Config {
  int64_t num_buckets;  // of one direction
  int64_t max_distance;
};

// Shipped models, odd counts, a bucket count above the distances, the smallest.
const std::vector<Config> kConfigs = {{16, 128}, {32, 128}, {160, 800}, {32, 256},  {64, 128},
                                      {7, 50},   {2, 2},    {3, 9},     {256, 200}, {16, 800}};

// The slow twin: the reference's formula for one relative position (HF
// T5Attention._relative_position_bucket), its logarithms by MPFR.
int64_t SlowBucket(int64_t num_buckets, int64_t max_distance, bool bidirectional,
                   int64_t relative_position) {
  int64_t bucket = 0;
  int64_t distance = std::max<int64_t>(-relative_position, 0);
  if (bidirectional) {
    num_buckets /= 2;
    bucket = relative_position > 0 ? num_buckets : 0;
    distance = std::abs(relative_position);
  }
  const int64_t max_exact = num_buckets / 2;
  if (distance < max_exact) return bucket + distance;
  const double ratio = static_cast<double>(max_distance) / static_cast<double>(max_exact);
  float value = Log(Real(static_cast<float>(distance) / static_cast<float>(max_exact))).ToFloat();
  value = value / static_cast<float>(Log(Real(ratio)).ToDouble());
  value = value * static_cast<float>(num_buckets - max_exact);
  return bucket + std::min(max_exact + static_cast<int64_t>(value), num_buckets - 1);
}

std::string SpecText(int64_t num_buckets, int64_t max_distance, bool bidirectional) {
  return "t5 { num_buckets: " + std::to_string(num_buckets) +
         " max_distance: " + std::to_string(max_distance) +
         " bidirectional: " + (bidirectional ? "true" : "false") + " }";
}

TEST(T5BucketsTest, BucketsNeverDecreaseWithDistance) {
  for (const Config& config : kConfigs) {
    int64_t previous = 0;
    for (int64_t distance = 0; distance <= config.max_distance + 3; ++distance) {
      const int64_t bucket = T5Bucket(config.num_buckets, config.max_distance, distance);
      ASSERT_GE(bucket, previous) << config.num_buckets << " " << distance;
      previous = bucket;
    }
    EXPECT_EQ(previous, config.num_buckets - 1);
  }
}

TEST(T5BucketsTest, FirstDistancesAreTheFormulasEdges) {
  for (const Config& config : kConfigs) {
    const auto first = T5BucketFirstDistances(config.num_buckets, config.max_distance);
    ASSERT_EQ(static_cast<int64_t>(first.size()), config.num_buckets);
    for (int64_t bucket = 0; bucket < config.num_buckets; ++bucket) {
      const int64_t distance = first[static_cast<size_t>(bucket)];
      EXPECT_GE(T5Bucket(config.num_buckets, config.max_distance, distance), bucket);
      if (distance > 0) {
        EXPECT_LT(T5Bucket(config.num_buckets, config.max_distance, distance - 1), bucket);
      }
    }
  }
}

// Executed from transformers 5.16.0.dev0 (t5.thresholds.* in t5.jsonl).
TEST(T5BucketsTest, FirstDistancesOfThePublishedConfigurations) {
  EXPECT_THAT(T5BucketFirstDistances(16, 128),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91));
  EXPECT_THAT(T5BucketFirstDistances(16, 256),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 20, 30, 46, 70, 108, 166));
}

// Every (buckets, max_distance, distance) up to 8192 where a float64 logarithm
// would give another bucket than the float32 one of torch on a CPU.
TEST(T5BucketsTest, Float32LogarithmsDecideWhereFloat64OnesDiffer) {
  const auto lines = golden::ReadLines("t5_float32_float64.jsonl");
  for (const auto& triple : lines.front()["triples"].GetArray()) {
    EXPECT_EQ(T5Bucket(triple[0].GetInt64(), triple[1].GetInt64(), triple[2].GetInt64()),
              triple[3].GetInt64())
        << triple[0].GetInt64() << " " << triple[1].GetInt64() << " " << triple[2].GetInt64();
  }
}

TEST(T5Test, BucketsEqualTheSlowTwin) {
  for (const Config& config : kConfigs) {
    for (const bool bidirectional : {true, false}) {
      const int64_t num_buckets = config.num_buckets * (bidirectional ? 2 : 1);
      const std::string spec = SpecText(num_buckets, config.max_distance, bidirectional);
      for (const auto& [queries, keys, offset] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
               {1, 300, 150}, {7, 12, 0}, {12, 7, 3}, {1, 1, 1000}, {3, 40, 39}}) {
        const auto buckets = FillOne(spec, SelectGrid(queries, keys, offset)).As<int32_t>();
        for (int64_t i = 0; i < queries; ++i) {
          for (int64_t j = 0; j < keys; ++j) {
            ASSERT_EQ(buckets[static_cast<size_t>(i * keys + j)],
                      SlowBucket(num_buckets, config.max_distance, bidirectional, j - offset - i))
                << spec << " query " << offset + i << " key " << j;
          }
        }
      }
    }
  }
}

// Executed from transformers 5.16.0.dev0: the encoder's and the decoder's 4 x 4.
TEST(T5Test, FourByFour) {
  EXPECT_THAT(FillOne("t5 {}", SelectGrid(4, 4)).As<int32_t>(),
              ElementsAre(0, 17, 18, 19, 1, 0, 17, 18, 2, 1, 0, 17, 3, 2, 1, 0));
  EXPECT_THAT(FillOne("t5 { bidirectional: false }", SelectGrid(4, 4)).As<int32_t>(),
              ElementsAre(0, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0, 3, 2, 1, 0));
}

TEST(T5Test, MatrixIsTheExpandedVector) {
  for (const char* spec : {"t5 {}", "t5 { bidirectional: false }"}) {
    const v1::Selection grid = SelectGrid(5, 150, 120);
    const auto matrix = FillOne(spec, grid).As<int32_t>();
    const auto vector = FillOne(spec, grid, "layout: LAYOUT_BUCKET_VECTOR").As<int32_t>();
    ASSERT_EQ(vector.size(), 154u);
    for (size_t i = 0; i < 5; ++i) {
      for (size_t j = 0; j < 150; ++j) {
        EXPECT_EQ(matrix[i * 150 + j], vector[j + 4 - i]);
      }
    }
  }
}

TEST(T5Test, AnyPartsEqualTheWhole) {
  for (const char* layout : {"layout: LAYOUT_BUCKETS", "layout: LAYOUT_BUCKET_VECTOR"}) {
    for (const int64_t units : {1, 2, 7, 23, 64, 1000}) {
      ExpectPartsEqualWhole(Spec("t5 {}"), SelectGrid(13, 23, 5), Format(layout), units);
    }
  }
}

TEST(T5Test, AGridWithAnEmptySideIsAnEmptyTable) {
  for (const auto& grid : {SelectGrid(0, 5), SelectGrid(5, 0), SelectGrid(0, 0, 9)}) {
    EXPECT_TRUE(FillOne("t5 {}", grid).bytes.empty());
    EXPECT_TRUE(FillOne("t5 {}", grid, "layout: LAYOUT_BUCKET_VECTOR").bytes.empty());
  }
}

TEST(T5Test, FarPositionsShareTheLastBucket) {
  const int64_t far = (int64_t{1} << 31) - 1;
  EXPECT_THAT(FillOne("t5 {}", SelectGrid(2, 3, far)).As<int32_t>(), ::testing::Each(15));
}

TEST(T5Test, DescribeGivesTheFirstDistances) {
  const auto table = FillTable(Spec("t5 { bidirectional: false }"), SelectGrid(1, 1), {});
  EXPECT_THAT(table->description.bucket_first_distance(),
              ElementsAreArray(T5BucketFirstDistances(32, 128)));
}

TEST(T5Test, CanonicalFormIsCompleteAndIdempotent) {
  const auto canonical = Canonicalize(Spec("t5 {}"));
  EXPECT_EQ(canonical->proto().ShortDebugString(),
            "t5 { num_buckets: 32 max_distance: 128 bidirectional: true }");
  ExpectIdempotent("t5 {}");
  ExpectIdempotent("t5 { num_buckets: 2 max_distance: 2 bidirectional: false }");
}

TEST(T5Test, RefusesWhatMakesNoSense) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"num_buckets: 2", "t5.num_buckets: must be in [4, 4096], got 2"},
      {"num_buckets: 1 bidirectional: false", "t5.num_buckets: must be in [2, 4096], got 1"},
      {"num_buckets: 0", "t5.num_buckets: must be in [4, 4096], got 0"},
      {"num_buckets: -32", "t5.num_buckets: must be in [4, 4096], got -32"},
      {"num_buckets: 9223372036854775807",
       "t5.num_buckets: must be in [4, 4096], got 9223372036854775807"},
      {"num_buckets: 33", "t5.num_buckets: must be even when bidirectional, got 33"},
      {"max_distance: 0", "t5.max_distance: must be in [1, 2147483648], got 0"},
      {"max_distance: 2147483649", "t5.max_distance: must be in [1, 2147483648], got 2147483649"},
      // x-transformers#19: log of a number below one.
      {"num_buckets: 64 max_distance: 16",
       "t5.max_distance: must be above the 16 distances that have a bucket of their own "
       "(num_buckets / 4), got 16"},
      {"num_buckets: 64 max_distance: 16 bidirectional: false",
       "t5.max_distance: must be above the 32 distances that have a bucket of their own "
       "(num_buckets / 2), got 16"},
  };
  for (const auto& [fields, message] : cases) {
    EXPECT_EQ(SpecRefusal(std::string("t5 { ") + fields + " }"), message);
  }
}

TEST(T5Test, RefusesSelectionsAndFormatsItDoesNotHave) {
  EXPECT_EQ(TableRefusal("t5 {}", {}), "selection: is required: an attention_grid");
  EXPECT_EQ(TableRefusal("t5 {}", SelectRange(0, 4)),
            "selection: needs an attention_grid for this encoding, got position_range");
  EXPECT_EQ(TableRefusal("t5 {}", SelectGrid(-1, 4)),
            "selection.attention_grid.query_length: must be in [0, 2147483648], got -1");
  EXPECT_EQ(TableRefusal("t5 {}", SelectGrid(1, 4), "dtype: DTYPE_F32"),
            "format.dtype: t5 has i32, got f32");
  EXPECT_EQ(TableRefusal("t5 {}", SelectGrid(1, 4), "layout: LAYOUT_BIAS"),
            "format.layout: t5 has buckets, bucket_vector, got bias");
}

}  // namespace
}  // namespace posenc::testing
