// Tables that some codes build in another way than by one list of frequencies and a product
// with the position. Sources: vLLM's phi3_long_rope_scaled_rope and ntk_scaling_rope, SGLang's
// the same (serving-stacks 1.4, 2.1); MiniCPM's own modeling code and old linear scaling
// (hf-rope 5.3).
#include "lib/families/rope_rows.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/families/rope_frequencies.h"
#include "lib/numeric/dtype.h"
#include "lib/numeric/elementary.h"
#include "tests/support/reference.h"
#include "tests/support/tables.h"
#include "tests/unit/rope_specs.h"

namespace posenc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Le;

// LongRoPE of 3 frequencies that was trained for 5 positions.
std::string LongRope(const std::string& options, const std::string& rope = "") {
  return absl::StrCat("rope { head_dim: 6 ", rope,
                      " longrope { short_factor: [1, 1.5, 2] long_factor: [1, 2.5, 7] ",
                      "original_max_position_embeddings: 5 factor: 4 ", options, " } }");
}

std::vector<std::byte> Joined(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  std::vector<std::byte> all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

// Short then long -----------------------------------------------------------------------

// vLLM concatenates the short list's rows of the training length and the long list's rows.
TEST(RopeRowsTest, ShortThenLongIsTheTwoTablesOneAfterTheOther) {
  for (const char* arithmetic : {"", "arithmetic: ARITHMETIC_EXACT"}) {
    for (const char* layout :
         {"COS_SIN", "COS_AND_SIN_HALF", "COS_AND_SIN_FULL", "PAIRS", "PAIRS_FULL", "SIN_COS",
          "ROTATION_MATRIX", "COS_AND_SIN_REPEATED"}) {
      for (const char* dtype : {"F32", "F64", "F16", "BF16"}) {
        const auto format =
            Format(absl::StrCat("layout: LAYOUT_", layout, " dtype: DTYPE_", dtype));
        const auto both = *FillTable(Spec(LongRope("short_then_long: true", arithmetic)),
                                     SelectRange(0, 25), format);
        const auto of_short =
            *FillTable(Spec(LongRope("sequence_length: 5", arithmetic)), SelectRange(0, 5), format);
        const auto of_long = *FillTable(Spec(LongRope("sequence_length: 20", arithmetic)),
                                        SelectRange(0, 20), format);
        for (size_t t = 0; t < both.tensors.size(); ++t) {
          EXPECT_EQ(both.tensors[t].bytes,
                    Joined(of_short.tensors[t].bytes, of_long.tensors[t].bytes))
              << layout << dtype;
        }
      }
    }
  }
}

TEST(RopeRowsTest, AnySelectionOfShortThenLongIsTheConcatenationOfItsRows) {
  const v1::EncodingSpec spec = Spec(LongRope("short_then_long: true"));
  const std::vector<int64_t> ids = {3, 4, 5, 6, 7, 4, 2147483647, 0};
  const FilledTable all = *FillTable(spec, SelectIds(ids), v1::TensorFormat());
  std::vector<std::byte> rows;
  for (const int64_t id : ids) {
    rows = Joined(rows,
                  FillTable(spec, SelectRange(id, id + 1), v1::TensorFormat())->tensors[0].bytes);
  }
  EXPECT_EQ(all.tensors[0].bytes, rows);
  ExpectPartsEqualWhole(spec, SelectRange(2, 11), v1::TensorFormat(), 2);
}

TEST(RopeRowsTest, ShortThenLongDescribesBothLists) {
  const FilledTensor tensor =
      FillOne(LongRope("short_then_long: true"), v1::Selection(), "layout: LAYOUT_INV_FREQ");
  EXPECT_THAT(tensor.tensor.shape, ElementsAre(2, 3));
  std::vector<float> expected =
      RopeInvFreqFloat32(Canonicalize(Spec(LongRope("sequence_length: 5")))->proto().rope());
  const std::vector<float> of_long =
      RopeInvFreqFloat32(Canonicalize(Spec(LongRope("sequence_length: 6")))->proto().rope());
  expected.insert(expected.end(), of_long.begin(), of_long.end());
  EXPECT_EQ(tensor.As<float>(), expected);
}

TEST(RopeRowsTest, ShortThenLongHasAMultiplierForEachListWhereTheyDiffer) {
  const auto canonical = [](const std::string& options) {
    ExpectIdempotent(LongRope(options));
    return Canonicalize(Spec(LongRope(options)))->proto().rope().longrope();
  };
  const v1::LongRopeScaling same = canonical("short_then_long: true");
  EXPECT_FALSE(same.has_long_attention_factor());
  EXPECT_FALSE(same.has_sequence_length());
  const v1::LongRopeScaling own =
      canonical("short_then_long: true short_mscale: 1.25 long_mscale: 1.5");
  EXPECT_EQ(own.attention_factor(), 1.25);
  EXPECT_EQ(own.long_attention_factor(), 1.5);
  // Row 5 is position 0 of the long list: its cosine is the multiplier.
  const auto rows = FillOne(LongRope("short_then_long: true short_mscale: 1.25 long_mscale: 1.5"),
                            SelectIds({0, 5}))
                        .As<float>();
  EXPECT_EQ(rows[0], 1.25f);
  EXPECT_EQ(rows[6], 1.5f);
  const v1::LongRopeScaling given = canonical("short_then_long: true attention_factor: 1.75");
  EXPECT_EQ(given.attention_factor(), 1.75);
  EXPECT_FALSE(given.has_long_attention_factor());
  EXPECT_FALSE(canonical("short_then_long: false").has_short_then_long());
}

// Positions that are divided ---------------------------------------------------------------

// angle(p, i) in float32, as `code` computes it; cos and sin of it, correctly rounded.
template <typename Angle>
void ExpectAngles(const std::string& spec, int64_t pairs, const Angle& angle) {
  for (const int64_t position : {0, 1, 2, 3, 7, 100, 4095, 131071, 16777217}) {
    const auto row = FillOne(spec, SelectIds({position})).As<float>();
    for (int64_t i = 0; i < pairs; ++i) {
      const float radians = angle(static_cast<float>(position), static_cast<size_t>(i));
      EXPECT_EQ(row[static_cast<size_t>(i)], CosF(radians)) << position << " " << i;
      EXPECT_EQ(row[static_cast<size_t>(i + pairs)], SinF(radians)) << position << " " << i;
    }
  }
}

TEST(RopeRowsTest, LinearThatDividesPositionsRoundsThem) {
  const std::vector<float> inv_freq = RopeInvFreqFloat32(CanonicalRope("head_dim: 64"));
  for (const double factor : {2.5, 3.0, 8.0}) {
    ExpectAngles(absl::StrCat("rope { head_dim: 64 linear { factor: ", factor,
                              " divide_positions: true } }"),
                 32,
                 [&](float p, size_t i) { return p / static_cast<float>(factor) * inv_freq[i]; });
  }
}

// Identical for powers of two, else a third of the angles differ (serving-stacks 5.1).
TEST(RopeRowsTest, DividingPositionsDiffersFromDividingFrequenciesButForPowersOfTwo) {
  const auto table = [](const char* factor, const char* divide) {
    return FillOne(absl::StrCat("rope { head_dim: 128 linear { factor: ", factor,
                                " divide_positions: ", divide, " } }"),
                   SelectRange(0, 512))
        .As<float>();
  };
  EXPECT_EQ(table("4", "true"), table("4", "false"));
  const auto divided = table("3", "true");
  const auto usual = table("3", "false");
  int64_t differing = 0;
  for (size_t i = 0; i < usual.size(); ++i) differing += divided[i] != usual[i];
  EXPECT_GT(differing, static_cast<int64_t>(usual.size()) / 20);
}

// freqs = RN(RN(t * RN(1/ext)) * inv_freq) (hf-rope 5.3).
TEST(RopeRowsTest, MiniCpmLongRopeMultipliesThePositionFirst) {
  const std::vector<float> inv_freq = RopeInvFreqFloat32(CanonicalRope("head_dim: 6"));
  const std::vector<float> factors = {1.0f, 2.5f, 7.0f};
  ExpectAngles(LongRope("sequence_length: 20 divide_positions: true attention_factor: 1"), 3,
               [&](float p, size_t i) { return p * (1.0f / factors[i]) * inv_freq[i]; });
}

// `cos.to(dtype) * att`: rounded, multiplied, rounded again.
TEST(RopeRowsTest, MiniCpmScalesAfterTheCast) {
  const std::string yarn =
      "head_dim: 64 yarn { factor: 32 original_max_position_embeddings: 4096 attention_factor: ";
  const auto of = [&](const char* factor, const char* option) {
    return FillOne(absl::StrCat("rope { ", yarn, factor, " } ", option, " }"), SelectRange(0, 4096),
                   "dtype: DTYPE_BF16")
        .As<Bf16>();
  };
  const auto plain = of("1", "");
  const auto scaled = of("1.3465735902799727", "scale_after_rounding: true");
  const auto usual = of("1.3465735902799727", "");
  ASSERT_EQ(scaled.size(), plain.size());
  int64_t differing = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    const auto expected = RoundTo<Bf16>(Bf16ToFloat(plain[i].bits) * 1.3465735902799727f);
    EXPECT_EQ(scaled[i].bits, expected.bits);
    differing += scaled[i].bits != usual[i].bits;
  }
  // A third at this multiplier (serving-stacks 5.1), of the entries that are not about 1 or 0.
  EXPECT_GT(differing, static_cast<int64_t>(plain.size()) / 8);
  EXPECT_LT(differing, static_cast<int64_t>(plain.size()) / 2);
}

