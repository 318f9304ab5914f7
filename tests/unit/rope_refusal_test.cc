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
                "rope.rope_theta: must be at least 1.001 with yarn, got 1"},
        Refusal{absl::StrCat("head_dim: 64 yarn {", kYarn, "beta_fast: 0 }"),
                "rope.yarn.beta_fast: must be positive and within the range of float32, got 0"},
        Refusal{absl::StrCat("head_dim: 64 yarn {", kYarn, "beta_slow: nan }"),
                "rope.yarn.beta_slow: must be positive and within the range of float32, got nan"},
        Refusal{absl::StrCat("head_dim: 64 yarn {", kYarn, "beta_fast: 1 beta_slow: 32 }"),
                "rope.yarn.beta_fast: must be at least beta_slow (32), got 1"},
        Refusal{
            absl::StrCat("head_dim: 64 yarn {", kYarn, "attention_factor: 0 }"),
            "rope.yarn.attention_factor: must be positive and within the range of float32, got 0"},
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

TEST(RopeRefusalTest, UnknownEnumValues) {
  v1::EncodingSpec spec = Spec("rope { head_dim: 64 }");
  spec.mutable_rope()->set_pairing(static_cast<v1::Pairing>(7));
  EXPECT_EQ(Canonicalize(spec).status().message(), "rope.pairing: unknown value 7");
  spec.mutable_rope()->set_pairing(v1::PAIRING_HALF);
  spec.mutable_rope()->set_arithmetic(static_cast<v1::Arithmetic>(-1));
  EXPECT_EQ(Canonicalize(spec).status().message(), "rope.arithmetic: unknown value -1");
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
