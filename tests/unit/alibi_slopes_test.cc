// ALiBi: one slope a head, in the rounding of each published code.
#include "lib/families/alibi_slopes.h"

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
#include "lib/numeric/dtype.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"
#include "tests/unit/alibi_testing.h"

namespace posenc::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// The slow twin: 2^(-M k / n), rounded once.
float RealSlope(double alibi_bias_max, int64_t k, int64_t n) {
  return Pow(Real(2.0), -Real(alibi_bias_max) * Real::FromInt(k) / Real::FromInt(n)).ToFloat();
}

// The slope of one head in the words of the paper's footnote.
float ExactSlope(int64_t num_heads, double alibi_bias_max, int64_t head) {
  int64_t power_of_two = 1;
  while (2 * power_of_two <= num_heads) power_of_two *= 2;
  if (head < power_of_two) return RealSlope(alibi_bias_max, head + 1, power_of_two);
  return RealSlope(alibi_bias_max, 2 * (head - power_of_two) + 1, 2 * power_of_two);
}

int64_t UlpsBetween(float a, float b) {
  return std::abs(int64_t{std::bit_cast<int32_t>(a)} - int64_t{std::bit_cast<int32_t>(b)});
}

// Press et al. 2022, section 3: "for 8 heads, 1/2^1, 1/2^2, ..., 1/2^8", and for
// 16 heads the geometric means between those too.
TEST(AlibiSlopesTest, EightHeadsHalveFromAHalf) {
  EXPECT_THAT(Slopes(8), ElementsAre(1.0f / 2, 1.0f / 4, 1.0f / 8, 1.0f / 16, 1.0f / 32, 1.0f / 64,
                                     1.0f / 128, 1.0f / 256));
  const std::vector<float> sixteen = Slopes(16);
  EXPECT_EQ(sixteen[0], std::sqrt(0.5f));
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(sixteen[2 * i + 1], Slopes(8)[i]);
}

// Executed from the paper's code (alibi.slopes.A.h12); candle#1189 lists the same twelve.
TEST(AlibiSlopesTest, SlopesOfTwelveHeadsInterpolate) {
  EXPECT_THAT(Slopes(12),
              ElementsAre(0.5f, 0.25f, 0.125f, 0.0625f, 0.03125f, 0.015625f, 0.0078125f,
                          0.00390625f, 0.707106769f, 0.353553385f, 0.176776692f, 0.0883883461f));
  EXPECT_THAT(Slopes(6), ElementsAre(0.25f, 0.0625f, 0.015625f, 0.00390625f, 0.5f, 0.125f));
}

TEST(AlibiSlopesTest, PressIsTheRealSlopeRoundedOnce) {
  for (int64_t num_heads = 1; num_heads <= 130; ++num_heads) {
    const std::vector<float> slopes = Slopes(num_heads);
    ASSERT_EQ(static_cast<int64_t>(slopes.size()), num_heads);
    for (int64_t head = 0; head < num_heads; ++head) {
      ASSERT_EQ(slopes[static_cast<size_t>(head)], ExactSlope(num_heads, 8.0, head))
          << num_heads << " heads, head " << head;
    }
  }
}

// Same numbers in the same order. Measured over the executed references: up to 11
// ulp for BLOOM's powers (128 heads), 1 ulp for MPT's.
TEST(AlibiSlopesTest, TheRoundingsDifferByUlpsOnly) {
  for (const int64_t num_heads : {1, 3, 7, 12, 16, 40, 71, 112, 128}) {
    const std::vector<float> press = Slopes(num_heads);
    const std::vector<float> bloom = Slopes(num_heads, v1::SLOPE_ROUNDING_BLOOM);
    const std::vector<float> mpt = Slopes(num_heads, v1::SLOPE_ROUNDING_MPT);
    ASSERT_EQ(bloom.size(), press.size());
    ASSERT_EQ(mpt.size(), press.size());
    for (size_t head = 0; head < press.size(); ++head) {
      EXPECT_LE(UlpsBetween(press[head], bloom[head]), 11) << num_heads << " " << head;
      EXPECT_LE(UlpsBetween(press[head], mpt[head]), 1) << num_heads << " " << head;
    }
  }
}