TEST(RopeRowsTest, ScalingAfterRoundingToFloat32IsScaling) {
  const char* const rope = "head_dim: 64 yarn { factor: 4 original_max_position_embeddings: 64 }";
  for (const char* dtype : {"F32", "F64"}) {
    const std::string format = absl::StrCat("dtype: DTYPE_", dtype);
    EXPECT_EQ(FillOne(absl::StrCat("rope { ", rope, " scale_after_rounding: true }"),
                      SelectRange(0, 99), format)
                  .bytes,
              FillOne(absl::StrCat("rope { ", rope, " }"), SelectRange(0, 99), format).bytes);
  }
}

TEST(RopeRowsTest, OptionsThatSayNothingAreNotInTheCanonicalSpec) {
  EXPECT_FALSE(CanonicalRope("head_dim: 64 linear { factor: 3 divide_positions: false }")
                   .linear()
                   .has_divide_positions());
  EXPECT_FALSE(CanonicalRope("head_dim: 64 arithmetic: ARITHMETIC_EXACT linear { factor: 3 "
                             "divide_positions: true }")
                   .linear()
                   .has_divide_positions());
  EXPECT_FALSE(CanonicalRope("head_dim: 64 scale_after_rounding: true").has_scale_after_rounding());
  EXPECT_TRUE(CanonicalRope("head_dim: 64 scale_after_rounding: true yarn { factor: 4 "
                            "original_max_position_embeddings: 64 }")
                  .scale_after_rounding());
  ExpectIdempotent("rope { head_dim: 64 linear { factor: 3 divide_positions: true } }");
}

