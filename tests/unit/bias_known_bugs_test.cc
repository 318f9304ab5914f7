// Faults that other projects had in ALiBi, T5 and sinusoids, with the right value.
// Each test is named after what went wrong and cites the report.
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<float> Slopes(const std::string& fields) {
  return FillOne("alibi { " + fields + " }", {}, "layout: LAYOUT_SLOPES").As<float>();
}

// paiml/aprender#2143: -8h/n instead of -8(h+1)/n made head 0's slope 1.
TEST(AlibiBugsTest, ExponentOffByOne) {
  EXPECT_EQ(Slopes("num_heads: 8").front(), 0.5f);
  EXPECT_EQ(Slopes("num_heads: 8").back(), 0.00390625f);
}

// mlx#343, transformers#28380, candle#1189: a single geometric ladder for a head count
// that is no power of two. All five codes give the same twelve numbers.
TEST(AlibiBugsTest, TwelveHeadsByOneLadder) {
  for (const char* rounding : {"PRESS", "BLOOM", "MPT", "GGML"}) {
    const auto slopes =
        Slopes(std::string("num_heads: 12 slope_rounding: SLOPE_ROUNDING_") + rounding);
    for (size_t head = 0; head < 12; ++head) {
      const double exponent =
          head < 8 ? -static_cast<double>(head + 1) : -0.5 - static_cast<double>(head - 8);
      EXPECT_NEAR(slopes[head], Pow(Real(2.0), Real(exponent)).ToDouble(), 1e-7) << rounding;
    }
  }
}

// TensorRT-Model-Connect#32: Falcon adds its bias before the scores are scaled, so the
// effective slope of falcon-rw-1b (head_dim 64) is an eighth of BLOOM's.
TEST(AlibiBugsTest, FalconsBiasTooLargeBySqrtHeadDim) {
  const std::string fields =
      "num_heads: 32 form: ALIBI_FORM_KEY_POSITION slope_rounding: SLOPE_ROUNDING_";
  const auto bloom = FillOne("alibi { " + fields + "BLOOM }", SelectGrid(1, 2)).As<float>();
  const auto falcon =
      FillOne("alibi { " + fields + "FALCON_BF16 scale_head_dim: 64 }", SelectGrid(1, 2))
          .As<float>();
  for (size_t head = 0; head < 32; ++head) {
    EXPECT_NEAR(falcon[2 * head + 1], bloom[2 * head + 1] / 8, bloom[2 * head + 1] * 0x1p-11);
  }
}

// vllm#945: context_len instead of context_len - 1. The last key has bias 0.
TEST(AlibiBugsTest, DistanceOffByOne) {
  const auto bias =
      FillOne("alibi { num_heads: 8 form: ALIBI_FORM_LAST_ROW }", SelectGrid(1, 5, 4)).As<float>();
  EXPECT_THAT(std::vector<float>(bias.begin(), bias.begin() + 5),
              ElementsAre(-2.0f, -1.5f, -1.0f, -0.5f, 0.0f));
}

// vllm#1009: [-n .. 0] or [0 .. n]? The same attention: rows differ by a constant.
TEST(AlibiBugsTest, FormsDifferByAConstantPerRow) {
  const auto rows = [](const char* form) {
    return FillOne(std::string("alibi { num_heads: 1 alibi_bias_max: 1 form: ALIBI_FORM_") + form +
                       " }",
                   SelectGrid(5, 5))
        .As<float>();
  };
  const auto by_key = rows("KEY_POSITION");
  const auto last_row = rows("LAST_ROW");
  const auto relative = rows("RELATIVE_CAUSAL");
  for (size_t i = 0; i < 5; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      EXPECT_EQ(by_key[i * 5 + j] - relative[i * 5 + j], 0.5f * static_cast<float>(i));
      EXPECT_EQ(by_key[i * 5 + j] - last_row[i * 5 + j], 0.5f * 4);
    }
  }
}

// x-transformers#90, #153: a stored bias was used again for another shape.
TEST(AlibiBugsTest, LengthsInARowDoNotLeakIntoOneAnother) {
  const std::string spec = "alibi { num_heads: 1 alibi_bias_max: 1 form: ALIBI_FORM_SYMMETRIC }";
  for (const int64_t length : {512, 513, 511}) {
    const auto bias = FillOne(spec, SelectGrid(3, length, length - 3)).As<float>();
    ASSERT_EQ(bias.size(), static_cast<size_t>(3 * length));
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < length; ++j) {
        ASSERT_EQ(bias[static_cast<size_t>(i * length + j)],
                  -0.5f * static_cast<float>(std::abs(j - (length - 3 + i))));
      }
    }
  }
}

// TransformerLens#1681: the encoder's buckets in a decoder. They differ from distance 9
// on, in 1540 of the 2080 causal cells of length 64.
TEST(T5BugsTest, EncoderBucketsInTheDecoder) {
  const auto encoder = FillOne("t5 {}", SelectGrid(64, 64)).As<int32_t>();
  const auto decoder = FillOne("t5 { bidirectional: false }", SelectGrid(64, 64)).As<int32_t>();
  int cells = 0;
  int differ = 0;
  for (size_t i = 0; i < 64; ++i) {
    for (size_t j = 0; j <= i; ++j, ++cells) {
      const bool same = encoder[i * 64 + j] == decoder[i * 64 + j];
      EXPECT_EQ(same, i - j < 9) << i - j;
      differ += !same;
    }
  }
  EXPECT_EQ(cells, 2080);
  EXPECT_EQ(differ, 1540);
}

