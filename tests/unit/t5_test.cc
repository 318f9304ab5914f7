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

// Shipped models, odd counts, a bucket count above the distances, the smallest.
const std::vector<T5Buckets> kConfigs = {{16, 128}, {32, 128}, {160, 800}, {32, 256},  {64, 128},
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
  for (const T5Buckets& config : kConfigs) {
    int64_t previous = 0;
    for (int64_t distance = 0; distance <= config.max_distance + 3; ++distance) {
      const int64_t bucket = T5Bucket(config, distance);
      ASSERT_GE(bucket, previous) << config.num_buckets << " " << distance;
      previous = bucket;
    }
    EXPECT_EQ(previous, config.num_buckets - 1);
  }
}

TEST(T5BucketsTest, FirstDistancesAreTheFormulasEdges) {
  for (const T5Buckets& config : kConfigs) {
    const auto first = T5BucketFirstDistances(config);
    ASSERT_EQ(static_cast<int64_t>(first.size()), config.num_buckets);
    for (int64_t bucket = 0; bucket < config.num_buckets; ++bucket) {
      const int64_t distance = first[static_cast<size_t>(bucket)];
      EXPECT_GE(T5Bucket(config, distance), bucket);
      if (distance > 0) {
        EXPECT_LT(T5Bucket(config, distance - 1), bucket);
      }
    }
  }
}

// Executed from transformers 5.16.0.dev0 (t5.thresholds.* in t5.jsonl).
TEST(T5BucketsTest, FirstDistancesOfThePublishedConfigurations) {
  EXPECT_THAT(T5BucketFirstDistances({16, 128}),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91));
  EXPECT_THAT(T5BucketFirstDistances({16, 256}),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 20, 30, 46, 70, 108, 166));
}

// Every (buckets, max_distance, distance) up to 8192 where a float64 logarithm
// would give another bucket than the float32 one of torch on a CPU.
TEST(T5BucketsTest, Float32LogarithmsDecideWhereFloat64OnesDiffer) {
  const auto lines = golden::ReadLines("t5_float32_float64.jsonl");
  for (const auto& triple : lines.front()["triples"].GetArray()) {
    EXPECT_EQ(T5Bucket({triple[0].GetInt64(), triple[1].GetInt64()}, triple[2].GetInt64()),
              triple[3].GetInt64())
        << triple[0].GetInt64() << " " << triple[1].GetInt64() << " " << triple[2].GetInt64();
  }
}

// transformers adds max_exact before it truncates in WavLM and ProphetNet: the sum
// rounds up across an integer where the quotient alone is just below it.
TEST(T5BucketsTest, WavLmsOrderAddsBeforeItTruncates) {
  int64_t differ = 0;
  std::vector<T5Buckets> configs = kConfigs;
  configs.push_back({64, 693});  // at distance 47: 36 instead of 35
  for (const T5Buckets& config : configs) {
    T5Buckets wavlm = config;
    wavlm.order = v1::BUCKET_ORDER_WAVLM;
    for (int64_t distance = config.num_buckets / 2; distance <= config.max_distance; ++distance) {
      const float exact = static_cast<float>(config.num_buckets / 2);
      const float ratio = static_cast<float>(
          Log(Real(static_cast<double>(config.max_distance) / static_cast<double>(exact)))
              .ToDouble());
      float value = Log(Real(static_cast<float>(distance) / exact)).ToFloat();
      value = value / ratio * (static_cast<float>(config.num_buckets) - exact);
      const int64_t expected =
          std::min(static_cast<int64_t>(exact + value), config.num_buckets - 1);
      ASSERT_EQ(T5Bucket(wavlm, distance), expected) << config.num_buckets << " " << distance;
      differ += expected != T5Bucket(config, distance);
    }
  }
  EXPECT_GT(differ, 0);
}

// The table of Hugging Face is [num_buckets, num_heads].
std::string TableText(int64_t num_buckets, int64_t num_heads) {
  std::string text =
      "bias_table { shape: " + std::to_string(num_buckets) + " shape: " + std::to_string(num_heads);
  for (int64_t i = 0; i < num_buckets * num_heads; ++i) {
    text += " values: " + std::to_string(i) + ".125";
  }
  return text + " }";
}

