// What RoPE refuses, and in which words: field, rule, value.
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

struct Refusal {
  std::string rope;
  std::string message;

  friend void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.rope; }
};

class RopeRefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RopeRefusalTest, NamesFieldRuleAndValue) {
  EXPECT_EQ(SpecRefusal(absl::StrCat("rope { ", GetParam().rope, " }")), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Dims, RopeRefusalTest,
    ::testing::Values(
        Refusal{"", "rope.head_dim: is required, or rotary_dim"},
        Refusal{"rotary_dim: 65", "rope.rotary_dim: must be even, got 65"},
        Refusal{"head_dim: 65", "rope.head_dim: must be even, got 65"},
        Refusal{"head_dim: 0", "rope.head_dim: must be in [2, 65536], got 0"},
        Refusal{"head_dim: -64", "rope.head_dim: must be in [2, 65536], got -64"},
        Refusal{"head_dim: 65538", "rope.head_dim: must be in [2, 65536], got 65538"},
        Refusal{"head_dim: 9223372036854775807",
                "rope.head_dim: must be in [2, 65536], got 9223372036854775807"},
        Refusal{"head_dim: 64 rotary_dim: 0", "rope.rotary_dim: must be in [2, 65536], got 0"},
        Refusal{"head_dim: 64 rotary_dim: 128",
                "rope.rotary_dim: must be at most head_dim (64), got 128"},
        Refusal{"partial_rotary_factor: 0.5",
                "rope.head_dim: is required with partial_rotary_factor"},
        Refusal{"head_dim: 128 rotary_dim: 128 partial_rotary_factor: 0.5",
                "rope.partial_rotary_factor: gives a rotary_dim of 64 (of head_dim 128), got "
                "rotary_dim 128"},
        Refusal{"head_dim: 90 partial_rotary_factor: 0.5", "rope.rotary_dim: must be even, got 45"},
        Refusal{"head_dim: 64 partial_rotary_factor: 0",
                "rope.partial_rotary_factor: must be above 0 and at most 1, got 0"},
        Refusal{"head_dim: 64 partial_rotary_factor: 1.5",
                "rope.partial_rotary_factor: must be above 0 and at most 1, got 1.5"},
        Refusal{"head_dim: 64 partial_rotary_factor: nan",
                "rope.partial_rotary_factor: must be above 0 and at most 1, got nan"},
        Refusal{"head_dim: 64 partial_rotary_factor: 0.001",
                "rope.rotary_dim: must be in [2, 65536], got 0"}));

INSTANTIATE_TEST_SUITE_P(
    ThetaAndEnums, RopeRefusalTest,
    ::testing::Values(
        Refusal{"head_dim: 64 rope_theta: 0",
                "rope.rope_theta: must be positive and within the range of float32, got 0"},
        Refusal{"head_dim: 64 rope_theta: -10000",
                "rope.rope_theta: must be positive and within the range of float32, got -10000"},
        Refusal{"head_dim: 64 rope_theta: nan",
                "rope.rope_theta: must be positive and within the range of float32, got nan"},
        Refusal{"head_dim: 64 rope_theta: inf",
                "rope.rope_theta: must be positive and within the range of float32, got inf"},
        Refusal{"head_dim: 64 rope_theta: 1e39",
                "rope.rope_theta: must be positive and within the range of float32, got 1e+39"},
        Refusal{
            "head_dim: 64 rope_theta: 0.001",
            "rope.rope_theta: makes angles too large: frequencies up to 1000 exceed 256 radians "
            "per position"}));

INSTANTIATE_TEST_SUITE_P(
    Linear, RopeRefusalTest,
    ::testing::Values(
        Refusal{"head_dim: 64 linear {}", "rope.linear.factor: is required"},
        Refusal{"head_dim: 64 linear { factor: 0 }",
                "rope.linear.factor: must be positive and within the range of float32, got 0"},
        Refusal{"head_dim: 64 linear { factor: -2 }",
                "rope.linear.factor: must be positive and within the range of float32, got -2"},
        Refusal{"head_dim: 64 linear { factor: nan }",
                "rope.linear.factor: must be positive and within the range of float32, got nan"},
        Refusal{"head_dim: 64 linear { factor: inf }",
                "rope.linear.factor: must be positive and within the range of float32, got inf"},
        Refusal{"head_dim: 64 rope_theta: 0.1 linear { factor: 0.01 }",
                "rope.linear.factor: makes angles too large: frequencies up to 1000 exceed 256 "
                "radians per position"}));

const char kYarn[] = "factor: 4 original_max_position_embeddings: 4096 ";

INSTANTIATE_TEST_SUITE_P(
    Yarn, RopeRefusalTest,
    ::testing::Values(
        Refusal{"head_dim: 64 yarn {}", "rope.yarn.factor: is required"},
        Refusal{"head_dim: 64 yarn { factor: 4 }",
                "rope.yarn.original_max_position_embeddings: is required"},
        Refusal{"head_dim: 64 yarn { factor: 4 original_max_position_embeddings: 0 }",
                "rope.yarn.original_max_position_embeddings: must be in [1, 2147483648], got 0"},
        Refusal{"head_dim: 64 yarn { factor: -4 original_max_position_embeddings: 4096 }",
                "rope.yarn.factor: must be positive and within the range of float32, got -4"},
        Refusal{"head_dim: 64 yarn { factor: 0.001 original_max_position_embeddings: 4096 }",
                "rope.yarn.factor: makes angles too large: frequencies up to 1000 exceed 256 "
                "radians per position"},
        Refusal{absl::StrCat("head_dim: 64 rope_theta: 1 yarn {", kYarn, "}"),
                "rope.rope_theta: must be above 1 (by 2^-20) with yarn, whose ramp divides by its "
                "logarithm, got 1"},
        Refusal{absl::StrCat("head_dim: 64 yarn {", kYarn, "beta_fast: 0 }"),
                "rope.yarn.beta_fast: must be positive; leave it unset for the default, got 0"},
        Refusal{absl::StrCat("head_dim: 64 yarn {", kYarn, "beta_slow: nan }"),
                "rope.yarn.beta_slow: must be positive and within the range of float32, got nan"},
        Refusal{absl::StrCat("head_dim: 64 yarn {", kYarn, "attention_factor: 0 }"),
                "rope.yarn.attention_factor: must be positive: 0 makes all of the table 0, got 0"},
        Refusal{absl::StrCat("head_dim: 64 yarn {", kYarn, "attention_factor: inf }"),
                "rope.yarn.attention_factor: must be positive and within the range of float32, got "
                "inf"},
        Refusal{absl::StrCat("head_dim: 64 yarn {", kYarn, "mscale: nan mscale_all_dim: 1 }"),
                "rope.yarn.mscale: must give, with mscale_all_dim, a positive attention_factor; "
                "nan and 1 give nan"},
        Refusal{absl::StrCat("head_dim: 64 yarn {", kYarn, "mscale: -100 mscale_all_dim: 1 }"),
                "rope.yarn.mscale: must give, with mscale_all_dim, a positive attention_factor; "
                "-100 and 1 give -11.2969"}));

const char kLlama3[] = "factor: 8 original_max_position_embeddings: 8192 ";

INSTANTIATE_TEST_SUITE_P(
    Llama3, RopeRefusalTest,
    ::testing::Values(
        Refusal{"head_dim: 64 llama3 {}", "rope.llama3.factor: is required"},
        Refusal{absl::StrCat("head_dim: 64 llama3 {", kLlama3, "}"),
                "rope.llama3.low_freq_factor: is required"},
        Refusal{absl::StrCat("head_dim: 64 llama3 {", kLlama3, "low_freq_factor: 1 }"),
                "rope.llama3.high_freq_factor: is required"},
        Refusal{"head_dim: 64 llama3 { factor: 8 low_freq_factor: 1 high_freq_factor: 4 }",
                "rope.llama3.original_max_position_embeddings: is required"},
        Refusal{
            absl::StrCat("head_dim: 64 llama3 {", kLlama3,
                         "low_freq_factor: 0 high_freq_factor: 4 }"),
            "rope.llama3.low_freq_factor: must be positive and within the range of float32, got "
            "0"},
        Refusal{absl::StrCat("head_dim: 64 llama3 {", kLlama3,
                             "low_freq_factor: 4 high_freq_factor: 1 }"),
                "rope.llama3.high_freq_factor: must equal low_freq_factor (4) or exceed it by "
                "1/65536 of it, got 1"}));

INSTANTIATE_TEST_SUITE_P(
    ByLength, RopeRefusalTest,
    ::testing::Values(
        Refusal{"head_dim: 64 dynamic {}", "rope.dynamic.factor: is required"},
        Refusal{"head_dim: 64 dynamic { factor: 1e6 }",
                "rope.dynamic.factor: must be above 0 and at most 65536, got 1e+06"},
        Refusal{"head_dim: 64 dynamic { factor: 2 }",
                "rope.dynamic.max_position_embeddings: is required"},
        Refusal{"head_dim: 64 dynamic { factor: 2 max_position_embeddings: 0 }",
                "rope.dynamic.max_position_embeddings: must be in [1, 2147483648], got 0"},
        Refusal{
            "head_dim: 64 dynamic { factor: 2 max_position_embeddings: 64 sequence_length: -1 }",
            "rope.dynamic.sequence_length: must be in [1, 2147483648], got -1"},
        Refusal{"head_dim: 2 dynamic { factor: 2 max_position_embeddings: 64 }",
                "rope.rotary_dim: must be at least 4 with dynamic, got 2"},
        Refusal{"head_dim: 64 dynamic { factor: 2 max_position_embeddings: 64 growth: "
                "DYNAMIC_GROWTH_POWER_OF_TWO }",
                "rope.dynamic.factor: must be unset with power_of_two growth, got 2"},
        Refusal{"head_dim: 4 rope_theta: 1e30 dynamic { factor: 2 max_position_embeddings: 1 "
                "sequence_length: 1000000 }",
                "rope.dynamic.sequence_length: raises rope_theta beyond the range of float32, to "
                "4e+42"},
        Refusal{"head_dim: 64 ntk {}", "rope.ntk: needs either alpha or factor"},
        Refusal{"head_dim: 64 ntk { alpha: 2 factor: 2 }",
                "rope.ntk: needs either alpha or factor"},
        Refusal{"head_dim: 64 ntk { alpha: 0.5 }",
                "rope.ntk.alpha: must be at least 1 and within the range of float32, got 0.5"},
        Refusal{"head_dim: 64 ntk { factor: nan }",
                "rope.ntk.factor: must be at least 1 and within the range of float32, got nan"},
        Refusal{"head_dim: 64 ntk { factor: 1e37 }",
                "rope.ntk.factor: raises rope_theta beyond the range of float32, to 1e+41"},
        Refusal{"head_dim: 64 ntk { alpha: 2 mixed_b: 1 }", "rope.ntk.mixed_b: needs factor"},
        Refusal{"head_dim: 64 ntk { factor: 2 mixed_b: 5 }",
                "rope.ntk.mixed_b: must be above 0 and at most 4, got 5"},
        Refusal{"head_dim: 2 ntk { alpha: 2 }",
                "rope.rotary_dim: must be at least 4 with ntk, got 2"},
        Refusal{"head_dim: 64 arithmetic: ARITHMETIC_EXACT scale_after_rounding: true yarn { "
                "factor: 2 original_max_position_embeddings: 64 }",
                "rope.scale_after_rounding: must be unset with ARITHMETIC_EXACT, which rounds "
                "once"}));

INSTANTIATE_TEST_SUITE_P(
    LongRope, RopeRefusalTest,
    ::testing::Values(
        Refusal{"head_dim: 4 longrope {}",
                "rope.longrope.short_factor: must have rotary_dim/2 (2) numbers, got 0"},
        Refusal{"head_dim: 4 longrope { short_factor: [1, 1] long_factor: 1 }",
                "rope.longrope.long_factor: must have rotary_dim/2 (2) numbers, got 1"},
        Refusal{
            "head_dim: 4 longrope { short_factor: [1, 1] long_factor: [1, 0] }",
            "rope.longrope.long_factor[1]: must be positive and within the range of float32, got "
            "0"},
        Refusal{
            "head_dim: 4 longrope { short_factor: [0.001, 1] long_factor: [1, 1] }",
            "rope.longrope.short_factor[0]: makes angles too large: frequencies up to 1000 exceed "
            "256 radians per position"},
        Refusal{"head_dim: 2 longrope { short_factor: 1 long_factor: 1 }",
                "rope.longrope.original_max_position_embeddings: is required"},
        Refusal{"head_dim: 2 longrope { short_factor: 1 long_factor: 1 "
                "original_max_position_embeddings: 64 }",
                "rope.longrope.factor: is required, or attention_factor"},
        Refusal{
            "head_dim: 2 longrope { short_factor: 1 long_factor: 1 factor: 2 "
            "original_max_position_embeddings: 1 }",
            "rope.longrope.original_max_position_embeddings: must be at least 2, whose logarithm "
            "the attention_factor needs, got 1"},
        Refusal{"head_dim: 2 longrope { short_factor: 1 long_factor: 1 short_mscale: -1 "
                "original_max_position_embeddings: 64 }",
                "rope.longrope.attention_factor: must be positive: a negative one turns every "
                "rotation round, got -1"},
        Refusal{"head_dim: 2 longrope { short_factor: 1 long_factor: 1 factor: 2 "
                "original_max_position_embeddings: 64 short_then_long: true sequence_length: 9 }",
                "rope.longrope.sequence_length: must be unset with short_then_long, which has both "
                "lists, got 9"},
        Refusal{"head_dim: 2 longrope { short_factor: 1 long_factor: 1 factor: 2 "
                "original_max_position_embeddings: 64 long_attention_factor: 1 }",
                "rope.longrope.long_attention_factor: needs short_then_long"},
        Refusal{"head_dim: 2 longrope { short_factor: 1 long_factor: 1 factor: 2 "
                "original_max_position_embeddings: 64 short_then_long: true "
                "long_attention_factor: 0 }",
                "rope.longrope.long_attention_factor: must be positive: 0 makes all of the table "
                "0, got 0"}));

INSTANTIATE_TEST_SUITE_P(
    ProportionalAndExplicit, RopeRefusalTest,
    ::testing::Values(
        Refusal{"head_dim: 8 partial_rotary_factor: 0.5 proportional {}",
                "rope.partial_rotary_factor: is proportional.partial_rotary_factor with this "
                "rope_type"},
        Refusal{"head_dim: 8 proportional { partial_rotary_factor: 1.5 }",
                "rope.proportional.partial_rotary_factor: must be in [0, 1], got 1.5"},
        Refusal{"head_dim: 8 proportional { partial_rotary_factor: 0.5 rotating_pairs: 3 }",
                "rope.proportional.partial_rotary_factor: gives 2 rotating_pairs, got "
                "rotating_pairs 3"},
        Refusal{"head_dim: 8 proportional { rotating_pairs: 5 }",
                "rope.proportional.rotating_pairs: must be in [0, 4], got 5"},
        Refusal{
            "head_dim: 8 proportional { factor: 0 }",
            "rope.proportional.factor: must be positive and within the range of float32, got 0"},
        Refusal{"frequencies {}", "rope.rotary_dim: must be in [2, 65536], got 0"},
        Refusal{"head_dim: 8 frequencies { inv_freq: 1 }",
                "rope.frequencies.inv_freq: must have rotary_dim/2 (4) numbers, got 1"},
        Refusal{"frequencies { inv_freq: [1, nan] }",
                "rope.frequencies.inv_freq[1]: must be in [0, 256], got nan"},
        Refusal{"frequencies { inv_freq: -1 }",
                "rope.frequencies.inv_freq[0]: must be in [0, 256], got -1"},
        Refusal{"frequencies { inv_freq: 257 }",
                "rope.frequencies.inv_freq[0]: must be in [0, 256], got 257"},
        Refusal{"rope_theta: 10000 frequencies { inv_freq: 1 }",
                "rope.rope_theta: must be unset with explicit frequencies"},
        Refusal{"frequencies { inv_freq: 1 attention_factor: 0 }",
                "rope.frequencies.attention_factor: must be positive: 0 makes all of the table 0, "
                "got 0"},
        Refusal{
            "head_dim: 8 yarn { factor: 2 original_max_position_embeddings: 64 attn_factor: 2 "
            "attention_factor: 1 }",
            "rope.yarn.attn_factor: multiplies the default of attention_factor, which is set"}));

TEST(RopeRefusalTest, UnknownEnumValues) {
  v1::EncodingSpec spec = Spec("rope { head_dim: 64 }");
  spec.mutable_rope()->set_pairing(static_cast<v1::Pairing>(7));
  EXPECT_EQ(Canonicalize(spec).status().message(), "rope.pairing: unknown value 7");
  spec.mutable_rope()->set_pairing(v1::PAIRING_HALF);
  spec.mutable_rope()->set_arithmetic(static_cast<v1::Arithmetic>(-1));
  EXPECT_EQ(Canonicalize(spec).status().message(), "rope.arithmetic: unknown value -1");
  spec = Spec("rope { head_dim: 64 dynamic { factor: 2 max_position_embeddings: 64 } }");
  spec.mutable_rope()->mutable_dynamic()->set_growth(static_cast<v1::DynamicGrowth>(9));
  EXPECT_EQ(Canonicalize(spec).status().message(), "rope.dynamic.growth: unknown value 9");
}

TEST(RopeRefusalTest, SelectionsAndFormatsItDoesNotHave) {
  const std::string rope = "rope { head_dim: 64 }";
  EXPECT_EQ(TableRefusal(rope, v1::Selection()),
            "selection: is required: a position_range or position_ids");
  EXPECT_EQ(TableRefusal(rope, SelectIds({0, -1})),
            "selection.position_ids.ids[1]: must be in [0, 2147483647], got -1");
  EXPECT_EQ(TableRefusal(rope, SelectIds({int64_t{1} << 31})),
            "selection.position_ids.ids[0]: must be in [0, 2147483647], got 2147483648");
  EXPECT_EQ(TableRefusal(rope, SelectRange(-1, 4)),
            "selection.position_range.begin: must be in [0, 2147483648], got -1");
  EXPECT_THAT(TableRefusal(rope, SelectGrid(4, 4)),
              ::testing::HasSubstr("needs a position_range or position_ids"));
  EXPECT_THAT(TableRefusal(rope, SelectRange(0, 4), "layout: LAYOUT_TABLE"),
              ::testing::HasSubstr("format.layout: rope has cos_sin, "));
  EXPECT_THAT(TableRefusal(rope, SelectRange(0, 4), "dtype: DTYPE_I32"),
              ::testing::HasSubstr("format.dtype: rope has f32, f64, f16, bf16, got i32"));
}

}  // namespace
}  // namespace posenc::testing
