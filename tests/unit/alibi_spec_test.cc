// ALiBi: the canonical form, and what is refused.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

TEST(AlibiSpecTest, CanonicalFormIsCompleteAndIdempotent) {
  const auto canonical = Canonicalize(Spec("alibi { num_heads: 8 }"));
  EXPECT_EQ(canonical->proto().ShortDebugString(),
            "alibi { num_heads: 8 alibi_bias_max: 8 slope_rounding: SLOPE_ROUNDING_PRESS "
            "form: ALIBI_FORM_RELATIVE_CAUSAL }");
  ExpectIdempotent("alibi { num_heads: 8 }");
  ExpectIdempotent(
      "alibi { num_heads: 1 alibi_bias_max: 0.5 slope_rounding: SLOPE_ROUNDING_MPT "
      "form: ALIBI_FORM_SYMMETRIC }");
}

// So that a spec from before these fields keeps its table id.
TEST(AlibiSpecTest, LaterFieldsThatSayNothingAreLeftOutOfTheCanonicalForm) {
  EXPECT_EQ(Canonicalize(
                Spec("alibi { num_heads: 8 total_heads: 8 tensor_parallel_size: 1 "
                     "tensor_parallel_rank: 0 scale_head_dim: 1 seq_len_interpolation_factor: 1 }"))
                ->key(),
            Canonicalize(Spec("alibi { num_heads: 8 }"))->key());
  ExpectIdempotent("alibi { num_heads: 8 total_heads: 12 tensor_parallel_size: 4 }");
}

TEST(AlibiSpecTest, RefusesWhatMakesNoSense) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"", "alibi.num_heads: is required"},
      {"num_heads: 0", "alibi.num_heads: must be in [1, 65536], got 0"},
      {"num_heads: -1", "alibi.num_heads: must be in [1, 65536], got -1"},
      {"num_heads: 65537", "alibi.num_heads: must be in [1, 65536], got 65537"},
      {"num_heads: 1 alibi_bias_max: 0",
       "alibi.alibi_bias_max: must be above 0 and at most 100, got 0"},
      {"num_heads: 1 alibi_bias_max: -8",
       "alibi.alibi_bias_max: must be above 0 and at most 100, got -8"},
      {"num_heads: 1 alibi_bias_max: nan",
       "alibi.alibi_bias_max: must be above 0 and at most 100, got nan"},
      {"num_heads: 1 alibi_bias_max: inf",
       "alibi.alibi_bias_max: must be above 0 and at most 100, got inf"},
      {"num_heads: 1 alibi_bias_max: 127",
       "alibi.alibi_bias_max: must be above 0 and at most 100, got 127"},
      {"num_heads: 8 total_heads: 7", "alibi.total_heads: must be in [8, 65536], got 7"},
      {"num_heads: 8 tensor_parallel_size: 3",
       "alibi.tensor_parallel_size: must divide the 8 heads, got 3"},
      {"num_heads: 8 tensor_parallel_size: 0",
       "alibi.tensor_parallel_size: must be in [1, 8], got 0"},
      {"num_heads: 8 tensor_parallel_size: 4 tensor_parallel_rank: 4",
       "alibi.tensor_parallel_rank: must be in [0, 3], got 4"},
      {"num_heads: 8 seq_len_interpolation_factor: 0",
       "alibi.seq_len_interpolation_factor: must be in [9.53674e-07, 1.04858e+06], got 0"},
      {"num_heads: 8 seq_len_interpolation_factor: 2 slope_rounding: SLOPE_ROUNDING_FALCON_BF16",
       "alibi.seq_len_interpolation_factor: is float32: slopes of falcon_bf16 are bfloat16"},
      {"num_heads: 8 scale_head_dim: 0", "alibi.scale_head_dim: must be in [1, 65536], got 0"},
  };
  for (const auto& [fields, message] : cases) {
    EXPECT_EQ(SpecRefusal(absl::StrCat("alibi { ", fields, " }")), message);
  }
}

TEST(AlibiSpecTest, RefusesUnknownEnumValues) {
  v1::EncodingSpec spec = Spec("alibi { num_heads: 1 }");
  spec.mutable_alibi()->set_slope_rounding(static_cast<v1::SlopeRounding>(99));
  EXPECT_EQ(Canonicalize(spec).status().message(), "alibi.slope_rounding: unknown value 99");
  spec = Spec("alibi { num_heads: 1 }");
  spec.mutable_alibi()->set_form(static_cast<v1::AlibiForm>(-7));
  EXPECT_EQ(Canonicalize(spec).status().message(), "alibi.form: unknown value -7");
}

TEST(AlibiSpecTest, RefusesSelectionsAndFormatsItDoesNotHave) {
  const std::string spec = "alibi { num_heads: 1 }";
  EXPECT_EQ(TableRefusal(spec, {}), "selection: is required: an attention_grid");
  EXPECT_EQ(TableRefusal(spec, SelectRange(0, 4)),
            "selection: needs an attention_grid for this encoding, got position_range");
  EXPECT_EQ(TableRefusal(spec, SelectRange(0, 4), "layout: LAYOUT_SLOPES"),
            "selection: needs an attention_grid for this encoding, got position_range");
  EXPECT_EQ(TableRefusal(spec, SelectGrid(1, -4)),
            "selection.attention_grid.key_length: must be in [0, 2147483648], got -4");
  EXPECT_EQ(TableRefusal(spec, SelectGrid(1, 4, -1)),
            "selection.attention_grid.query_offset: must be in [0, 2147483647], got -1");
  EXPECT_EQ(TableRefusal(spec, SelectGrid(1, 4), "dtype: DTYPE_I32"),
            "format.dtype: alibi has f32, f64, f16, bf16, got i32");
  EXPECT_EQ(TableRefusal(spec, SelectGrid(1, 4), "layout: LAYOUT_COS_SIN"),
            "format.layout: alibi has bias, bias_vector, slopes, got cos_sin");
  EXPECT_EQ(TableRefusal("alibi { num_heads: 1 form: ALIBI_FORM_LAST_ROW }", SelectGrid(1, 4),
                         "layout: LAYOUT_BIAS_VECTOR"),
            "format.layout: bias_vector is for relative_causal, symmetric and sqrt: the other "
            "forms are no function of relative_position alone");
  EXPECT_EQ(TableRefusal("alibi { num_heads: 1 form: ALIBI_FORM_KEY_MASK }", SelectGrid(1, 4)),
            "selection: needs a token_mask or a patch_grid for this encoding, got attention_grid");
  EXPECT_EQ(TableRefusal("alibi { num_heads: 1 form: ALIBI_FORM_MANHATTAN }", SelectGrid(1, 4)),
            "selection: needs a patch_grid for this encoding, got attention_grid");
}

}  // namespace
}  // namespace posenc::testing