// Mixed NTK --------------------------------------------------------------------------------

// inv_freq[i] / exp(ln(s) / (d/2)^b (i+1)^b) of an unchanged base.
TEST(RopeRowsTest, MixedNtkDividesEachFrequencyByMoreThanTheOneBefore) {
  const std::string mixed = "rotary_dim: 64 ntk { factor: 8 mixed_b: 0.625 }";
  const std::vector<WideFloat> exact =
      RopeInvFreqExact(CanonicalRope(absl::StrCat(mixed, " arithmetic: ARITHMETIC_EXACT")));
  const std::vector<float> float32 = RopeInvFreqFloat32(CanonicalRope(mixed));
  const std::vector<float> plain = RopeInvFreqFloat32(CanonicalRope("rotary_dim: 64"));
  const float a = LogF(8.0f) / static_cast<float>(posenc::Pow(32.0, 0.625));
  for (int64_t i = 0; i < 32; ++i) {
    const auto index = static_cast<size_t>(i);
    const Real share = Real::FromInt(i + 1) / Real(32.0);
    const Real expected = Pow(Real(10000.0), -(Real::FromInt(i) / Real(32.0))) /
                          Exp(Log(Real(8.0)) * Pow(share, Real(0.625)));
    EXPECT_THAT(RelativeError(Real(exact[index]), expected), Le(0x1p-200));
    EXPECT_EQ(float32[index], plain[index] / ExpF(a * PowF(static_cast<float>(i + 1), 0.625f)));
  }
  // The last is divided by the whole factor.
  EXPECT_NEAR(static_cast<double>(plain[31] / float32[31]), 8.0, 1e-5);
}

// Pairs twice ------------------------------------------------------------------------------

// TensorRT-LLM's duplicate_data: a row's pairs, then all of them again.
TEST(RopeRowsTest, PairsFullIsEachRowOfPairsTwice) {
  const std::string spec = "rope { rotary_dim: 10 }";
  const auto pairs = FillOne(spec, SelectRange(7, 11), "layout: LAYOUT_PAIRS").As<float>();
  const FilledTensor full = FillOne(spec, SelectRange(7, 11), "layout: LAYOUT_PAIRS_FULL");
  EXPECT_EQ(full.tensor.name, "freqs_cis");
  EXPECT_THAT(full.tensor.shape, ElementsAre(4, 10, 2));
  const auto values = full.As<float>();
  for (size_t row = 0; row < 4; ++row) {
    for (size_t i = 0; i < 20; ++i) EXPECT_EQ(values[row * 20 + i], pairs[row * 10 + i % 10]);
  }
}

// What transformers' classes return that rotate neighbours by a table in halves.
TEST(RopeRowsTest, RepeatedIsTheFullLayoutOfHalves) {
  for (const char* arithmetic : {"", "arithmetic: ARITHMETIC_EXACT"}) {
    for (const char* dtype : {"F32", "F64", "F16", "BF16"}) {
      const auto table = [&](const char* pairing, const char* layout) {
        return *FillTable(
            Spec(absl::StrCat("rope { rotary_dim: 70 pairing: PAIRING_", pairing, " ", arithmetic,
                              " }")),
            SelectRange(30, 77),
            Format(absl::StrCat("layout: LAYOUT_COS_AND_SIN_", layout, " dtype: DTYPE_", dtype)));
      };
      const FilledTable expected = table("HALF", "FULL");
      for (const char* pairing : {"HALF", "INTERLEAVED"}) {
        const FilledTable repeated = table(pairing, "REPEATED");
        ASSERT_EQ(repeated.tensors.size(), 2u);
        for (size_t t = 0; t < 2; ++t) {
          EXPECT_EQ(repeated.tensors[t].tensor.name, expected.tensors[t].tensor.name);
          EXPECT_EQ(repeated.tensors[t].tensor.shape, expected.tensors[t].tensor.shape);
          EXPECT_EQ(repeated.tensors[t].bytes, expected.tensors[t].bytes) << pairing << dtype;
        }
      }
    }
  }
}

}  // namespace
}  // namespace posenc::testing
