// Faults of RoPE that somebody reported in public, each with its right value: a test
// named after what went wrong. Ids are those of reference/known-bugs.md. The rest:
// model_config_bias_bugs_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "lib/families/family.h"
#include "lib/model_config/resolve.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using ::posenc::testing::FindingOf;
using ::posenc::testing::ModelWith;
using ::posenc::testing::ReadConfig;
using ::posenc::testing::Refusal;
using ::posenc::testing::Resolve;
using ::posenc::testing::TheEncoding;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kLlama3Block[] =
    R"("rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
       "original_max_position_embeddings": 8192, "rope_type": "llama3"},
       "max_position_embeddings": 131072)";

// Of a model with a short max_position_embeddings, replaced by the one in `more`.
std::string Llama(absl::string_view more) {
  return absl::StrCat(R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,)",
                      more, "}");
}

double AttentionFactor(const v1::ResolvedEncoding& encoding) {
  const auto canonical = Canonicalize(encoding.spec());
  EXPECT_TRUE(canonical.ok()) << canonical.status();
  if (!canonical.ok()) return 0;
  return FamilyOf(canonical->proto()).MakePlan(*canonical)->attention_factor();
}

// Keys, types, names ---------------------------------------------------------------

TEST(KnownBugsTest, B01_B03_B04_TheLlama3BlockWasRefusedByATwoFieldValidator) {
  const auto response = Resolve(Llama(kLlama3Block));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->encodings(0).rope_type(), "llama3");
  EXPECT_EQ(FindingOf(*response, "rope-key-unknown"), nullptr) << "no key of it is unknown";
}

TEST(KnownBugsTest, B03_AnUnknownTypeWasAnsweredWithTheTwoFieldsMessage) {
  EXPECT_THAT(Refusal(Llama(R"("rope_scaling": {"type": "su2", "factor": 2})")),
              HasSubstr("got string \"su2\""));
}

TEST(KnownBugsTest, B05_B12_TypeBesideRopeTypeWasUnrecognizedOrADuplicate) {
  const auto response =
      Resolve(Llama(R"("rope_scaling": {"type": "linear", "rope_type": "linear", "factor": 8.0},
               "rope_theta": 10000, "max_position_embeddings": 16384)"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->encodings(0).rope_type(), "linear");
  EXPECT_THAT(response->findings(), IsEmpty());
}

TEST(KnownBugsTest, B07_AttnFactorWasIgnoredForAttentionFactor) {
  const std::string config = Llama(
      R"("max_position_embeddings": 131072, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
         "original_max_position_embeddings": 32768, "attn_factor": 0.8782488562869419})");
  const auto response = Resolve(config);
  ASSERT_TRUE(response.ok()) << response.status();
  // 1 / (0.1 ln 4 + 1), a multiplier on top: exactly 1.
  EXPECT_DOUBLE_EQ(AttentionFactor(response->encodings(0)), 1.0);
  ASSERT_NE(FindingOf(*response, "attn-factor"), nullptr);
  EXPECT_EQ(FindingOf(*response, "attn-factor")->pointer(), "/rope_scaling/attn_factor");
}

TEST(KnownBugsTest, B08_MropeSectionWasUnrecognizedForDefault) {
  const auto response = Resolve(ModelWith(
      "qwen2_vl", R"("rope_scaling": {"rope_type": "default", "mrope_section": [16, 24, 24]})"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(FindingOf(*response, "rope-key-unknown"), nullptr);
  EXPECT_THAT(response->encodings(0).mrope().sections(), ElementsAre(16, 24, 24));
}

TEST(KnownBugsTest, B09_NestedYarnWasValidatedAgainstTheOuterMap) {
  const std::string nested =
      R"("rope_parameters": {
         "full_attention": {"rope_type": "yarn", "factor": 8.0,
                            "original_max_position_embeddings": 8192, "rope_theta": 5e5},
         "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}},
         "layer_types": ["full_attention", "sliding_attention"], "num_hidden_layers": 2)";
  const auto response = Resolve(Llama(nested));
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->encodings_size(), 2);
  EXPECT_EQ(response->encodings(0).layer_type(), "full_attention");
  EXPECT_EQ(response->encodings(0).spec().rope().yarn().original_max_position_embeddings(), 8192);
  EXPECT_EQ(response->encodings(0).spec().rope().rope_theta(), 5e5);
  EXPECT_THAT(response->encodings(1).layers(), ElementsAre(1));
  EXPECT_EQ(response->encodings(1).spec().rope().rope_theta(), 1e4);
  // A fault is reported with its own path.
  EXPECT_EQ(Refusal(Llama(R"("rope_parameters": {"full_attention": {"rope_type": "yarn"}})")),
            "config_json/rope_parameters/full_attention/factor: is required for rope_type "
            "yarn");
}

