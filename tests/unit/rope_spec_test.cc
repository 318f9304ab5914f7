// Canonical RoPE specs: defaults, folded aliases, one form for one table.
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/families/rope_frequencies.h"
#include "tests/support/tables.h"
#include "tests/unit/rope_specs.h"

namespace posenc::testing {
namespace {

using ::testing::ElementsAre;

TEST(RopeSpecTest, DefaultsAreFilledIn) {
  const v1::RopeSpec rope = CanonicalRope("head_dim: 128");
  EXPECT_EQ(rope.rotary_dim(), 128);
  EXPECT_EQ(rope.rope_theta(), 10000.0);
  EXPECT_EQ(rope.pairing(), v1::PAIRING_HALF);
  EXPECT_EQ(rope.arithmetic(), v1::ARITHMETIC_FLOAT32);
  EXPECT_EQ(CanonicalRope("rotary_dim: 64").head_dim(), 64);
}

// hf-rope.md section 6, trap 1: int(100 * 0.29) is 28, int(192 * 0.334) is 64.
TEST(RopeSpecTest, PartialRotaryFactorTruncatesADoubleProduct) {
  EXPECT_EQ(CanonicalRope("head_dim: 100 partial_rotary_factor: 0.29").rotary_dim(), 28);
  const v1::RopeSpec rope = CanonicalRope("head_dim: 192 partial_rotary_factor: 0.334");
  EXPECT_EQ(rope.rotary_dim(), 64);
  EXPECT_FALSE(rope.has_partial_rotary_factor());
  EXPECT_EQ(CanonicalRope("head_dim: 80 rotary_dim: 20 partial_rotary_factor: 0.25").rotary_dim(),
            20);
}

TEST(RopeSpecTest, OneTableOneSpec) {
  const auto key = [](const std::string& rope) {
    return Canonicalize(Spec(absl::StrCat("rope {", rope, "}")))->key();
  };
  EXPECT_EQ(key("head_dim: 128"), key("rotary_dim: 128 rope_theta: 10000 pairing: PAIRING_HALF"));
  EXPECT_EQ(key("head_dim: 80 partial_rotary_factor: 0.4"), key("head_dim: 80 rotary_dim: 32"));
  EXPECT_EQ(key(kDeepSeekV3), key("head_dim: 64 yarn { factor: 40 attention_factor: 1 "
                                  "original_max_position_embeddings: 4096 }"));
  EXPECT_NE(key("head_dim: 128"), key("head_dim: 128 arithmetic: ARITHMETIC_EXACT"));
}

TEST(RopeSpecTest, CanonicalFormsAreFixedPoints) {
  for (const std::string arithmetic : {"", "arithmetic: ARITHMETIC_EXACT "}) {
    for (const std::string pairing : {"", "pairing: PAIRING_INTERLEAVED "}) {
      for (const std::string rope :
           {"head_dim: 2", "rotary_dim: 128", "head_dim: 96 rotary_dim: 32",
            "head_dim: 80 partial_rotary_factor: 0.4", "head_dim: 64 linear { factor: 2.5 }",
            "head_dim: 64 rope_theta: 0.5 linear { factor: 0.25 }", kLlama31, kDeepSeekV3, kGptOss,
            kQwenYarn, kDynamic, kLongRope, kGemma4, "head_dim: 64 ntk { alpha: 1000 }",
            "head_dim: 64 ntk { factor: 4 }",
            "head_dim: 64 dynamic { growth: DYNAMIC_GROWTH_POWER_OF_TWO "
            "max_position_embeddings: 8192 sequence_length: 8193 }",
            "head_dim: 64 dynamic { growth: DYNAMIC_GROWTH_LINEAR_FLOAT64 factor: 2 "
            "max_position_embeddings: 8192 sequence_length: 1 }",
            "frequencies { inv_freq: [1, 0.5, -0.0] }"}) {
        ExpectIdempotent(absl::StrCat("rope {", arithmetic, pairing, rope, "}"));
      }
    }
  }
}

// hf-rope.md section 7.
TEST(RopeSpecTest, YarnAttentionFactorIsAlwaysSet) {
  EXPECT_EQ(CanonicalRope(kDeepSeekV3).yarn().attention_factor(), 1.0);
  EXPECT_EQ(CanonicalRope(kGptOss).yarn().attention_factor(), 1.3465735902799727);
  EXPECT_EQ(CanonicalRope(kQwenYarn).yarn().attention_factor(), 1.138629436111989);
  const auto factor = [](const std::string& fields) {
    return CanonicalRope(absl::StrCat("head_dim: 64 yarn { original_max_position_embeddings: 4096 ",
                                      fields, "}"))
        .yarn()
        .attention_factor();
  };
  EXPECT_EQ(factor("factor: 8"), 1.2079441541679836);
  EXPECT_EQ(factor("factor: 16"), 1.2772588722239782);
  EXPECT_EQ(factor("factor: 4 mscale: 1 mscale_all_dim: 0.5"), 1.0648216253695715);
  EXPECT_EQ(factor("factor: 0.5"), 1.0) << "not longer: nothing to sharpen";
  EXPECT_EQ(factor("factor: 8 mscale: 0.707"), 1.2079441541679836) << "a lone mscale is ignored";
  EXPECT_EQ(factor("factor: 8 mscale: 0.707 mscale_all_dim: 0"), 1.2079441541679836);
  EXPECT_EQ(factor("factor: 8 attention_factor: 2 mscale: 1 mscale_all_dim: 0.5"), 2.0);
}

TEST(RopeSpecTest, YarnAttnFactorMultipliesTheDefault) {
  EXPECT_EQ(CanonicalRope("head_dim: 64 yarn { factor: 8 attn_factor: 2 "
                          "original_max_position_embeddings: 4096 }")
                .yarn()
                .attention_factor(),
            2 * 1.2079441541679836);
}

// hf-rope.md section 2.5: strictly longer than the original context is long.
TEST(RopeSpecTest, LongRopeSwitchesListsBeyondTheOriginalContext) {
  const auto canonical = [](int64_t sequence_length) {
    return CanonicalRope(
        absl::StrCat("head_dim: 2 longrope { short_factor: 1 long_factor: 4 factor: "
                     "32 short_mscale: 1.25 long_mscale: 1.5 "
                     "original_max_position_embeddings: 4096 sequence_length: ",
                     sequence_length, "}"));
  };
  for (const int64_t short_length : {1, 4095, 4096}) {
    const v1::RopeSpec rope = canonical(short_length);
    EXPECT_EQ(rope.longrope().sequence_length(), 4096);
    EXPECT_EQ(rope.longrope().attention_factor(), 1.25);
    EXPECT_THAT(RopeInvFreqFloat32(rope), ElementsAre(1.0f));
  }
  for (const int64_t long_length : {4097, 131072}) {
    const v1::RopeSpec rope = canonical(long_length);
    EXPECT_EQ(rope.longrope().sequence_length(), 4097) << "one table for all long sequences";
    EXPECT_EQ(rope.longrope().attention_factor(), 1.5);
    EXPECT_THAT(RopeInvFreqFloat32(rope), ElementsAre(0.25f));
  }
}

// hf-rope.md section 7.
TEST(RopeSpecTest, LongRopeAttentionFactorIsAlwaysSet) {
  EXPECT_EQ(CanonicalRope(kLongRope).longrope().attention_factor(), 1.1902380714238083);
  const auto factor = [](const std::string& fields) {
    return CanonicalRope(absl::StrCat("head_dim: 2 longrope { short_factor: 1 long_factor: 1 "
                                      "original_max_position_embeddings: 4096 ",
                                      fields, "}"))
        .longrope()
        .attention_factor();
  };
  EXPECT_EQ(factor("factor: 1"), 1.0);
  EXPECT_EQ(factor("factor: 0.5"), 1.0);
  EXPECT_EQ(factor("attention_factor: 1.19"), 1.19);
}

TEST(RopeSpecTest, DynamicSequencesUpToTheContextShareOneTable) {
  const auto length = [](const std::string& fields) {
    return CanonicalRope(
               absl::StrCat("head_dim: 64 dynamic { factor: 2 max_position_embeddings: 4096 ",
                            fields, "}"))
        .dynamic()
        .sequence_length();
  };
  EXPECT_EQ(length(""), 4096);
  EXPECT_EQ(length("sequence_length: 1"), 4096);
  EXPECT_EQ(length("sequence_length: 4096"), 4096);
  EXPECT_EQ(length("sequence_length: 4097"), 4097);
}

// TeleChat's get_mscale and get_ntk_alpha: nothing is shorter than what it was trained on, and
// cos and sin are multiplied beyond it.
TEST(RopeSpecTest, ATrainedLengthIsTheLeastAndTheMeasureOfTheAttentionFactor) {
  const auto dynamic = [](const std::string& fields) {
    return CanonicalRope(absl::StrCat("head_dim: 128 dynamic { growth: "
                                      "DYNAMIC_GROWTH_POWER_OF_TWO max_position_embeddings: 4096 ",
                                      fields, "}"))
        .dynamic();
  };
  const v1::DynamicScaling trained = dynamic("trained_length: 8192 sequence_length: 100");
  EXPECT_EQ(trained.sequence_length(), 8192);
  EXPECT_FALSE(trained.has_trained_length());
  EXPECT_FALSE(trained.has_attention_factor()) << "1 is the default";
  // 0.1 ln 4 + 1.
  EXPECT_EQ(dynamic("trained_length: 8192 sequence_length: 32768").attention_factor(),
            1.138629436111989);
  EXPECT_EQ(dynamic("trained_length: 8192 sequence_length: 32768 attention_factor: 1.25")
                .attention_factor(),
            1.25);
  ExpectIdempotent(
      "rope { head_dim: 128 dynamic { growth: DYNAMIC_GROWTH_POWER_OF_TWO "
      "max_position_embeddings: 4096 trained_length: 8192 sequence_length: 32768 } }");
}

TEST(RopeSpecTest, ExactArithmeticDoesNotTellWhereABaseWasRounded) {
  const std::string fields =
      "dynamic { factor: 2 max_position_embeddings: 64 growth: DYNAMIC_GROWTH_LINEAR_FLOAT64 }";
  EXPECT_EQ(CanonicalRope(absl::StrCat("head_dim: 8 ", fields)).dynamic().growth(),
            v1::DYNAMIC_GROWTH_LINEAR_FLOAT64);
  EXPECT_EQ(CanonicalRope(absl::StrCat("head_dim: 8 arithmetic: ARITHMETIC_EXACT ", fields))
                .dynamic()
                .growth(),
            v1::DYNAMIC_GROWTH_LINEAR);
}

TEST(RopeSpecTest, ProportionalCountsItsPairs) {
  EXPECT_EQ(CanonicalRope(kGemma4).proportional().rotating_pairs(), 64);
  EXPECT_EQ(CanonicalRope("head_dim: 64 proportional {}").proportional().rotating_pairs(), 32);
  EXPECT_EQ(CanonicalRope("head_dim: 64 proportional { partial_rotary_factor: 0 }")
                .proportional()
                .rotating_pairs(),
            0);
}

TEST(RopeSpecTest, ExplicitFrequenciesSayHowWideTheTableIs) {
  const v1::RopeSpec rope = CanonicalRope("frequencies { inv_freq: [1, 0.5, 0] }");
  EXPECT_EQ(rope.rotary_dim(), 6);
  EXPECT_EQ(rope.head_dim(), 6);
  EXPECT_FALSE(rope.has_rope_theta());
  EXPECT_EQ(rope.frequencies().attention_factor(), 1.0);
}

}  // namespace
}  // namespace posenc::testing
