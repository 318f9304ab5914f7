// Inverse frequencies of each rope_type: FLOAT32 bit for bit as the frameworks have
// them, EXACT against the papers' formulas in MPFR.
#include "lib/families/rope_frequencies.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/numeric/rotation.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"
#include "tests/unit/rope_specs.h"

namespace posenc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Le;

std::vector<float> InvFreq32(const std::string& rope) {
  return RopeInvFreqFloat32(CanonicalRope(rope));
}

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
        CanonicalRope(absl::StrCat("head_dim: 128 dynamic { max_position_embeddings: 8192 growth: "
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
  EXPECT_NEAR(RopeBase(CanonicalRope(kDynamic)), 3052773.67488067, 1e-7);
  EXPECT_EQ(RopeBase(CanonicalRope("head_dim: 128 rope_theta: 1e6 dynamic { factor: 2 "
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
  EXPECT_THAT(
      WorstError(RopeInvFreqExact(CanonicalRope("head_dim: 128 rope_theta: 500000")), plain),
      Le(kExactFrequencyError));
  EXPECT_THAT(WorstError(RopeInvFreqExact(CanonicalRope(
                             "head_dim: 128 rope_theta: 500000 linear { factor: 2.5 }")),
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
    const v1::RopeSpec rope = CanonicalRope(absl::StrCat(
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
  EXPECT_THAT(WorstError(RopeInvFreqExact(CanonicalRope(kLlama31)), expected),
              Le(kExactFrequencyError));
}

TEST(RopeFrequenciesTest, ExactBaseChangesAreTheRealNumbers) {
  const auto expect_base = [](const std::string& rope, const Real& base, const Real& divisor) {
    std::vector<Real> expected;
    for (int64_t i = 0; i < 64; ++i) {
      expected.push_back(Pow(base, -(Real::FromInt(i) / Real(64.0))) / divisor);
    }
    EXPECT_THAT(WorstError(RopeInvFreqExact(CanonicalRope(rope)), expected),
                Le(kExactFrequencyError))
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
  EXPECT_THAT(WorstError(RopeInvFreqExact(CanonicalRope(kLongRope)),
                         {DefaultFrequency(1e4, 6, 0), DefaultFrequency(1e4, 6, 1) / Real(2.0),
                          DefaultFrequency(1e4, 6, 2) / Real(3.0)}),
              Le(kExactFrequencyError));
  EXPECT_THAT(WorstError(RopeInvFreqExact(CanonicalRope(
                             "head_dim: 6 proportional { rotating_pairs: 2 factor: 8 }")),
                         {Real(0.125), DefaultFrequency(1e4, 6, 1) / Real(8.0), Real(0.0)}),
              Le(kExactFrequencyError));
  EXPECT_THAT(WorstError(RopeInvFreqExact(CanonicalRope("frequencies { inv_freq: [0.1, 256, 0] }")),
                         {Real(0.1), Real(256.0), Real(0.0)}),
              Le(kExactFrequencyError));
  EXPECT_THAT(RopeInvFreqFloat32(CanonicalRope("frequencies { inv_freq: [0.1, 256, 0] }")),
              ElementsAre(0.1f, 256.0f, 0.0f));
}

// Llama 4 checkpoints ship equal factors: two bands, nothing in between, no NaN.
TEST(RopeFrequenciesTest, Llama3WithEqualFactorsHasTwoBands) {
  const std::string rope =
      "head_dim: 128 rope_theta: 500000 llama3 { factor: 8 low_freq_factor: 1 high_freq_factor: 1 "
      "original_max_position_embeddings: 8192 }";
  const std::vector<float> plain = InvFreq32("head_dim: 128 rope_theta: 500000");
  const std::vector<float> scaled = InvFreq32(rope);
  const std::vector<WideFloat> exact = RopeInvFreqExact(CanonicalRope(rope));
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

// Configs with the two betas swapped are in use, and transformers computes them: the ramp runs from
// the pair whose wavelength fits once (22) back to that which fits 32 times (10).
TEST(RopeFrequenciesTest, YarnWithSwappedBetasTurnsTheRampRound) {
  const std::string rope =
      "head_dim: 64 yarn { factor: 4 beta_fast: 1 beta_slow: 32 "
      "original_max_position_embeddings: 4096 }";
  const std::vector<float> scaled = InvFreq32(rope);
  const std::vector<WideFloat> exact = RopeInvFreqExact(CanonicalRope(rope));
  for (int i = 0; i < 32; ++i) {
    const auto index = static_cast<size_t>(i);
    const double plain = std::pow(10000.0, -i / 32.0);
    const double ramp = std::clamp((i - 22) / (11.0 - 22), 0.0, 1.0);
    const double expected = plain / 4 * ramp + plain * (1 - ramp);
    EXPECT_NEAR(scaled[index], expected, 1e-6 * expected) << i;
    EXPECT_NEAR(exact[index].ToDouble(), expected, 1e-12 * expected) << i;
  }
}

// reference/hf-rope.md, section 2.4, step by step, for a base whose logarithm is as small as
// may be: the ends of the ramp lie far outside the frequencies, before them (all are divided) or
// on both sides.
TEST(RopeFrequenciesTest, YarnOfABaseJustAboveOne) {
  constexpr int kPairs = 32;
  constexpr float kFactor = 4;
  for (const double theta : {1 + 0x1p-20, 1.001, 1.5}) {
    for (const double original : {128.0, 4096.0}) {
      const auto correction = [&](double rotations) {
        const double turns = original / (rotations * 2 * Real::Pi().ToDouble());
        return 2 * kPairs * Log(Real(turns)).ToDouble() / (2 * Log(Real(theta)).ToDouble());
      };
      const double low = std::max(std::floor(correction(32)), 0.0);
      double high = std::min(std::ceil(correction(1)), 2 * kPairs - 1.0);
      if (low == high) high += 0.001;
      const std::vector<float> frequencies = RopeInvFreqFloat32(CanonicalRope(absl::StrFormat(
          "head_dim: 64 rope_theta: %.20g yarn { factor: 4 original_max_position_embeddings: %g }",
          theta, original)));
      for (int i = 0; i < kPairs; ++i) {
        const float exponent = static_cast<float>(2 * i) / (2 * kPairs);
        const float power = Pow(Real(static_cast<float>(theta)), Real(exponent)).ToFloat();
        const float ramp = std::clamp(
            (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low),
            0.0f, 1.0f);
        const float kept = 1 - ramp;
        EXPECT_EQ(frequencies[static_cast<size_t>(i)],
                  1 / (kFactor * power) * (1 - kept) + 1 / power * kept)
            << theta << " " << original << " " << i;
      }
    }
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
    const v1::RopeSpec canonical = CanonicalRope(rope);
    for (const float f : RopeInvFreqFloat32(canonical)) {
      EXPECT_THAT(std::fabs(f) * 0x1p31, Le(kMaxAngle));
    }
    for (const WideFloat& f : RopeInvFreqExact(canonical)) {
      EXPECT_THAT(std::fabs(f.ToDouble()) * 0x1p31, Le(kMaxAngle));
    }
  }
}

}  // namespace
}  // namespace posenc::testing
