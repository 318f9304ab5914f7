// Faults of RoPE tables that somebody reported in public, each with its right value: a test
// named after what went wrong. Ids are those of reference/known-bugs.md; what a config means is
// in model_config_bugs_test.cc.
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/families/rope_frequencies.h"
#include "lib/families/rope_scaling.h"
#include "lib/numeric/dtype.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"
#include "tests/unit/rope_specs.h"

namespace posenc::testing {
namespace {

using ::testing::HasSubstr;

std::vector<float> Frequencies(const std::string& rope) {
  return RopeInvFreqFloat32(CanonicalRope(rope));
}

// By how much the scaling divides each frequency.
std::vector<double> Divisors(const std::string& rope, const std::string& scaling) {
  const std::vector<float> plain = Frequencies(rope);
  const std::vector<float> scaled = Frequencies(absl::StrCat(rope, " ", scaling));
  std::vector<double> divisors;
  for (size_t i = 0; i < plain.size(); ++i) {
    divisors.push_back(static_cast<double>(plain[i]) / static_cast<double>(scaled[i]));
  }
  return divisors;
}

std::vector<float> Rows(const std::string& rope, const std::vector<int64_t>& ids,
                        const std::string& format = "") {
  return FillOne(absl::StrCat("rope { ", rope, " }"), SelectIds(ids), format).As<float>();
}

// llama3 ----------------------------------------------------------------------------------

constexpr char kLlama32[] =
    "llama3 { factor: 32 low_freq_factor: 1 high_freq_factor: 4 original_max_position_embeddings: "
    "8192 }";

TEST(RopeKnownBugsTest, B39_B41_TheLlama3ScalingWasMissing) {
  const std::vector<double> small = Divisors("head_dim: 64 rope_theta: 500000", kLlama32);
  for (size_t i = 0; i < 32; ++i) {
    const bool kept = i <= 14;
    const bool divided = i >= 18;
    EXPECT_EQ(small[i] == 1, kept) << i;
    EXPECT_EQ(small[i] == 32, divided) << i;
    EXPECT_TRUE(small[i] >= 1 && small[i] <= 32) << i;
  }
  const std::vector<double> large =
      Divisors("head_dim: 128 rope_theta: 500000",
               "llama3 { factor: 8 low_freq_factor: 1 high_freq_factor: 4 "
               "original_max_position_embeddings: 8192 }");
  EXPECT_EQ(large[28], 1);
  EXPECT_TRUE(large[29] > 1 && large[34] < 8);
  for (size_t i = 35; i < 64; ++i) EXPECT_EQ(large[i], 8) << i;
}

// hf-rope section 7, llama3.2-1B.
TEST(RopeKnownBugsTest, B40_TheSmoothingWasWrittenWithWavelengths) {
  const std::vector<float> frequencies =
      Frequencies(absl::StrCat("head_dim: 64 rope_theta: 500000 ", kLlama32));
  EXPECT_EQ(std::bit_cast<uint32_t>(frequencies[15]), 0x3aa9279bU);
  EXPECT_EQ(std::bit_cast<uint32_t>(frequencies[16]), 0x39e13620U);
  EXPECT_EQ(std::bit_cast<uint32_t>(frequencies[17]), 0x38cb98f7U);
}

TEST(RopeKnownBugsTest, B37_TheFactorOfAnotherModelDivided) {
  const std::vector<double> by_32 = Divisors("head_dim: 64 rope_theta: 500000", kLlama32);
  const std::vector<double> by_8 =
      Divisors("head_dim: 64 rope_theta: 500000",
               "llama3 { factor: 8 low_freq_factor: 1 high_freq_factor: 4 "
               "original_max_position_embeddings: 8192 }");
  for (size_t i = 18; i < 32; ++i) EXPECT_EQ(by_32[i] / by_8[i], 4) << i;
}

// Dynamic and fixed NTK ---------------------------------------------------------------------

std::string Dynamic(int64_t length) {
  return absl::StrCat(
      "head_dim: 128 dynamic { factor: 2 max_position_embeddings: 2048 "
      "sequence_length: ",
      length, " }");
}

TEST(RopeKnownBugsTest, B43_TheTableOfAShortInputDependedOnEarlierInputs) {
  const std::vector<float> fresh = Frequencies(Dynamic(10));
  EXPECT_NE(Frequencies(Dynamic(4096)), fresh);
  EXPECT_EQ(Frequencies(Dynamic(10)), fresh);
  EXPECT_EQ(fresh, Frequencies("head_dim: 128"));
}

TEST(RopeKnownBugsTest, B44_TablesOfTwoLengthsWereMixed) {
  EXPECT_EQ(Frequencies(Dynamic(2047)), Frequencies(Dynamic(2048)));
  EXPECT_NE(Frequencies(Dynamic(2048)), Frequencies(Dynamic(2049)));
  EXPECT_EQ(CanonicalRope(Dynamic(2049)).dynamic().sequence_length(), 2049) << "the spec says";
}

TEST(RopeKnownBugsTest, B45_B47_TheGrownBaseWasAConstantOrGrewBelowTheLimit) {
  EXPECT_EQ(RopeBase(CanonicalRope(Dynamic(2000))), 10000);
  EXPECT_EQ(RopeBase(CanonicalRope(Dynamic(2048))), 10000);
  EXPECT_NEAR(RopeBase(CanonicalRope(Dynamic(2049))), 10009.9207, 1e-4);
  EXPECT_NEAR(RopeBase(CanonicalRope(Dynamic(4096))), 30527.7367, 1e-4);
}

TEST(RopeKnownBugsTest, B48_B49_AFixedChangeOfBaseWasNotPossible) {
  EXPECT_NEAR(RopeBase(CanonicalRope("head_dim: 128 ntk { alpha: 8 }")),
              10000 * std::pow(8.0, 128.0 / 126.0), 1e-6);
  EXPECT_NEAR(RopeBase(CanonicalRope("head_dim: 128 ntk { alpha: 1000 }")), 11158839.925, 1e-3);
}

TEST(RopeKnownBugsTest, B51_DynamicScaledPositionsByTwo) {
  EXPECT_NEAR(RopeBase(CanonicalRope("head_dim: 128 rope_theta: 5e7 dynamic { factor: 6 "
                                     "max_position_embeddings: 32768 sequence_length: 65536 }")),
              3.6098e8, 1e4);
}

// YaRN --------------------------------------------------------------------------------------

std::string Yarn(int64_t original, const std::string& more = "factor: 4") {
  return absl::StrCat("yarn { original_max_position_embeddings: ", original, " ", more, " }");
}

TEST(RopeKnownBugsTest, B53_TheRampWasClampedAtHalfTheWidth) {
  // The ramp's end is 70 of a d/2 of 64: no pair is divided by the whole factor.
  const std::vector<double> divisors = Divisors("head_dim: 128", Yarn(131072));
  EXPECT_LT(divisors[63], 3.5);
  EXPECT_GT(divisors[63], 1.5);
}

TEST(RopeKnownBugsTest, B56_B57_TheRampStoodElsewhere) {
  const std::string model = "head_dim: 128 rope_theta: 1000000";
  // 23.5959 and 39.6509, rounded outwards: the ends are exact.
  const std::vector<double> divisors = Divisors(model, Yarn(32768));
  EXPECT_EQ(divisors[23], 1);
  EXPECT_GT(divisors[24], 1);
  EXPECT_LT(divisors[39], 4);
  EXPECT_EQ(divisors[40], 4);
  // 46.07 for an original length that no 16 bits hold.
  const std::vector<double> longer = Divisors(model, Yarn(131072));
  EXPECT_LT(longer[46], 4);
  EXPECT_EQ(longer[47], 4);
}

TEST(RopeKnownBugsTest, B52_TruncateFalseWasNotHonoured) {
  // Between 8.09 and 17.40: pair 8 is not touched, 9 is (hf-rope section 7).
  const std::vector<float> frequencies = Frequencies(kGptOss);
  EXPECT_EQ(std::bit_cast<uint32_t>(frequencies[8]), 0x3d502194U);
  EXPECT_EQ(std::bit_cast<uint32_t>(frequencies[9]), 0x3d01ddd5U);
}

TEST(RopeKnownBugsTest, B63_B68_EqualMscalesCancelInTheTable) {
  EXPECT_EQ(RopeAttentionFactor(CanonicalRope(kDeepSeekV3)), 1);
  EXPECT_EQ(RopeAttentionFactor(CanonicalRope(absl::StrCat(
                "head_dim: 64 ", Yarn(4096, "factor: 40 mscale: 0.707 mscale_all_dim: 0.707")))),
            1);
}

// LongRoPE ------------------------------------------------------------------------------------

std::string Phi(int64_t length) {
  return absl::StrCat("head_dim: 4 longrope { short_factor: [1, 1] long_factor: [1, 16] ",
                      "original_max_position_embeddings: 4096 attention_factor: 1 ",
                      "sequence_length: ", length, " }");
}

TEST(RopeKnownBugsTest, B71_B72_TheListSwitchedInsideASequence) {
  // Rows on both sides of the original length, all by the long list.
  const std::vector<float> by_long = Frequencies(Phi(4200));
  const auto rows = Rows(Phi(4200), {1, 4095, 4096, 4199});
  const std::vector<int64_t> positions = {1, 4095, 4096, 4199};
  for (size_t row = 0; row < positions.size(); ++row) {
    const float angle = static_cast<float>(positions[row]) * by_long[1];
    EXPECT_EQ(rows[row * 4 + 1], Cos(Real(static_cast<double>(angle))).ToFloat());
  }
}

TEST(RopeKnownBugsTest, B73_B76_TheSwitchWasOffByOneOrByTheOffset) {
  EXPECT_EQ(Frequencies(Phi(4096)), Frequencies("head_dim: 4"));
  EXPECT_NE(Frequencies(Phi(4097)), Frequencies("head_dim: 4"));
  // A first prompt of 5000 is a long one, whatever its offset.
  EXPECT_EQ(Frequencies(Phi(5000)), Frequencies(Phi(4097)));
}

// Pairs -----------------------------------------------------------------------------------------

TEST(RopeKnownBugsTest, B80_ZeroFrequenciesWereTakenForAPartOfTheHead) {
  const auto proportional = FillOne(
      "rope { head_dim: 128 proportional { partial_rotary_factor: 0.25 } }", SelectRange(5, 6));
  const auto partial =
      FillOne("rope { head_dim: 128 partial_rotary_factor: 0.25 }", SelectRange(5, 6));
  EXPECT_EQ(proportional.tensor.shape, (std::vector<int64_t>{1, 128}));
  EXPECT_EQ(partial.tensor.shape, (std::vector<int64_t>{1, 32}));
  // 16 pairs turn in both; in the first they are (i, i + 64), and the others stand still.
  const auto values = proportional.As<float>();
  for (size_t i = 16; i < 64; ++i) {
    EXPECT_EQ(values[i], 1);
    EXPECT_EQ(values[64 + i], 0);
  }
}

TEST(RopeKnownBugsTest, B83_HalfWeightsRanWithPairedColumns) {
  const auto cos = [](const char* pairing) {
    return FillTable(Spec(absl::StrCat("rope { head_dim: 4 pairing: ", pairing, " }")),
                     SelectRange(3, 4), Format("layout: LAYOUT_COS_AND_SIN_FULL"))
        ->tensors[0]
        .As<float>();
  };
  const std::vector<float> half = cos("PAIRING_HALF");
  const std::vector<float> interleaved = cos("PAIRING_INTERLEAVED");
  EXPECT_EQ(half, (std::vector<float>{half[0], half[1], half[0], half[1]}));
  EXPECT_EQ(interleaved, (std::vector<float>{half[0], half[0], half[1], half[1]}));
}

// Rows and selections ---------------------------------------------------------------------------

TEST(RopeKnownBugsTest, B32_B92_RowsPastAFixedTableWereReadOrClamped) {
  // Any row is what its position says: 4096, and 9 past a table of 8.
  const std::vector<float> frequencies = Frequencies("head_dim: 4");
  const auto rows = Rows("head_dim: 4", {4096, 9});
  for (size_t row = 0; row < 2; ++row) {
    const float position = row == 0 ? 4096.0f : 9.0f;
    for (size_t i = 0; i < 2; ++i) {
      const Real angle(static_cast<double>(position * frequencies[i]));
      EXPECT_EQ(rows[row * 4 + i], Cos(angle).ToFloat());
      EXPECT_EQ(rows[row * 4 + 2 + i], Sin(angle).ToFloat());
    }
  }
}

TEST(RopeKnownBugsTest, B35_APositionOutOfRangeGaveStaleOutput) {
  EXPECT_EQ(TableRefusal("rope { head_dim: 4 }", SelectIds({3, -1})),
            "selection.position_ids.ids[1]: must be in [0, 2147483647], got -1");
  EXPECT_THAT(TableRefusal("rope { head_dim: 4 }", SelectIds({0, 1, int64_t{1} << 31})),
              HasSubstr("ids[2]"));
}

TEST(RopeKnownBugsTest, B104_AFloatRangeDroppedARowAtTwoToThe24) {
  for (const char* arithmetic : {"ARITHMETIC_FLOAT32", "ARITHMETIC_EXACT"}) {
    const FilledTensor tensor =
        FillOne(absl::StrCat("rope { head_dim: 4 arithmetic: ", arithmetic, " }"),
                SelectRange(16776705, 16776705 + 512));
    EXPECT_EQ(tensor.tensor.shape[0], 512);
    EXPECT_EQ(tensor.bytes.size(), 512 * 4 * sizeof(float));
  }
}

// Precision ---------------------------------------------------------------------------------------

TEST(RopeKnownBugsTest, B95_B96_B97_B99_TheTableWasMadeInSixteenBits) {
  // float16 rows are float32 rows, rounded last: angle 1044.27 does not become 1045, and
  // positions past 2048 and 65520 are told apart.
  for (const int64_t position : {1857, 2048, 2049, 4097, 32769, 65520}) {
    const std::vector<float> exact = Rows("head_dim: 32", {position});
    const auto f16 =
        FillOne("rope { head_dim: 32 }", SelectIds({position}), "dtype: DTYPE_F16").As<F16>();
    const auto bf16 =
        FillOne("rope { head_dim: 32 }", SelectIds({position}), "dtype: DTYPE_BF16").As<Bf16>();
    for (size_t i = 0; i < exact.size(); ++i) {
      EXPECT_EQ(f16[i].bits, RoundToF16(exact[i])) << position << " " << i;
      EXPECT_EQ(bf16[i].bits, RoundToBf16(exact[i])) << position << " " << i;
    }
  }
  EXPECT_NE(Rows("head_dim: 32", {2048}), Rows("head_dim: 32", {2049}));
  EXPECT_NEAR(Rows("head_dim: 32", {1857})[1], std::cos(1044.2678), 1e-3);
}

TEST(RopeKnownBugsTest, B100_PositionsWereRoundedToBfloat16) {
  EXPECT_NEAR(Rows("head_dim: 4", {15962})[0], -0.90802, 1e-5);
  EXPECT_NEAR(Rows("head_dim: 4", {15936})[0], -0.26795, 1e-5);
}

TEST(RopeKnownBugsTest, B101_TheSineWasWrongBeyondItsRange) {
  for (const int64_t position : {48039, 131071, 10000019, 2147483647}) {
    const auto row = Rows("head_dim: 4 arithmetic: ARITHMETIC_EXACT", {position});
    EXPECT_EQ(row[0], Cos(Real::FromInt(position)).ToFloat());
    EXPECT_EQ(row[2], Sin(Real::FromInt(position)).ToFloat());
  }
}

// Buffers that were never filled
// -------------------------------------------------------------------

TEST(RopeKnownBugsTest, B108_B109_B111_B112_FrequenciesWereUninitialisedMemory) {
  for (const char* rope :
       {"head_dim: 64", "head_dim: 128 rope_theta: 500000", "head_dim: 2", kGemma4}) {
    const std::vector<float> frequencies = Frequencies(rope);
    EXPECT_EQ(frequencies[0], 1.0f) << "the first of every unscaled RoPE";
    for (size_t i = 1; i < frequencies.size(); ++i) {
      EXPECT_TRUE(std::isfinite(frequencies[i]));
      EXPECT_GE(frequencies[i], 0.0f);
      EXPECT_LE(frequencies[i], frequencies[i - 1]);
    }
  }
  const std::vector<float> frequencies = Frequencies("head_dim: 64");
  const std::vector<double> expected = {1.0, 0.749894, 0.562341, 0.421697, 0.316228};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(frequencies[i]), expected[i], 5e-7);
  }
  EXPECT_THAT(SpecRefusal("rope { frequencies { inv_freq: [nan, 0.5] } }"),
              HasSubstr("rope.frequencies.inv_freq[0]"));
}

}  // namespace
}  // namespace posenc::testing