TEST(KnownBugsTest, B11_AFileWithOnlyRopeTypeWasReadAsDefault) {
  EXPECT_EQ(TheEncoding(ReadConfig("Llama-3.2-1B-Instruct.json")).rope_type(), "llama3");
}

TEST(KnownBugsTest, B13_TheBaseInsideRopeParametersWasNotRead) {
  const auto response =
      Resolve(Llama(R"("rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0})"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->encodings(0).spec().rope().rope_theta(), 1e6);
  // And an old reader is warned for.
  ASSERT_NE(FindingOf(*response, "theta-only-new-form"), nullptr);
  EXPECT_EQ(FindingOf(*response, "theta-only-new-form")->fix(), "\"rope_theta\": 1000000.0");
}

TEST(KnownBugsTest, B15_TwoSpellingsOfTheBaseWereReadByDifferentModules) {
  EXPECT_THAT(Refusal(Llama(R"("rope_theta": 10000.0, "rotary_base": 500000)")),
              HasSubstr("contradicts config_json/rope_theta"));
  EXPECT_EQ(TheEncoding(Llama(R"("rope_theta": 500000.0, "rotary_base": 500000)"))
                .spec()
                .rope()
                .rope_theta(),
            500000);
}

TEST(KnownBugsTest, B16_TheDefaultBaseDependedOnTheLoader) {
  for (const auto& [model_type, theta] :
       {std::pair("llama", 1e4), std::pair("mixtral", 1e6), std::pair("gpt_oss", 1.5e5)}) {
    const auto response = Resolve(ModelWith(model_type, ""));
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->encodings(0).spec().rope().rope_theta(), theta) << model_type;
    EXPECT_NE(FindingOf(*response, "theta-defaulted"), nullptr) << model_type;
  }
}

TEST(KnownBugsTest, B17_B36_TheBaseOfTheFileWasNeverRead) {
  EXPECT_EQ(TheEncoding(Llama(R"("rope_theta": 1000000)")).spec().rope().rope_theta(), 1e6);
  EXPECT_EQ(TheEncoding(ReadConfig("Yi-34B.json")).spec().rope().rope_theta(), 5e6);
}