// mlx-examples#113: the first and the last row of ten positions.
TEST(T5BugsTest, WrongBucketsWhilePorting) {
  const auto buckets = FillOne("t5 {}", SelectGrid(10, 10)).As<int32_t>();
  EXPECT_THAT(std::vector<int32_t>(buckets.begin(), buckets.begin() + 10),
              ElementsAre(0, 17, 18, 19, 20, 21, 22, 23, 24, 24));
  EXPECT_THAT(std::vector<int32_t>(buckets.end() - 10, buckets.end()),
              ElementsAre(8, 8, 7, 6, 5, 4, 3, 2, 1, 0));
}

// mindone#670: the ratio of logarithms in bfloat16. In float32 the last edges before
// 128 are 91 (bidirectional) and 113 (causal).
TEST(T5BugsTest, LogRatioInBfloat16) {
  const auto causal = FillOne("t5 { bidirectional: false }", SelectGrid(1, 128, 127)).As<int32_t>();
  EXPECT_EQ(causal[127 - 112], 30);
  EXPECT_EQ(causal[127 - 113], 31);
  const auto both = FillOne("t5 {}", SelectGrid(1, 128, 127)).As<int32_t>();
  EXPECT_EQ(both[127 - 90], 14);
  EXPECT_EQ(both[127 - 91], 15);
}

// video-diffusion-pytorch#11: halving twice is meant: once for the sign, once for the
// distances with a bucket of their own (32 to 16 to 8).
TEST(T5BugsTest, DividedTwice) {
  const auto table = FillTable(Spec("t5 {}"), SelectGrid(0, 0), {});
  const auto& first = table->description.bucket_first_distance();
  EXPECT_EQ(first.size(), 16);
  EXPECT_THAT(std::vector<int64_t>(first.begin(), first.begin() + 10),
              ElementsAreArray({0, 1, 2, 3, 4, 5, 6, 7, 8, 12}));
}

// x-transformers#19: more buckets than distances is the logarithm of a number below one.
TEST(T5BugsTest, MoreBucketsThanDistances) {
  EXPECT_EQ(SpecRefusal("t5 { num_buckets: 64 max_distance: 16 }"),
            "t5.max_distance: must be above the 16 distances that have a bucket of their own "
            "(num_buckets / 4), got 16");
  EXPECT_EQ(SpecRefusal("t5 { num_buckets: 64 max_distance: 17 }"), "");
  EXPECT_NE(SpecRefusal("t5 { num_buckets: 64 max_distance: 32 bidirectional: false }"), "");
}

// candle#1312: the last bucket was not the last.
TEST(T5BugsTest, FarDistancesLeftTheTable) {
  EXPECT_EQ(FillOne("t5 { bidirectional: false }", SelectGrid(1, 1, 1000000)).As<int32_t>()[0], 31);
}

// mlx#3614: width 2 divided by zero, width 3 came back with two columns.
TEST(SinusoidalBugsTest, NarrowWidths) {
  EXPECT_NE(SpecRefusal("sinusoidal { d_model: 2 frequency_rule: FREQUENCY_RULE_T2T }"), "");
  const auto one = FillTable(Spec("sinusoidal { d_model: 2 }"), SelectIds({1}), {});
  EXPECT_THAT(one->description.inv_freq(), ElementsAre(1.0));
  EXPECT_THAT(FillOne("sinusoidal { d_model: 3 }", SelectRange(0, 2)).tensor.shape,
              ElementsAre(2, 3));
}

// transformers#15444: M2M100's table did not grow by the past length. A row is a
// function of its position, wherever the table ends.
TEST(SinusoidalBugsTest, TableNotGrownByThePast) {
  const std::string spec = "sinusoidal { d_model: 8 preset: SINUSOIDAL_PRESET_FAIRSEQ }";
  const auto far = FillOne(spec, SelectIds({1026 + 5})).As<float>();
  const auto table = FillOne(spec, SelectRange(0, 1032)).As<float>();
  EXPECT_EQ(far, std::vector<float>(table.end() - 8, table.end()));
}

// hojonathanho/diffusion#15: half - 1, or half? Both are in use: shift 1 and shift 0.
TEST(SinusoidalBugsTest, HalfMinusOne) {
  const auto last = [](const char* preset) {
    const auto table = FillTable(
        Spec(std::string("sinusoidal { d_model: 8 preset: SINUSOIDAL_PRESET_") + preset + " }"),
        SelectRange(0, 0), {});
    return table->description.inv_freq(3);
  };
  EXPECT_NEAR(last("DIFFUSERS_TIMESTEP"), 1e-4, 1e-10);
  EXPECT_NEAR(last("GUIDED_DIFFUSION"), 1e-3, 1e-9);
}

}  // namespace
}  // namespace posenc::testing