TEST(AlibiSlopesTest, TheLargestBiasMaxLeavesNormalSlopes) {
  for (const v1::SlopeRounding rounding :
       {v1::SLOPE_ROUNDING_PRESS, v1::SLOPE_ROUNDING_BLOOM, v1::SLOPE_ROUNDING_MPT,
        v1::SLOPE_ROUNDING_GGML, v1::SLOPE_ROUNDING_FALCON_BF16}) {
    for (const float slope : Slopes(5, rounding, kMaxAlibiBiasMax)) {
      EXPECT_TRUE(std::isnormal(slope)) << slope;
    }
  }
}

TEST(AlibiSlopesTest, GgmlsAreBlooms) {
  for (const int64_t num_heads : {1, 12, 71, 128}) {
    EXPECT_EQ(Slopes(num_heads, v1::SLOPE_ROUNDING_GGML),
              Slopes(num_heads, v1::SLOPE_ROUNDING_BLOOM));
  }
}

// llama.cpp: max_alibi_bias 0 leaves the distances as they are.
TEST(AlibiSlopesTest, AMaximumOfZeroIsSlopesOfOneForGgml) {
  EXPECT_THAT(Slopes(12, v1::SLOPE_ROUNDING_GGML, 0.0), Each(1.0f));
}

// Executed from Falcon in transformers 5.16.0.dev0, 71 heads.
TEST(AlibiSlopesTest, FalconsHaveThePrecisionOfBfloat16) {
  const std::vector<float> slopes = Slopes(71, v1::SLOPE_ROUNDING_FALCON_BF16);
  EXPECT_THAT(std::vector<float>(slopes.begin(), slopes.begin() + 4),
              ElementsAre(0.91796875f, 0.83984375f, 0.76953125f, 0.70703125f));
  EXPECT_EQ(slopes[64], 0.95703125f);
}

TEST(AlibiSlopesTest, ARankHasItsPartOfAllHeads) {
  const std::vector<float> all = Slopes(12);
  std::vector<float> joined;
  for (const char* rank : {"0", "1", "2"}) {
    const auto part = FillOne(absl::StrCat("alibi { num_heads: 12 tensor_parallel_size: 3 "
                                           "tensor_parallel_rank: ",
                                           rank, " }"),
                              {}, "layout: LAYOUT_SLOPES")
                          .As<float>();
    ASSERT_EQ(part.size(), 4u);
    joined.insert(joined.end(), part.begin(), part.end());
  }
  EXPECT_EQ(joined, all);
}
// NeMo: slopes times the float32 reciprocal of the factor; heads without a bias stay without.
TEST(AlibiSlopesTest, AnInterpolationFactorDividesThemByItsReciprocal) {
  const auto slopes =
      FillOne("alibi { num_heads: 6 total_heads: 8 seq_len_interpolation_factor: 3 }", {},
              "layout: LAYOUT_SLOPES")
          .As<float>();
  const std::vector<float> plain = Slopes(6);
  for (size_t head = 0; head < 6; ++head) {
    EXPECT_EQ(slopes[head], plain[head] * static_cast<float>(1.0 / 3));
  }
  EXPECT_THAT(std::vector<float>(slopes.begin() + 6, slopes.end()), ElementsAre(0.0f, 0.0f));
}

// The stored NeMo multiplied in place at each call: the second table was divided twice.
TEST(AlibiSlopesTest, TheFactorDoesNotCompound) {
  const auto bias = [] {
    return FillOne("alibi { num_heads: 1 alibi_bias_max: 1 seq_len_interpolation_factor: 2 }",
                   SelectGrid(1, 3, 2))
        .As<float>();
  };
  EXPECT_THAT(bias(), ElementsAre(-0.5f, -0.25f, 0.0f));
  EXPECT_EQ(bias(), bias());
}

}  // namespace
}  // namespace posenc::testing
