// RoPE tables: the canonical spec, the frequencies of each rope_type against the
// papers' formulas, the layouts, and the laws of rotations.
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/families/rope_frequencies.h"
#include "lib/numeric/rotation.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Le;

// The canonical form. Fails the test when the spec is refused.
v1::RopeSpec Canonical(const std::string& rope) {
  const absl::StatusOr<CanonicalSpec> spec = Canonicalize(Spec(absl::StrCat("rope {", rope, "}")));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? spec->proto().rope() : v1::RopeSpec();
}

std::vector<float> InvFreq32(const std::string& rope) {
  return RopeInvFreqFloat32(Canonical(rope));
}

constexpr char kLlama31[] =
    "head_dim: 128 rope_theta: 500000 llama3 { factor: 8 low_freq_factor: 1 high_freq_factor: 4 "
    "original_max_position_embeddings: 8192 }";
constexpr char kDeepSeekV3[] =
    "head_dim: 64 yarn { factor: 40 original_max_position_embeddings: 4096 mscale: 1 "
    "mscale_all_dim: 1 }";
constexpr char kGptOss[] =
    "head_dim: 64 rope_theta: 150000 yarn { factor: 32 original_max_position_embeddings: 4096 "
    "truncate: false }";
constexpr char kQwenYarn[] =
    "head_dim: 128 rope_theta: 1e6 yarn { factor: 4 original_max_position_embeddings: 32768 }";

constexpr char kDynamic[] =
    "head_dim: 128 rope_theta: 1e6 dynamic { factor: 2 max_position_embeddings: 32768 "
    "sequence_length: 65536 }";
constexpr char kGemma4[] =
    "head_dim: 512 rope_theta: 1e6 proportional { partial_rotary_factor: 0.25 }";
// A short list of ones, a long one of 1, 2, 3.
constexpr char kLongRope[] =
    "head_dim: 6 longrope { short_factor: [1, 1, 1] long_factor: [1, 2, 3] factor: 32 "
    "original_max_position_embeddings: 4096 sequence_length: 131072 }";

// Canonical specs -----------------------------------------------------------------

TEST(RopeSpecTest, DefaultsAreFilledIn) {
  const v1::RopeSpec rope = Canonical("head_dim: 128");
  EXPECT_EQ(rope.rotary_dim(), 128);
  EXPECT_EQ(rope.rope_theta(), 10000.0);
  EXPECT_EQ(rope.pairing(), v1::PAIRING_HALF);
  EXPECT_EQ(rope.arithmetic(), v1::ARITHMETIC_FLOAT32);
  EXPECT_EQ(Canonical("rotary_dim: 64").head_dim(), 64);
}