TEST(KnownBugsTest, B19_PartialRotaryFactorShrankTheLatentRopeHead) {
  const auto response = Resolve(
      ModelWith("deepseek_v3",
                R"("qk_rope_head_dim": 64, "rope_parameters": {"partial_rotary_factor": 0.5})"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->encodings(0).spec().rope().rotary_dim(), 64);
  EXPECT_NE(FindingOf(*response, "rope-key-ignored"), nullptr);
}

TEST(KnownBugsTest, B20_AnOddRotaryWidthCrashedAtTheFirstForward) {
  EXPECT_THAT(Refusal(R"({"model_type": "llama", "hidden_size": 520, "num_attention_heads": 8})"),
              HasSubstr("gives 65 rotary channels"));
}

TEST(KnownBugsTest, B21_PartialRotaryFactorWasIgnoredWithMrope) {
  const auto response = Resolve(ReadConfig("Qwen3.5-27B.json"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->encodings(0).spec().rope().head_dim(), 256);
  EXPECT_EQ(response->encodings(0).spec().rope().rotary_dim(), 64);
  EXPECT_THAT(response->encodings(0).mrope().sections(), ElementsAre(11, 11, 10));
  // Sections of another width do not pass.
  EXPECT_THAT(Refusal(ModelWith("qwen2_vl", R"("rope_scaling": {"mrope_section": [11, 11, 10]})")),
              HasSubstr("must sum to the 64 frequencies of a head, sums to 32"));
}

TEST(KnownBugsTest, B23_TheTableLengthWasTakenForTheYarnLength) {
  const v1::ResolvedEncoding encoding = TheEncoding(ReadConfig("DeepSeek-V3.json"));
  EXPECT_EQ(encoding.spec().rope().yarn().original_max_position_embeddings(), 4096);
  EXPECT_EQ(encoding.max_position_embeddings(), 163840);
}

TEST(KnownBugsTest, B24_ALargeBaseWasTakenForALongContext) {
  EXPECT_EQ(TheEncoding(Llama(R"("max_position_embeddings": 4096, "rope_theta": 5000000.0)"))
                .max_position_embeddings(),
            4096);
}

TEST(KnownBugsTest, B25_NoRopeLayersWasReadInverted) {
  const auto response = Resolve(ModelWith(
      "smollm3", R"("num_hidden_layers": 8, "no_rope_layers": [0, 0, 0, 1, 0, 0, 0, 1])"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(response->encodings(0).layers(), ElementsAre(3, 7));
  EXPECT_NE(FindingOf(*response, "nope-list-inverted"), nullptr) << "75 % without RoPE";
  EXPECT_EQ(Refusal(ModelWith("smollm3", R"("num_hidden_layers": 3, "no_rope_layers": [1, 1])")),
            "config_json/no_rope_layers: must have an entry for each of the 3 layers, has 2");
}

// Lengths ------------------------------------------------------------------------------

TEST(KnownBugsTest, B27_B28_B29_MaxPositionEmbeddingsWasMultipliedByTheFactor) {
  const auto length = [](absl::string_view type, int64_t max_position, int64_t original,
                         int factor) {
    return TheEncoding(Llama(absl::StrCat(
                           "\"max_position_embeddings\": ", max_position,
                           R"(, "rope_parameters": {"rope_type": ")", type, R"(", "factor": )",
                           factor, ", \"original_max_position_embeddings\": ", original, "}")))
        .max_position_embeddings();
  };
  EXPECT_EQ(length("deepseek_yarn", 1048576, 32768, 32), 1048576);
  EXPECT_EQ(length("telechat3-yarn", 32768, 8192, 4), 32768);
  EXPECT_EQ(length("deepseek_yarn", 131072, 4096, 40), 131072);
  EXPECT_EQ(length("yarn", 131072, 4096, 40), 131072);
}

TEST(KnownBugsTest, B28_TelechatYarnHasACoefficientOfItsOwn) {
  const auto encoding = TheEncoding(
      Llama(R"("max_position_embeddings": 32768, "rope_scaling": {"rope_type": "telechat3-yarn",
               "factor": 4.0, "original_max_position_embeddings": 8192})"));
  EXPECT_NEAR(AttentionFactor(encoding), 1.0970, 5e-5);
}

// Scalings -----------------------------------------------------------------------------

TEST(KnownBugsTest, B37_TheFactorEightWasHardCoded) {
  EXPECT_EQ(TheEncoding(ReadConfig("Llama-3.2-1B-Instruct.json")).spec().rope().llama3().factor(),
            32);
}

TEST(KnownBugsTest, B49_AlphaWasIgnored) {
  const auto encoding = TheEncoding(
      Llama(R"("rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0, "beta_fast": 32,
               "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0})"));
  EXPECT_EQ(encoding.spec().rope().ntk().alpha(), 1000);
  EXPECT_EQ(encoding.variant(), "dynamic_alpha");
}

TEST(KnownBugsTest, B51_DynamicScaledPositions) {
  const auto encoding = TheEncoding(ModelWith("internlm3", R"("rope_theta": 5e7,
                            "rope_scaling": {"factor": 6.0, "rope_type": "dynamic"})"));
  EXPECT_EQ(encoding.spec().rope().dynamic().factor(), 6);
  EXPECT_EQ(encoding.spec().rope().dynamic().max_position_embeddings(), 8192);
}

TEST(KnownBugsTest, B52_TruncateFalseWasNotHonoured) {
  const auto response = Resolve(ModelWith("gpt_oss", R"("head_dim": 64)"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_FALSE(response->encodings(0).spec().rope().yarn().truncate());
}

TEST(KnownBugsTest, B55_TheBetasWereSwapped) {
  const auto response =
      Resolve(Llama(R"("max_position_embeddings": 16384, "rope_scaling": {"rope_type": "yarn",
               "factor": 4.0, "original_max_position_embeddings": 4096, "beta_fast": 1.0,
               "beta_slow": 32.0})"));
  ASSERT_TRUE(response.ok()) << response.status();
  const v1::Finding* finding = FindingOf(*response, "betas-swapped");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->fix(), "\"beta_fast\": 32, \"beta_slow\": 1");
  // A table can be made of it: the ramp of transformers, which runs the other way.
  EXPECT_TRUE(Canonicalize(response->encodings(0).spec()).ok());
}

TEST(KnownBugsTest, B55_AnAttentionFactorThatIsNotPositiveHadNoPlaceInTheFile) {
  for (const char* factor : {"0", "-1.5"}) {
    EXPECT_THAT(
        Refusal(Llama(absl::StrCat(
            R"("max_position_embeddings": 16384, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
               "original_max_position_embeddings": 4096, "attention_factor": )",
            factor, "}"))),
        HasSubstr("config_json/rope_scaling/attention_factor: must be above 0, "));
  }
}

TEST(KnownBugsTest, B59_YarnWasSavedWithoutItsOriginalLength) {
  const auto response = Resolve(
      Llama(R"("max_position_embeddings": 8192, "rope_scaling": {"type": "yarn", "factor": 2.0})"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->encodings(0).spec().rope().yarn().original_max_position_embeddings(), 8192);
  const v1::Finding* finding = FindingOf(*response, "original-length-missing");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity(), v1::SEVERITY_WARNING);
  EXPECT_EQ(finding->pointer(), "/rope_scaling/original_max_position_embeddings");
}

TEST(KnownBugsTest, B60_B61_TheExplicitAttentionFactorWasIgnoredOrRunThroughTheLogAgain) {
  for (const double factor : {1.0, 1.4158883083}) {
    const auto encoding = TheEncoding(Llama(absl::StrCat(
        R"("max_position_embeddings": 262144, "rope_scaling": {"rope_type": "yarn", "factor": 64,
           "original_max_position_embeddings": 4096, "attention_factor": )",
        factor, "}")));
    EXPECT_NEAR(AttentionFactor(encoding), factor, 1e-5);
  }
}

TEST(KnownBugsTest, B64_B65_TheSoftmaxPartOfYarnWasMissing) {
  EXPECT_NEAR(TheEncoding(ReadConfig("DeepSeek-V2-Lite.json")).softmax_scale_multiplier(),
              1.5896261651, 1e-9);
  EXPECT_NEAR(TheEncoding(ReadConfig("DeepSeek-V3.json")).softmax_scale_multiplier(), 1.87385,
              1e-5);
}

TEST(KnownBugsTest, B67_MscaleWouldHaveScaledOrdinaryModelsTwice) {
  const auto encoding = TheEncoding(
      ModelWith("qwen3", R"("rope_scaling": {"type": "yarn", "factor": 4, "mscale_all_dim": 1,
                            "original_max_position_embeddings": 2048})"));
  EXPECT_EQ(encoding.softmax_scale_multiplier(), 1);
  EXPECT_NEAR(AttentionFactor(encoding), 1.1386, 5e-5);
}

TEST(KnownBugsTest, B68_EqualMscalesCancel) {
  EXPECT_EQ(AttentionFactor(TheEncoding(ReadConfig("DeepSeek-V2-Lite.json"))), 1);
  EXPECT_EQ(AttentionFactor(TheEncoding(ReadConfig("ERNIE-Image-pe-ministral3.json"))), 1);
}

TEST(KnownBugsTest, B75_B77_TheFactorListsWereHalfTheHeadOrOnlyOneOfThem) {
  const v1::RopeSpec rope = TheEncoding(ReadConfig("Phi-4-mini-instruct.json")).spec().rope();
  EXPECT_EQ(rope.rotary_dim(), 96);
  EXPECT_EQ(rope.longrope().short_factor_size(), 48);
  EXPECT_EQ(rope.longrope().long_factor_size(), 48);
  EXPECT_EQ(Refusal(ModelWith("phi3", R"("rope_scaling": {"type": "longrope",
                                         "short_factor": [1, 1], "long_factor": [1, 1]})")),
            "config_json/rope_scaling/short_factor: must have rotary_dim/2 (64) numbers, one a "
            "frequency, has 2");
  // A list of one is what transformers alone repeats for all.
  EXPECT_EQ(Refusal(ModelWith("phi3", R"("rope_scaling": {"type": "longrope",
                                         "short_factor": [1], "long_factor": [1]})")),
            "config_json/rope_scaling/short_factor: must have rotary_dim/2 (64) numbers, one a "
            "frequency, has 1; one for all must be written out");
}

// Partial rotary and pairing ---------------------------------------------------------------

TEST(KnownBugsTest, B79_ProportionalWasReadAsAnOrdinaryPart) {
  const auto response = Resolve(ReadConfig("gemma-4-31B-it-NVFP4.json"));
  ASSERT_TRUE(response.ok()) << response.status();
  const v1::RopeSpec& rope = response->encodings(0).spec().rope();
  EXPECT_EQ(rope.rotary_dim(), 512) << "the whole head is in the table";
  EXPECT_EQ(rope.proportional().partial_rotary_factor(), 0.25);
}

TEST(KnownBugsTest, B81_TheFrequenciesWereThoseOfTheFullHead) {
  const auto encoding = TheEncoding(
      R"({"model_type": "gpt_neox_japanese", "hidden_size": 64, "num_attention_heads": 8,
          "rotary_pct": 0.5})");
  EXPECT_EQ(encoding.spec().rope().rotary_dim(), 4);
}

TEST(KnownBugsTest, B84_RopeInterleaveWasIgnored) {
  EXPECT_EQ(TheEncoding(ModelWith("deepseek_v3", R"("rope_interleave": true)")).rotation(),
            "interleaved_to_half");
  EXPECT_EQ(TheEncoding(ModelWith("deepseek_v3", R"("rope_interleave": false)")).rotation(),
            "half");
}

TEST(KnownBugsTest, B88_B89_InterleavedSectionsWereTakenForInterleavedPairs) {
  const auto response = Resolve(ReadConfig("Qwen3-VL-2B-Instruct.json"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->encodings(0).mrope().scheme(), "interleaved");
  EXPECT_EQ(response->encodings(0).rotation(), "half");
  EXPECT_EQ(response->encodings(0).spec().rope().pairing(), v1::PAIRING_HALF);
}

TEST(KnownBugsTest, B93_TheLinearFactorOfGemma3WasNotAppliedOnGlobalLayers) {
  const auto response = Resolve(ReadConfig("gemma-3-27b-it-hub.json"));
  ASSERT_TRUE(response.ok()) << response.status();
  const v1::RopeSpec& full = response->encodings(0).spec().rope();
  EXPECT_EQ(full.rope_theta(), 1e6);
  EXPECT_EQ(full.linear().factor(), 8);
  const v1::RopeSpec& sliding = response->encodings(1).spec().rope();
  EXPECT_EQ(sliding.rope_theta(), 1e4);
  EXPECT_FALSE(sliding.has_linear());
}

TEST(KnownBugsTest, B107_TheBaseWasStoredAsAnInteger) {
  EXPECT_EQ(TheEncoding(Llama(R"("rope_theta": 1000000000.0)")).spec().rope().rope_theta(), 1e9);
  EXPECT_EQ(TheEncoding(Llama(R"("rope_theta": 10000.5)")).spec().rope().rope_theta(), 10000.5);
}

}  // namespace
}  // namespace posenc