TEST(T5Test, TheBiasIsTheTableAtTheBucket) {
  const std::string spec = "t5 { num_buckets: 8 max_distance: 20 " + TableText(8, 3) + " }";
  const v1::Selection grid = SelectGrid(4, 30, 20);
  const auto bias = FillOne(spec, grid, "layout: LAYOUT_BIAS");
  const auto buckets = FillOne(spec, grid).As<int32_t>();
  EXPECT_EQ(bias.tensor.name, "attention_bias");
  EXPECT_THAT(bias.tensor.shape, ElementsAre(3, 4, 30));
  const auto vector = FillOne(spec, grid, "layout: LAYOUT_BIAS_VECTOR").As<float>();
  for (size_t head = 0; head < 3; ++head) {
    for (size_t i = 0; i < 120; ++i) {
      const float expected = static_cast<float>(buckets[i] * 3) + static_cast<float>(head) + 0.125f;
      EXPECT_EQ(bias.As<float>()[head * 120 + i], expected);
      EXPECT_EQ(vector[head * 33 + i % 30 + 3 - i / 30], expected);
    }
  }
  EXPECT_EQ(FillOne(spec, grid, "layout: LAYOUT_BIAS dtype: DTYPE_F64").As<double>()[5],
            static_cast<double>(bias.As<float>()[5]));
}

// flaxformer and ONNX Runtime have it the other way round; one canonical form.
TEST(T5Test, ATableWithHeadsFirstIsTransposed) {
  const auto canonical = [](const std::string& fields) {
    return Canonicalize(Spec("t5 { num_buckets: 4 bias_table { " + fields))->key();
  };
  EXPECT_EQ(canonical("shape: 2 shape: 4 values: [1, 2, 3, 4, 5, 6, 7, 8] } "
                      "table_heads_first: true }"),
            canonical("shape: 4 shape: 2 values: [1, 5, 2, 6, 3, 7, 4, 8] } }"));
}

// LayoutLM: relative positions of box coordinates, not of tokens.
TEST(T5Test, PositionIdsAreQueriesAndKeys) {
  const std::vector<int64_t> ids = {3, -500, 3, 999, 40};
  const auto buckets = FillOne("t5 { num_buckets: 64 max_distance: 256 }", SelectIds(ids));
  const auto positions = FillOne("t5 {}", SelectIds(ids), "layout: LAYOUT_RELATIVE_POSITION");
  EXPECT_THAT(buckets.tensor.shape, ElementsAre(5, 5));
  for (size_t query = 0; query < 5; ++query) {
    for (size_t key = 0; key < 5; ++key) {
      EXPECT_EQ(positions.As<int32_t>()[query * 5 + key], ids[key] - ids[query]);
      EXPECT_EQ(buckets.As<int32_t>()[query * 5 + key],
                SlowBucket(64, 256, true, ids[key] - ids[query]));
    }
  }
}

// LongT5's local side: a block of queries, and keys from the block before it to the
// block after it.
TEST(T5Test, ThreeBlocksOfKeysAreAGridWithAnOffset) {
  EXPECT_THAT(
      FillOne("t5 {}", SelectGrid(2, 6, 2), "layout: LAYOUT_RELATIVE_POSITION").As<int32_t>(),
      ElementsAre(-2, -1, 0, 1, 2, 3, -3, -2, -1, 0, 1, 2));
}

v1::Selection SelectMask(int64_t batch, int64_t length, const std::string& attended) {
  v1::Selection selection;
  selection.mutable_token_mask()->set_height(batch);
  selection.mutable_token_mask()->set_width(length);
  for (const char token : attended) {
    selection.mutable_token_mask()->mutable_valid()->push_back(token == '1' ? '\1' : '\0');
  }
  return selection;
}

