// Faults that somebody reported in public and that a comparison with the base must find, each
// with the effect in numbers. Ids are those of reference/known-bugs.md.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/check_run.h"

namespace posenc::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A model of 4 heads of 128, with more keys.
std::string Model(const std::string& type, const std::string& more) {
  return absl::StrCat(R"({"model_type": ")", type, R"(", "hidden_size": 512,
      "num_attention_heads": 4, "max_position_embeddings": 32768)",
                      more, "}");
}

// What check says of `model` against `base`.
std::string Difference(const std::string& model, const std::string& base) {
  const CheckResult result =
      Check({Write("model.json", model), "--base", Write("base.json", base)});
  EXPECT_NE(result.exit_code, 4) << result.errors;
  return result.out;
}

TEST(CheckKnownBugsTest, B17_B36_ADraftHadTheDefaultBase) {
  EXPECT_THAT(Difference(Model("llama", R"(, "rope_theta": 10000)"),
                         Model("llama", R"(, "rope_theta": 1000000)")),
              AllOf(HasSubstr("rope_theta is 10000, in the base 1000000 (63 of 64 frequencies "
                              "differ, from pair 1"),
                    HasSubstr("[base-theta-differs]")));
}

// sgl-project/sglang#10788: a draft model whose table is shorter than its target's.
TEST(CheckKnownBugsTest, B33_ADraftWasShorterThanItsTarget) {
  EXPECT_THAT(Difference(Model("qwen2", R"(, "seq_length": 1)"),
                         R"({"model_type": "qwen2", "hidden_size": 512, "num_attention_heads": 4,
                             "max_position_embeddings": 131072})"),
              HasSubstr("max_position_embeddings is 32768, in the base 131072 "
                        "[base-length-differs]"));
}

TEST(CheckKnownBugsTest, B47_ADynamicFactorWasDropped) {
  EXPECT_THAT(Difference(Model("llama", ""),
                         Model("llama", R"(, "rope_scaling": {"type": "dynamic", "factor": 2})")),
              HasSubstr("rope_type is default, in the base dynamic"));
}

// Refused by the spec before the finding could speak: no pointer, no line, no fix.
TEST(CheckKnownBugsTest, B55_SwappedBetasHadNoPlaceAndNoFix) {
  const std::string model = Write("swapped.json", Model("llama", R"(, "rope_theta": 10000.0,
 "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4096,
                  "beta_fast": 1.0, "beta_slow": 32.0})"));
  const CheckResult result = Check({model});
  EXPECT_EQ(result.exit_code, 0) << "a warning";
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("swapped.json:4:32: warning: beta_fast (1) is below "),
                    HasSubstr("[betas-swapped]\n    fix in /rope_scaling: \"beta_fast\": 32, "
                              "\"beta_slow\": 1\n")));
}

TEST(CheckKnownBugsTest, B15_ABaseByAnotherNameWasAWarning) {
  const std::string model =
      Write("bases.json", Model("llama", R"(, "rope_theta": 10000.0, "rotary_emb_base": 500000)"));
  const CheckResult result = Check({model});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, AllOf(HasSubstr("error: rotary_emb_base: contradicts rope_theta"),
                                HasSubstr("[config-refused]")));
}

TEST(CheckKnownBugsTest, B63_B67_TheTwoPlacesOfTheMagnitudeWereMixed) {
  const auto yarn = [](const char* more) {
    return Model("deepseek_v3", absl::StrCat(R"(, "qk_rope_head_dim": 64,
        "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096)",
                                             more, "}"));
  };
  // Both numbers are said, each by itself.
  EXPECT_THAT(
      Difference(yarn(""), yarn(R"(, "mscale": 1.0, "mscale_all_dim": 1.0)")),
      AllOf(HasSubstr("attention_factor is 1.36888"), HasSubstr("in the base 1, scores times 1.87"),
            HasSubstr("softmax_scale_multiplier is 1, in the base 1.87385")));
}

TEST(CheckKnownBugsTest, B69_ADraftHeadIgnoredTheScaling) {
  EXPECT_THAT(Difference(Model("qwen2", R"(, "rope_theta": 1000000)"),
                         Model("qwen2", R"(, "rope_theta": 1000000, "rope_scaling": {"type": "yarn",
                     "factor": 4.0, "original_max_position_embeddings": 32768})")),
              AllOf(HasSubstr("40 of 64 frequencies differ, from pair 24, by up to 4x"),
                    HasSubstr("attention_factor is 1, in the base 1.1386")));
}