// hf-rope.md section 6, trap 1: int(100 * 0.29) is 28, int(192 * 0.334) is 64.
TEST(RopeSpecTest, PartialRotaryFactorTruncatesADoubleProduct) {
  EXPECT_EQ(Canonical("head_dim: 100 partial_rotary_factor: 0.29").rotary_dim(), 28);
  const v1::RopeSpec rope = Canonical("head_dim: 192 partial_rotary_factor: 0.334");
  EXPECT_EQ(rope.rotary_dim(), 64);
  EXPECT_FALSE(rope.has_partial_rotary_factor());
  EXPECT_EQ(Canonical("head_dim: 80 rotary_dim: 20 partial_rotary_factor: 0.25").rotary_dim(), 20);
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
  EXPECT_EQ(Canonical(kDeepSeekV3).yarn().attention_factor(), 1.0);
  EXPECT_EQ(Canonical(kGptOss).yarn().attention_factor(), 1.3465735902799727);
  EXPECT_EQ(Canonical(kQwenYarn).yarn().attention_factor(), 1.138629436111989);
  const auto factor = [](const std::string& fields) {
    return Canonical(absl::StrCat("head_dim: 64 yarn { original_max_position_embeddings: 4096 ",
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
  EXPECT_EQ(Canonical("head_dim: 64 yarn { factor: 8 attn_factor: 2 "
                      "original_max_position_embeddings: 4096 }")
                .yarn()
                .attention_factor(),
            2 * 1.2079441541679836);
}

// hf-rope.md section 2.5: strictly longer than the original context is long.
TEST(RopeSpecTest, LongRopeSwitchesListsBeyondTheOriginalContext) {
  const auto canonical = [](int64_t sequence_length) {
    return Canonical(
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
  EXPECT_EQ(Canonical(kLongRope).longrope().attention_factor(), 1.1902380714238083);
  const auto factor = [](const std::string& fields) {
    return Canonical(absl::StrCat("head_dim: 2 longrope { short_factor: 1 long_factor: 1 "
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
    return Canonical(absl::StrCat("head_dim: 64 dynamic { factor: 2 max_position_embeddings: 4096 ",
                                  fields, "}"))
        .dynamic()
        .sequence_length();
  };
  EXPECT_EQ(length(""), 4096);
  EXPECT_EQ(length("sequence_length: 1"), 4096);
  EXPECT_EQ(length("sequence_length: 4096"), 4096);
  EXPECT_EQ(length("sequence_length: 4097"), 4097);
}

TEST(RopeSpecTest, ExactArithmeticDoesNotTellWhereABaseWasRounded) {
  const std::string fields =
      "dynamic { factor: 2 max_position_embeddings: 64 growth: DYNAMIC_GROWTH_LINEAR_FLOAT64 }";
  EXPECT_EQ(Canonical(absl::StrCat("head_dim: 8 ", fields)).dynamic().growth(),
            v1::DYNAMIC_GROWTH_LINEAR_FLOAT64);
  EXPECT_EQ(Canonical(absl::StrCat("head_dim: 8 arithmetic: ARITHMETIC_EXACT ", fields))
                .dynamic()
                .growth(),
            v1::DYNAMIC_GROWTH_LINEAR);
}

TEST(RopeSpecTest, ProportionalCountsItsPairs) {
  EXPECT_EQ(Canonical(kGemma4).proportional().rotating_pairs(), 64);
  EXPECT_EQ(Canonical("head_dim: 64 proportional {}").proportional().rotating_pairs(), 32);
  EXPECT_EQ(Canonical("head_dim: 64 proportional { partial_rotary_factor: 0 }")
                .proportional()
                .rotating_pairs(),
            0);
}

TEST(RopeSpecTest, ExplicitFrequenciesSayHowWideTheTableIs) {
  const v1::RopeSpec rope = Canonical("frequencies { inv_freq: [1, 0.5, 0] }");
  EXPECT_EQ(rope.rotary_dim(), 6);
  EXPECT_EQ(rope.head_dim(), 6);
  EXPECT_FALSE(rope.has_rope_theta());
  EXPECT_EQ(rope.frequencies().attention_factor(), 1.0);
}

// Frequencies ---------------------------------------------------------------------

struct GoldenBits {
  size_t index;
  uint32_t bits;
};

void ExpectBits(const std::vector<float>& values, const std::vector<GoldenBits>& expected) {
  for (const GoldenBits& golden : expected) {
    EXPECT_EQ(std::bit_cast<uint32_t>(values.at(golden.index)), golden.bits) << golden.index;
  }
}

// hf-rope.md section 7: executed transformers, correctly rounded pow where torch's is not.
TEST(RopeFrequenciesTest, Float32IsTheFrameworksBitForBit) {
  ExpectBits(InvFreq32("head_dim: 128"), {{0, 0x3f800000}, {1, 0x3f5dafd7}, {63, 0x38f22ce2}});
  ExpectBits(InvFreq32("head_dim: 128 rope_theta: 1e6"), {{37, 0x39b229fa}, {63, 0x35a68e4c}});
  ExpectBits(InvFreq32(kLlama31), {{28, 0x3b527720},
                                   {29, 0x3b0dfd06},
                                   {32, 0x3a0995d2},
                                   {34, 0x393b2dd2},
                                   {35, 0x38c86886},
                                   {63, 0x34a4c2ff}});
  ExpectBits(
      InvFreq32(kDeepSeekV3),
      {{9, 0x3d99940d}, {10, 0x3d6655c2}, {11, 0x3d1fc5ba}, {23, 0x380bd471}, {31, 0x365fba4f}});
  ExpectBits(
      InvFreq32(kGptOss),
      {{7, 0x3d970764}, {9, 0x3d01ddd5}, {17, 0x390799b9}, {18, 0x3820adc6}, {31, 0x34a252d3}});
  ExpectBits(
      InvFreq32(kQwenYarn),
      {{22, 0x3c0de12d}, {24, 0x3bb02377}, {39, 0x38881d0a}, {40, 0x383a7753}, {63, 0x34a68e4c}});
  ExpectBits(InvFreq32("head_dim: 256 rope_theta: 1e6 linear { factor: 8 }"),
             {{0, 0x3e000000}, {1, 0x3de5ced3}, {127, 0x341583da}});
  ExpectBits(InvFreq32(kDynamic), {{1, 0x3f4abab6}, {2, 0x3f208b2f}, {63, 0x34de1310}});
  const std::vector<float> gemma4 = InvFreq32(kGemma4);
  ASSERT_EQ(gemma4.size(), 256u);
  ExpectBits(gemma4, {{1, 0x3f728cf8}, {2, 0x3f65ced3}, {62, 0x3d104a21}, {63, 0x3d08b588}});
  for (size_t i = 64; i < 256; ++i) EXPECT_EQ(gemma4[i], 0.0f);
}

// hf-rope.md section 7: theta 1e4, dim 96, short factors 1, long factors 1 + i.
TEST(RopeFrequenciesTest, LongRopeDividesByTheListInUse) {
  v1::EncodingSpec spec = Spec("rope { head_dim: 96 }");
  v1::LongRopeScaling* longrope = spec.mutable_rope()->mutable_longrope();
  longrope->set_factor(32);
  longrope->set_original_max_position_embeddings(4096);
  for (int i = 0; i < 48; ++i) {
    longrope->add_short_factor(1);
    longrope->add_long_factor(1 + i);
  }
  ExpectBits(RopeInvFreqFloat32(Canonicalize(spec)->proto().rope()),
             {{1, 0x3f534db0}, {47, 0x38fe1363}});
  longrope->set_sequence_length(4097);
  ExpectBits(RopeInvFreqFloat32(Canonicalize(spec)->proto().rope()),
             {{1, 0x3ed34db0}, {47, 0x36296242}});
}

// Qwen 1: alpha is 1 up to the context, 3 up to twice as long, 7 up to four times.
TEST(RopeFrequenciesTest, PowerOfTwoGrowthStepsWithTheLength) {
  const auto alpha = [](int64_t sequence_length) {
    return PowerOfTwoAlpha(
        Canonical(absl::StrCat("head_dim: 128 dynamic { max_position_embeddings: 8192 growth: "
                               "DYNAMIC_GROWTH_POWER_OF_TWO sequence_length: ",
                               sequence_length, "}"))
            .dynamic());
  };
  EXPECT_EQ(alpha(1), 1.0);
  EXPECT_EQ(alpha(8192), 1.0);
  EXPECT_EQ(alpha(8193), 3.0);
  EXPECT_EQ(alpha(16384), 3.0);
  EXPECT_EQ(alpha(16385), 7.0);
  EXPECT_EQ(alpha(32768), 7.0);
}

// hf-rope.md section 7.
TEST(RopeFrequenciesTest, DynamicBaseGrows) {
  EXPECT_NEAR(RopeBase(Canonical(kDynamic)), 3052773.67488067, 1e-7);
  EXPECT_EQ(RopeBase(Canonical("head_dim: 128 rope_theta: 1e6 dynamic { factor: 2 "
                               "max_position_embeddings: 32768 }")),
            1e6);
}

Real DefaultFrequency(double theta, int64_t dim, size_t i) {
  return Pow(Real(theta), -(Real::FromInt(2 * static_cast<int64_t>(i)) / Real::FromInt(dim)));
}

double WorstError(const std::vector<WideFloat>& got, const std::vector<Real>& expected) {
  EXPECT_EQ(got.size(), expected.size());
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, RelativeError(Real(got[i]), expected[i]));
  }
  return worst;
}

// What EXACT promises of a frequency, so that roundings of it are roundings of the formula.
constexpr double kExactFrequencyError = 0x1p-220;

TEST(RopeFrequenciesTest, ExactDefaultAndLinearAreTheRealNumbers) {
  std::vector<Real> plain;
  std::vector<Real> linear;
  for (size_t i = 0; i < 64; ++i) {
    plain.push_back(DefaultFrequency(5e5, 128, i));
    linear.push_back(plain.back() / Real(2.5));
  }
  EXPECT_THAT(WorstError(RopeInvFreqExact(Canonical("head_dim: 128 rope_theta: 500000")), plain),
              Le(kExactFrequencyError));
  EXPECT_THAT(WorstError(RopeInvFreqExact(
                             Canonical("head_dim: 128 rope_theta: 500000 linear { factor: 2.5 }")),
                         linear),
              Le(kExactFrequencyError));
}

// Peng et al. 2023, section 3.2, with the ramp over frequency indices.
TEST(RopeFrequenciesTest, ExactYarnIsTheRealNumber) {
  for (const bool truncate : {true, false}) {
    const Real two_pi = Real(2.0) * Real::Pi();
    const auto index = [&](double rotations) {
      return Real(64.0) * Log(Real(4096.0) / (Real(rotations) * two_pi)) /
             (Real(2.0) * Log(Real(1.5e5)));
    };
    Real low = index(32);
    Real high = index(1);
    if (truncate) {
      low = Real(std::floor(low.ToDouble()));
      high = Real(std::ceil(high.ToDouble()));
    }
    std::vector<Real> expected;
    for (size_t i = 0; i < 32; ++i) {
      Real ramp = (Real(static_cast<double>(i)) - low) / (high - low);
      if (ramp < Real(0.0)) ramp = Real(0.0);
      if (Real(1.0) < ramp) ramp = Real(1.0);
      const Real f = DefaultFrequency(1.5e5, 64, i);
      expected.push_back(f / Real(32.0) * ramp + f * (Real(1.0) - ramp));
    }
    const v1::RopeSpec rope = Canonical(absl::StrCat(
        "head_dim: 64 rope_theta: 150000 yarn { factor: 32 truncate: ", truncate ? "true" : "false",
        " original_max_position_embeddings: 4096 }"));
    EXPECT_THAT(WorstError(RopeInvFreqExact(rope), expected), Le(kExactFrequencyError));
  }
}

TEST(RopeFrequenciesTest, ExactLlama3IsTheRealNumber) {
  std::vector<Real> expected;
  for (size_t i = 0; i < 64; ++i) {
    const Real f = DefaultFrequency(5e5, 128, i);
    const Real rotations = Real(8192.0) * f / (Real(2.0) * Real::Pi());
    if (Real(4.0) < rotations) {
      expected.push_back(f);
    } else if (rotations < Real(1.0)) {
      expected.push_back(f / Real(8.0));
    } else {
      const Real smooth = (rotations - Real(1.0)) / Real(3.0);
      expected.push_back((Real(1.0) - smooth) * f / Real(8.0) + smooth * f);
    }
  }
  EXPECT_THAT(WorstError(RopeInvFreqExact(Canonical(kLlama31)), expected),
              Le(kExactFrequencyError));
}

TEST(RopeFrequenciesTest, ExactBaseChangesAreTheRealNumbers) {
  const auto expect_base = [](const std::string& rope, const Real& base, const Real& divisor) {
    std::vector<Real> expected;
    for (int64_t i = 0; i < 64; ++i) {
      expected.push_back(Pow(base, -(Real::FromInt(i) / Real(64.0))) / divisor);
    }
    EXPECT_THAT(WorstError(RopeInvFreqExact(Canonical(rope)), expected), Le(kExactFrequencyError))
        << rope;
  };
  const Real exponent = Real(128.0) / Real(126.0);
  expect_base(kDynamic, Real(1e6) * Pow(Real(3.0), exponent), Real(1.0));
  expect_base(
      "head_dim: 128 dynamic { max_position_embeddings: 8192 sequence_length: 8193 "
      "growth: DYNAMIC_GROWTH_POWER_OF_TWO }",
      Real(1e4) * Pow(Real(3.0), exponent), Real(1.0));
  expect_base("head_dim: 128 ntk { alpha: 1000 }", Real(1e4) * Pow(Real(1000.0), exponent),
              Real(1.0));
  expect_base("head_dim: 128 ntk { factor: 4 }", Real(4e4),
              Pow(Real(4.0), Real(2.0) / Real(128.0)));
}

TEST(RopeFrequenciesTest, ExactListsAndZerosAreTheRealNumbers) {
  EXPECT_THAT(WorstError(RopeInvFreqExact(Canonical(kLongRope)),
                         {DefaultFrequency(1e4, 6, 0), DefaultFrequency(1e4, 6, 1) / Real(2.0),
                          DefaultFrequency(1e4, 6, 2) / Real(3.0)}),
              Le(kExactFrequencyError));
  EXPECT_THAT(WorstError(RopeInvFreqExact(
                             Canonical("head_dim: 6 proportional { rotating_pairs: 2 factor: 8 }")),
                         {Real(0.125), DefaultFrequency(1e4, 6, 1) / Real(8.0), Real(0.0)}),
              Le(kExactFrequencyError));
  EXPECT_THAT(WorstError(RopeInvFreqExact(Canonical("frequencies { inv_freq: [0.1, 256, 0] }")),
                         {Real(0.1), Real(256.0), Real(0.0)}),
              Le(kExactFrequencyError));
  EXPECT_THAT(RopeInvFreqFloat32(Canonical("frequencies { inv_freq: [0.1, 256, 0] }")),
              ElementsAre(0.1f, 256.0f, 0.0f));
}

// Llama 4 checkpoints ship equal factors: two bands, nothing in between, no NaN.
TEST(RopeFrequenciesTest, Llama3WithEqualFactorsHasTwoBands) {
  const std::string rope =
      "head_dim: 128 rope_theta: 500000 llama3 { factor: 8 low_freq_factor: 1 high_freq_factor: 1 "
      "original_max_position_embeddings: 8192 }";
  const std::vector<float> plain = InvFreq32("head_dim: 128 rope_theta: 500000");
  const std::vector<float> scaled = InvFreq32(rope);
  const std::vector<WideFloat> exact = RopeInvFreqExact(Canonical(rope));
  int divided = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(scaled[i] == plain[i] || scaled[i] == plain[i] / 8) << i;
    EXPECT_NEAR(exact[i].ToDouble(), scaled[i], 1e-6 * scaled[i]) << i;
    divided += scaled[i] == plain[i] / 8 ? 1 : 0;
  }
  EXPECT_EQ(divided, 29);
  // Frequency 1 has the float32 wavelength 2π, and so has the edge here: kept.
  constexpr double kOnePerTurn = 0.15915494;
  ASSERT_EQ(static_cast<float>(1 / kOnePerTurn), 0x1.921fb6p2f);
  EXPECT_THAT(InvFreq32("head_dim: 2 llama3 { factor: 8 low_freq_factor: 0.15915494 "
                        "high_freq_factor: 0.15915494 original_max_position_embeddings: 1 }"),
              ElementsAre(1.0f));
}

// DeepSeek's and Qwen's own ramps have ends in order; one beyond the last index,
// or of no width, is pushed apart as the frameworks do.
TEST(RopeFrequenciesTest, YarnWithEqualBetasKeepsAStep) {
  const std::vector<float> inv_freq = InvFreq32(
      "head_dim: 64 yarn { factor: 4 beta_fast: 1 beta_slow: 1 truncate: false "
      "original_max_position_embeddings: 4096 }");
  const std::vector<float> plain = InvFreq32("head_dim: 64");
  for (size_t i = 0; i < plain.size(); ++i) {
    const float expected = i <= 22 ? plain[i] : plain[i] / 4;
    EXPECT_NEAR(inv_freq[i], expected, 1e-6 * expected) << i;
  }
}

// Every spec that Canonicalize accepts keeps the angle within what is proven.
TEST(RopeFrequenciesTest, ExtremeSpecsStayFiniteAndWithinTheAngleBound) {
  for (const std::string rope : {
           "head_dim: 64 rope_theta: 3.4e38",
           "head_dim: 65536 rope_theta: 3.4e38 linear { factor: 3.4e38 }",
           "head_dim: 64 rope_theta: 0.00390625",
           "head_dim: 4 rope_theta: 1 dynamic { factor: 65536 max_position_embeddings: 1 "
           "sequence_length: 2147483648 }",
           "head_dim: 64 rope_theta: 0.00390625 ntk { alpha: 1e38 }",
           "head_dim: 64 rope_theta: 3 ntk { factor: 5e37 }",
           "head_dim: 2 rope_theta: 3.4e38 longrope { short_factor: 0.00390625 long_factor: 1 "
           "original_max_position_embeddings: 1 attention_factor: 3.4e38 }",
           "head_dim: 64 rope_theta: 1 linear { factor: 0.00390625 }",
           "head_dim: 64 rope_theta: 3.4e38 yarn { factor: 3.4e38 "
           "original_max_position_embeddings: 2147483648 }",
           "head_dim: 64 rope_theta: 1.001 yarn { factor: 0.00390625 beta_fast: 3.4e38 beta_slow: "
           "1.2e-38 truncate: false original_max_position_embeddings: 1 }",
           "head_dim: 64 rope_theta: 3.4e38 llama3 { factor: 0.00390625 low_freq_factor: 1.2e-38 "
           "high_freq_factor: 3.4e38 original_max_position_embeddings: 2147483648 }",
           "head_dim: 64 rope_theta: 0.00390625 llama3 { factor: 3.4e38 low_freq_factor: 1 "
           "high_freq_factor: 1.0000152587890625 original_max_position_embeddings: 1 }",
       }) {
    SCOPED_TRACE(rope);
    const v1::RopeSpec canonical = Canonical(rope);
    for (const float f : RopeInvFreqFloat32(canonical)) {
      EXPECT_THAT(std::fabs(f) * 0x1p31, Le(kMaxAngle));
    }
    for (const WideFloat& f : RopeInvFreqExact(canonical)) {
      EXPECT_THAT(std::fabs(f.ToDouble()) * 0x1p31, Le(kMaxAngle));
    }
  }
}

// Tables --------------------------------------------------------------------------

constexpr char kSmall[] = "rope { head_dim: 12 rotary_dim: 10 arithmetic: ARITHMETIC_EXACT }";

TEST(RopeTableTest, TensorsHaveTheContractsNamesAndShapes) {
  const auto tensors = [](const char* layout) {
    std::vector<std::pair<std::string, std::vector<int64_t>>> result;
    const auto table = FillTable(Spec(kSmall), SelectRange(3, 10),
                                 Format(absl::StrCat("layout: LAYOUT_", layout)));
    EXPECT_TRUE(table.ok()) << table.status();
    for (const FilledTensor& filled : table->tensors) {
      EXPECT_EQ(filled.tensor.dtype, v1::DTYPE_F32);
      result.emplace_back(filled.tensor.name, filled.tensor.shape);
    }
    return result;
  };
  using Shape = std::vector<int64_t>;
  EXPECT_THAT(tensors("UNSPECIFIED"), ElementsAre(std::pair("cos_sin_cache", Shape{7, 10})));
  EXPECT_THAT(tensors("COS_SIN"), ElementsAre(std::pair("cos_sin_cache", Shape{7, 10})));
  EXPECT_THAT(tensors("COS_AND_SIN_HALF"), ElementsAre(std::pair("cos_cache", Shape{7, 5}),
                                                       std::pair("sin_cache", Shape{7, 5})));
  EXPECT_THAT(tensors("COS_AND_SIN_FULL"),
              ElementsAre(std::pair("cos", Shape{7, 10}), std::pair("sin", Shape{7, 10})));
  EXPECT_THAT(tensors("SIN_COS"), ElementsAre(std::pair("sin_cos_cache", Shape{7, 10})));
  EXPECT_THAT(tensors("ROTATION_MATRIX"),
              ElementsAre(std::pair("rotation_matrix", Shape{7, 5, 2, 2})));
  EXPECT_THAT(tensors("PAIRS"), ElementsAre(std::pair("freqs_cis", Shape{7, 5, 2})));
  EXPECT_THAT(tensors("INV_FREQ"), ElementsAre(std::pair("inv_freq", Shape{5})));
}

double ToDouble(double value) { return value; }
double ToDouble(F16 value) { return F16ToFloat(value.bits); }
double ToDouble(Bf16 value) { return Bf16ToFloat(value.bits); }

// A table by a function of (row, pair): the layouts say only where a value stands.
template <typename Element>
void ExpectLayouts(const std::string& dtype, v1::Pairing pairing, v1::Arithmetic arithmetic) {
  v1::EncodingSpec spec = Spec(kSmall);
  spec.mutable_rope()->set_pairing(pairing);
  spec.mutable_rope()->set_arithmetic(arithmetic);
  const auto table = [&](const char* layout) {
    return *FillTable(spec, SelectRange(100, 109),
                      Format(absl::StrCat("dtype: DTYPE_", dtype, " layout: LAYOUT_", layout)));
  };
  const std::vector<Element> cos_sin = table("COS_SIN").tensors[0].template As<Element>();
  const FilledTable half = table("COS_AND_SIN_HALF");
  const FilledTable full = table("COS_AND_SIN_FULL");
  const std::vector<Element> pairs = table("PAIRS").tensors[0].template As<Element>();
  const std::vector<Element> sin_cos = table("SIN_COS").tensors[0].template As<Element>();
  const std::vector<Element> matrices = table("ROTATION_MATRIX").tensors[0].template As<Element>();
  for (size_t row = 0; row < 9; ++row) {
    for (size_t i = 0; i < 5; ++i) {
      for (size_t part = 0; part < 2; ++part) {
        const Element value = cos_sin[row * 10 + part * 5 + i];
        EXPECT_EQ(half.tensors[part].template As<Element>()[row * 5 + i], value);
        EXPECT_EQ(pairs[row * 10 + 2 * i + part], value);
        EXPECT_EQ(sin_cos[row * 10 + (1 - part) * 5 + i], value);
        // [[cos, -sin], [sin, cos]]
        const Element* matrix = matrices.data() + (row * 5 + i) * 4;
        EXPECT_EQ(matrix[2 * part], value);
        EXPECT_EQ(ToDouble(matrix[1 + 2 * part]),
                  ToDouble(matrix[part == 0 ? 2 : 0]) * (part == 0 ? -1 : 1));
        const auto doubled = full.tensors[part].template As<Element>();
        const bool interleaved = pairing == v1::PAIRING_INTERLEAVED;
        EXPECT_EQ(doubled[row * 10 + (interleaved ? 2 * i : i)], value);
        EXPECT_EQ(doubled[row * 10 + (interleaved ? 2 * i + 1 : i + 5)], value);
      }
    }
  }
}

TEST(RopeTableTest, LayoutsArePermutationsOfOneAnother) {
  for (const v1::Pairing pairing : {v1::PAIRING_HALF, v1::PAIRING_INTERLEAVED}) {
    for (const v1::Arithmetic arithmetic : {v1::ARITHMETIC_FLOAT32, v1::ARITHMETIC_EXACT}) {
      ExpectLayouts<float>("F32", pairing, arithmetic);
      ExpectLayouts<double>("F64", pairing, arithmetic);
      ExpectLayouts<F16>("F16", pairing, arithmetic);
      ExpectLayouts<Bf16>("BF16", pairing, arithmetic);
    }
  }
}

TEST(RopeTableTest, AnySelectionIsTheConcatenationOfItsRows) {
  const std::vector<int64_t> ids = {5, 6, 7, 7, 3, 131071, 0, 2147483647, 64, 65};
  for (const char* layout :
       {"COS_SIN", "SIN_COS", "COS_AND_SIN_HALF", "COS_AND_SIN_FULL", "PAIRS", "ROTATION_MATRIX"}) {
    for (const char* dtype : {"F32", "F64", "F16", "BF16"}) {
      for (const char* spec : {kSmall, "rope { head_dim: 10 pairing: PAIRING_INTERLEAVED }"}) {
        const v1::TensorFormat format =
            Format(absl::StrCat("dtype: DTYPE_", dtype, " layout: LAYOUT_", layout));
        const FilledTable all = *FillTable(Spec(spec), SelectIds(ids), format);
        std::vector<std::vector<std::byte>> rows(all.tensors.size());
        for (const int64_t id : ids) {
          const FilledTable one = *FillTable(Spec(spec), SelectRange(id, id + 1), format);
          for (size_t t = 0; t < rows.size(); ++t) {
            rows[t].insert(rows[t].end(), one.tensors[t].bytes.begin(), one.tensors[t].bytes.end());
          }
        }
        for (size_t t = 0; t < rows.size(); ++t) EXPECT_EQ(all.tensors[t].bytes, rows[t]) << layout;
        ExpectPartsEqualWhole(Spec(spec), SelectRange(60, 140), format, 7);
        ExpectPartsEqualWhole(Spec(spec), SelectIds(ids), format, 3);
      }
    }
  }
}

TEST(RopeTableTest, EmptySelectionsAreValid) {
  EXPECT_TRUE(FillOne(kSmall, SelectRange(5, 5)).bytes.empty());
  EXPECT_TRUE(FillOne(kSmall, SelectIds({})).bytes.empty());
}

TEST(RopeTableTest, FrequenciesNeedNoSelectionAndDoNotDependOnOne) {
  const std::string format = "layout: LAYOUT_INV_FREQ dtype: DTYPE_F64";
  const FilledTensor alone = FillOne(kSmall, v1::Selection(), format);
  EXPECT_EQ(alone.bytes, FillOne(kSmall, SelectRange(0, 9), format).bytes);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(alone.As<double>()[i], DefaultFrequency(1e4, 10, i).ToDouble());
  }
  ExpectPartsEqualWhole(Spec(kSmall), v1::Selection(), Format(format), 2);
  EXPECT_EQ(TableRefusal(kSmall, SelectRange(9, 3), format),
            "selection.position_range.end: must be at least begin (9), got 3");
}

TEST(RopeTableTest, DescriptionListsTheFrequencies) {
  const FilledTable table = *FillTable(Spec("rope { head_dim: 4 }"), SelectRange(0, 1), Format(""));
  EXPECT_THAT(table.description.inv_freq(), ElementsAre(1.0, 0.01f));
}

// The numbers of the founding text ------------------------------------------------

// A pair that turns by 10 degrees a position: rotary_dim 2 has the frequency 1,
// and linear scaling by 18/pi makes it pi/18.
constexpr char kTenDegrees[] =
    "rope { head_dim: 2 arithmetic: ARITHMETIC_EXACT linear { factor: 5.729577951308232 } }";

struct Vector2 {
  double x;
  double y;
};

Vector2 Rotate(Vector2 v, double cos, double sin) {
  return {v.x * cos - v.y * sin, v.x * sin + v.y * cos};
}

TEST(RopeTableTest, ScoresOfTenDegreesAStepDependOnTheDistanceOnly) {
  const std::vector<double> rows =
      FillOne(kTenDegrees, SelectRange(0, 9), "layout: LAYOUT_PAIRS dtype: DTYPE_F64").As<double>();
  const auto rotated = [&](size_t position) {
    return Rotate({1, 0}, rows[2 * position], rows[2 * position + 1]);
  };
  const double cos20 = Cos(Real::Pi() / Real(9.0)).ToDouble();
  for (const auto& [query, key] : {std::pair<size_t, size_t>{3, 5}, {6, 8}}) {
    const Vector2 q = rotated(query);
    const Vector2 k = rotated(key);
    EXPECT_NEAR(q.x * k.x + q.y * k.y, cos20, 4e-16);
  }
  EXPECT_NEAR(rotated(3).x, std::sqrt(3.0) / 2, 2e-16);
  EXPECT_NEAR(rotated(3).y, 0.5, 2e-16);
}

// cos and sin are within half an ulp, so two rotations and one differ by a few.
constexpr double kComposition = 4 * 0x1p-53;

TEST(RopeTableTest, RotatingByPThenQIsRotatingByPPlusQ) {
  const std::string spec = "rope { head_dim: 64 rope_theta: 5e5 arithmetic: ARITHMETIC_EXACT }";
  const std::string format = "layout: LAYOUT_PAIRS dtype: DTYPE_F64";
  for (const auto& [p, q] : {std::pair<int64_t, int64_t>{0, 0},
                             {1, 1},
                             {1000, 24},
                             {131071, 1},
                             {999999937, 1147483710}}) {
    const std::vector<double> rows = FillOne(spec, SelectIds({p, q, p + q}), format).As<double>();
    for (size_t i = 0; i < 32; ++i) {
      const Vector2 both =
          Rotate({rows[2 * i], rows[2 * i + 1]}, rows[64 + 2 * i], rows[65 + 2 * i]);
      EXPECT_NEAR(both.x, rows[128 + 2 * i], kComposition) << p << " + " << q << ", pair " << i;
      EXPECT_NEAR(both.y, rows[129 + 2 * i], kComposition) << p << " + " << q << ", pair " << i;
    }
  }
}

}  // namespace
}  // namespace posenc::testing