// Executed from LongT5 in transformers 5.16.0.dev0, block size 4: seven tokens and a
// pad are one full block and three orphans; a second sequence is full.
TEST(T5Test, GlobalBlocksOfLongT5) {
  const std::string spec = "t5 { global_block_size: 4 }";
  const v1::Selection mask = SelectMask(2, 8, "1111111011111111");
  EXPECT_THAT(FillOne(spec, mask, "layout: LAYOUT_GLOBAL_BLOCK_IDS").As<int32_t>(),
              ElementsAre(0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(FillOne(spec, mask, "layout: LAYOUT_GLOBAL_SEGMENT_IDS").As<int32_t>(),
              ElementsAre(1, 0, 1, 1));
  const auto side = FillOne(spec, mask, "layout: LAYOUT_RELATIVE_POSITION");
  EXPECT_THAT(side.tensor.shape, ElementsAre(2, 8, 2));
  EXPECT_THAT(side.As<int32_t>(), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 2,  //
                                              0, 1, 0, 1, 0, 1, 0, 1, -1, 0, -1, 0, -1, 0, -1, 0));
  const auto buckets = FillOne(spec, mask).As<int32_t>();
  for (size_t i = 0; i < buckets.size(); ++i) {
    EXPECT_EQ(buckets[i], SlowBucket(32, 128, true, side.As<int32_t>()[i]));
  }
}

TEST(T5Test, TheGlobalBiasHasHeadsAfterTheBatch) {
  const std::string spec = "t5 { global_block_size: 3 num_buckets: 8 " + TableText(8, 2) + " }";
  const v1::Selection mask = SelectMask(2, 7, "11111110111100");
  const auto bias = FillOne(spec, mask, "layout: LAYOUT_BIAS");
  const auto buckets = FillOne(spec, mask).As<int32_t>();
  EXPECT_THAT(bias.tensor.shape, ElementsAre(2, 2, 7, 2));
  for (size_t batch = 0; batch < 2; ++batch) {
    for (size_t head = 0; head < 2; ++head) {
      for (size_t i = 0; i < 14; ++i) {
        EXPECT_EQ(
            bias.As<float>()[(batch * 2 + head) * 14 + i],
            static_cast<float>(buckets[batch * 14 + i] * 2) + static_cast<float>(head) + 0.125f);
      }
    }
  }
  for (const char* layout : {"BIAS", "BUCKETS", "GLOBAL_BLOCK_IDS", "GLOBAL_SEGMENT_IDS"}) {
    for (const int64_t units : {1, 3, 5, 100}) {
      ExpectPartsEqualWhole(Spec(spec), mask, Format(std::string("layout: LAYOUT_") + layout),
                            units);
    }
  }
}

// No block at all: every token is an orphan of none.
TEST(T5Test, ASequenceShorterThanABlockHasNoGlobalBlocks) {
  const std::string spec = "t5 { global_block_size: 16 }";
  const v1::Selection mask = SelectMask(1, 3, "111");
  EXPECT_THAT(FillOne(spec, mask, "layout: LAYOUT_GLOBAL_BLOCK_IDS").As<int32_t>(),
              ::testing::Each(-1));
  EXPECT_THAT(FillOne(spec, mask).tensor.shape, ElementsAre(1, 3, 0));
}

TEST(T5Test, BucketsEqualTheSlowTwin) {
  for (const T5Buckets& config : kConfigs) {
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
  for (const int64_t units : {1, 2, 7, 64}) {
    ExpectPartsEqualWhole(Spec("t5 {}"), SelectIds({4, 900, -3, 4, 17}), {}, units);
    ExpectPartsEqualWhole(Spec("t5 { num_buckets: 8 " + TableText(8, 3) + " }"),
                          SelectGrid(5, 9, 3), Format("layout: LAYOUT_BIAS dtype: DTYPE_BF16"),
                          units);
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
              ElementsAreArray(T5BucketFirstDistances({32, 128})));
}

TEST(T5Test, CanonicalFormIsCompleteAndIdempotent) {
  const auto canonical = Canonicalize(Spec("t5 {}"));
  EXPECT_EQ(canonical->proto().ShortDebugString(),
            "t5 { num_buckets: 32 max_distance: 128 bidirectional: true }");
  ExpectIdempotent("t5 {}");
  ExpectIdempotent("t5 { num_buckets: 2 max_distance: 2 bidirectional: false }");
  ExpectIdempotent("t5 { num_buckets: 4 bucket_order: BUCKET_ORDER_WAVLM global_block_size: 2 " +
                   TableText(4, 3) + " }");
  EXPECT_EQ(Canonicalize(Spec("t5 { bucket_order: BUCKET_ORDER_T5 }"))->key(), canonical->key());
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
      {"bias_table { shape: 31 shape: 2 values: 1 }",
       "t5.bias_table.shape: must be [32, any], got [31, 2]"},
      {"bias_table { shape: 32 shape: 2 values: 1 } table_heads_first: true",
       "t5.bias_table.shape: must be [any, 32], got [32, 2]"},
      {"bias_table { shape: 32 shape: 2 values: 1 }",
       "t5.bias_table: shape [32, 2] needs 256 bytes of f32, got 4"},
      {"global_block_size: 0", "t5.global_block_size: must be in [1, 1048576], got 0"},
  };
  for (const auto& [fields, message] : cases) {
    EXPECT_EQ(SpecRefusal(std::string("t5 { ") + fields + " }"), message);
  }
  v1::EncodingSpec spec = Spec("t5 {}");
  spec.mutable_t5()->set_bucket_order(static_cast<v1::BucketOrder>(7));
  EXPECT_EQ(Canonicalize(spec).status().message(), "t5.bucket_order: unknown value 7");
}

TEST(T5Test, RefusesSelectionsAndFormatsItDoesNotHave) {
  EXPECT_EQ(TableRefusal("t5 {}", {}), "selection: is required: an attention_grid");
  EXPECT_EQ(TableRefusal("t5 {}", SelectRange(0, 4)),
            "selection: needs an attention_grid for this encoding, got position_range");
  EXPECT_EQ(TableRefusal("t5 {}", SelectGrid(-1, 4)),
            "selection.attention_grid.query_length: must be in [0, 2147483648], got -1");
  EXPECT_EQ(TableRefusal("t5 {}", SelectGrid(1, 4), "dtype: DTYPE_F32"),
            "format.dtype: t5 as buckets has i32, got f32");
  EXPECT_EQ(TableRefusal("t5 {}", SelectGrid(1, 4), "layout: LAYOUT_BIAS"),
            "t5.bias_table: is required for a bias");
  EXPECT_EQ(TableRefusal("t5 {}", SelectGrid(1, 4), "layout: LAYOUT_SLOPES"),
            "format.layout: t5 has buckets, bucket_vector, bias, bias_vector, relative_position, "
            "global_block_ids, global_segment_ids, got slopes");
  EXPECT_EQ(TableRefusal("t5 {}", SelectGrid(1, 4), "layout: LAYOUT_GLOBAL_BLOCK_IDS"),
            "t5.global_block_size: is required for global blocks");
  EXPECT_EQ(TableRefusal("t5 {}", SelectIds({1, 2}), "layout: LAYOUT_BUCKET_VECTOR"),
            "format.layout: a vector is of the relative positions of an attention_grid");
  EXPECT_EQ(TableRefusal("t5 { global_block_size: 4 }", SelectGrid(1, 4)),
            "selection: needs a token_mask or a patch_grid for this encoding, got attention_grid");
  EXPECT_EQ(TableRefusal("t5 {}", SelectIds({-2147483647, 2147483647}),
                         "layout: LAYOUT_RELATIVE_POSITION"),
            "selection.position_ids.ids: relative positions must fit an i32, got 4294967294");
  EXPECT_EQ(TableRefusal("t5 {}", SelectGrid(2, 1, 2147483647), "layout: LAYOUT_RELATIVE_POSITION"),
            "selection.attention_grid: relative positions must fit an i32, got 2147483648");
}

}  // namespace
}  // namespace posenc::testing