TEST(CheckKnownBugsTest, B80_ZeroPaddingWasTakenForAPartOfTheHead) {
  EXPECT_THAT(Difference(Model("llama", R"(, "rope_scaling": {"rope_type": "proportional",
                                              "partial_rotary_factor": 0.25})"),
                         Model("llama", R"(, "partial_rotary_factor": 0.25)")),
              AllOf(HasSubstr("rotary_dim is 128, in the base 32"),
                    HasSubstr("rope_type is proportional, in the base default")));
}

TEST(CheckKnownBugsTest, B83_B84_B85_TheLayoutOfThePairsWasIgnored) {
  EXPECT_THAT(Difference(Model("deepseek_v3", R"(, "rope_interleave": false)"),
                         Model("deepseek_v3", R"(, "rope_interleave": true)")),
              AllOf(HasSubstr("rotation is half, in the base interleaved_to_half"),
                    HasSubstr("[base-pairing-differs]")));
  // The same angles in another order are a difference of that alone.
  EXPECT_THAT(Difference(Model("cohere", R"(, "rope_theta": 10000)"),
                         Model("llama", R"(, "rope_theta": 10000)")),
              AllOf(HasSubstr("rotation is interleaved, in the base half"),
                    Not(HasSubstr("frequencies differ"))));
}

// The same 12 slopes in every code when the largest bias is 8; Jina's length is 8192.
TEST(CheckKnownBugsTest, B115_SlopesOfTwelveHeadsWereFixedToOneForm) {
  const auto bloom = [](int heads) {
    return absl::StrCat(R"({"model_type": "bloom", "hidden_size": 768, "n_head": )", heads, "}");
  };
  const std::string mpt = R"({"model_type": "mpt", "d_model": 768, "n_heads": 12})";
  EXPECT_THAT(Difference(mpt, bloom(12)),
              AllOf(HasSubstr("the same slopes, up to a constant per row"), HasSubstr("warning"),
                    Not(HasSubstr("error: "))));
  // A ladder of 8 heads is another one.
  EXPECT_THAT(Difference(mpt, bloom(8)), HasSubstr("12 slopes, base 8 [base-spec-differs]"));
  EXPECT_THAT(Difference(R"({"model_type": "mpt", "d_model": 768, "n_heads": 12,
                             "attn_config": {"alibi_bias_max": 16}})",
                         mpt),
              HasSubstr("12 of 12 slopes differ, from head 0, by up to "));
  const auto jina = [](int length) {
    return absl::StrCat(R"({"model_type": "bert", "hidden_size": 768, "num_attention_heads": 12,
                            "position_embedding_type": "alibi", "max_position_embeddings": )",
                        length, "}");
  };
  EXPECT_THAT(Difference(jina(512), jina(8192)),
              HasSubstr("max_position_embeddings is 512, in the base 8192"));
}

// Relative to the query or to the first key: the same up to a constant per row, but in 16 bits.
TEST(CheckKnownBugsTest, B121_AConstantPerRowIsNoDifferenceButInLowPrecision) {
  const std::string bloom = R"({"model_type": "bloom", "hidden_size": 512, "n_head": 8})";
  EXPECT_THAT(Difference(R"({"model_type": "mpt", "d_model": 512, "n_heads": 8})", bloom),
              AllOf(HasSubstr("up to a constant per row"), HasSubstr("0 errors")));
  // Falcon's are bfloat16.
  EXPECT_THAT(Difference(R"({"model_type": "falcon", "hidden_size": 512, "n_head": 8,
                             "alibi": true})",
                         bloom),
              AllOf(HasSubstr("rounded to bfloat16"), HasSubstr("error: ")));
}

// 518 pixels to 224 in patches of 14: by the size or by the ratio, which rule is to be said.
TEST(CheckKnownBugsTest, B144_ARatioOrASizeChangedTheValues) {
  const auto dinov2 = [](int image_size) {
    return absl::StrCat(R"({"model_type": "dinov2", "hidden_size": 384, "patch_size": 14,
                            "image_size": )",
                        image_size, "}");
  };
  EXPECT_THAT(Difference(dinov2(224), dinov2(518)),
              AllOf(HasSubstr("grid [16,16] (base [37,37])"),
                    HasSubstr("by the new size, or by a ratio with 0.1 added")));
}

TEST(CheckKnownBugsTest, B87_LayersWithoutRopeHidTheDifference) {
  EXPECT_THAT(Difference(Model("smollm3", R"(, "num_hidden_layers": 4,
                                              "no_rope_layers": [1, 1, 1, 1])"),
                         Model("smollm3", R"(, "num_hidden_layers": 4)")),
              AllOf(HasSubstr("1 of 4 layers differ, from layer 3: RoPE, in the base no RoPE"),
                    HasSubstr("[base-layers-differ]")));
}

}  // namespace
}  // namespace posenc::testing
