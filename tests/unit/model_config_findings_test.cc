// Findings about files that can be read, but that readers read differently: each test is named
// after what went unnoticed.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/model_config/resolve.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using ::posenc::testing::FindingOf;
using ::posenc::testing::ModelWith;
using ::posenc::testing::ReadConfig;
using ::posenc::testing::Refusal;
using ::posenc::testing::Resolve;
using ::testing::HasSubstr;

// "warning /rope_scaling/factor" of the finding of a rule; "" where there is none.
std::string Said(const std::string& config, absl::string_view rule) {
  const auto response = Resolve(config);
  EXPECT_TRUE(response.ok()) << response.status();
  const v1::Finding* finding = response.ok() ? FindingOf(*response, rule) : nullptr;
  if (finding == nullptr) return "";
  const char* const severity = finding->severity() == v1::SEVERITY_ERROR     ? "error"
                               : finding->severity() == v1::SEVERITY_WARNING ? "warning"
                                                                             : "note";
  return absl::StrCat(severity, " ", finding->pointer());
}

// Two maps --------------------------------------------------------------------------

// transformers 5 replaces rope_parameters by rope_scaling: its base was taken all the same.
TEST(TwoRopeMapsTest, RopeScalingReplacesRopeParametersWhole) {
  const auto model = [](absl::string_view more) {
    return ModelWith("llama", absl::StrCat(R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0,
                         "original_max_position_embeddings": 2048},
                         "rope_parameters": {"rope_type": "default", "rope_theta": 1e6})",
                                           more));
  };
  const auto theta = [](const std::string& config) {
    return testing::TheEncoding(config).spec().rope().rope_theta();
  };
  EXPECT_EQ(theta(model("")), 1e4) << "the family's default";
  EXPECT_EQ(theta(model(R"(, "rope_theta": 5e5)")), 5e5) << "the one beside";
  // What is lost so is an error, with what keeps it.
  const auto response = Resolve(model(""));
  ASSERT_TRUE(response.ok()) << response.status();
  std::string found;
  for (const v1::Finding& finding : response->findings()) {
    if (finding.rule() != "two-rope-maps") continue;
    EXPECT_EQ(finding.severity(), v1::SEVERITY_ERROR);
    EXPECT_GT(finding.line(), 0);
    absl::StrAppend(&found, finding.pointer(), " ", finding.fix(), "\n");
  }
  EXPECT_EQ(found, "/rope_scaling \n/rope_parameters/rope_theta \"rope_theta\": 1e6\n");
}

TEST(TwoRopeMapsTest, WhatBothPlacesSayAlikeIsNotLost) {
  EXPECT_EQ(Said(ModelWith("llama", R"("rope_theta": 5e5, "rope_scaling": {"type": "linear",
                               "factor": 2.0}, "rope_parameters": {"rope_type": "linear",
                               "factor": 2.0, "rope_theta": 500000.0})"),
                 "two-rope-maps"),
            "");
  EXPECT_EQ(Refusal(ModelWith("llama", R"("rope_scaling": {"type": "linear", "factor": 2.0},
                                "rope_parameters": {"rope_type": "yarn", "factor": 2.0})")),
            "config_json/rope_scaling: contradicts rope_parameters: rope_type linear against yarn");
}

// Two bases -------------------------------------------------------------------------

// The rotary_emb_base of another family was a warning, whatever rope_theta said (B15).
TEST(BaseNamesTest, ABaseByAnotherNameThatDiffersWasOnlyAWarning) {
  for (const char* key : {"rotary_emb_base", "rotary_base", "rope_base"}) {
    EXPECT_EQ(Refusal(ModelWith("llama",
                                absl::StrCat(R"("rope_theta": 10000.0, ")", key, R"(": 500000)"))),
              absl::StrCat("config_json/", key,
                           ": contradicts config_json/rope_theta, another name of the same: "
                           "500000 against 10000.0"));
    // Equal: no finding at all.
    EXPECT_EQ(Said(ModelWith("llama", absl::StrCat(R"("rope_theta": 5e5, ")", key, R"(": 500000)")),
                   "rope-key-ignored"),
              "")
        << key;
    // Inside the map against beside it: an error, as of rope_theta itself.
    EXPECT_EQ(Said(ModelWith("llama", absl::StrCat(R"("rope_parameters": {"rope_theta": 1e4},
                                                      ")",
                                                   key, R"(": 5e5)")),
                   "theta-mismatch"),
              absl::StrCat("error /", key));
  }
  // Alone it is read by nobody.
  EXPECT_EQ(Said(ModelWith("llama", R"("rotary_emb_base": 5e5)"), "rope-key-ignored"),
            "warning /rotary_emb_base");
  // transformers' GPT-NeoX sets rope_theta to what rotary_emb_base says, or to 10000.
  EXPECT_EQ(Said(ModelWith("gpt_neox", R"("rope_theta": 5e5)"), "rope-key-ignored"),
            "warning /rope_theta");
  EXPECT_THAT(Refusal(ModelWith("llama", R"("rope_parameters": {"rope_theta": 1e4,
                                                                "rotary_emb_base": 5e5})")),
              HasSubstr("config_json/rope_parameters/rotary_emb_base: contradicts"));
  EXPECT_THAT(Refusal(ModelWith("gpt_neox", R"("rotary_emb_base": 1e4, "rope_theta": 5e5)")),
              HasSubstr("contradicts config_json/rotary_emb_base"));
}

// Factors ---------------------------------------------------------------------------

std::string LongRope(absl::string_view model_type, absl::string_view more) {
  const std::string list = absl::StrCat("[", absl::StrJoin(std::vector<int>(64, 1), ","), "]");
  return ModelWith(model_type, absl::StrCat(R"("rope_scaling": {"original_max_position_embeddings":
      2048, "short_factor": )",
                                            list, R"(, "long_factor": )", list, ", ", more, "}"));
}

// vLLM and SGLang take the ratio of the lengths: 4 of 8192 and 2048.
TEST(FactorFindingsTest, ALongRopeFactorThatTheLengthsDoNotBearOutWentUnnoticed) {
  EXPECT_EQ(Said(LongRope("llama", R"("type": "longrope", "factor": 32.0)"), "factor-mismatch"),
            "warning /rope_scaling/factor");
  EXPECT_EQ(Said(LongRope("llama", R"("type": "longrope", "factor": 4.0)"), "factor-mismatch"), "");
}

TEST(FactorFindingsTest, AFactorOfProportionalWentUnnoticed) {
  const auto model = [](const char* factor) {
    return ModelWith("llama", absl::StrCat(R"("rope_parameters": {"rope_type": "proportional",
        "rope_theta": 1e4, "partial_rotary_factor": 0.25, "factor": )",
                                           factor, "}"));
  };
  EXPECT_EQ(Said(model("8.0"), "proportional-factor"), "warning /rope_parameters/factor");
  EXPECT_EQ(Said(model("1.0"), "proportional-factor"), "");
}

// A map of the class is in no file: nobody can mend its factor.
TEST(FactorFindingsTest, AFactorThatTheFileDoesNotHaveWasFoundInIt) {
  const std::string config =
      R"({"model_type": "mistral4", "hidden_size": 4096, "num_attention_heads": 32,
          "max_position_embeddings": 131072)";
  EXPECT_EQ(Said(config + "}", "factor-mismatch"), "");
  EXPECT_EQ(Said(config + R"(, "rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4,
                 "factor": 128.0, "original_max_position_embeddings": 8192}})",
                 "factor-mismatch"),
            "warning /rope_parameters/factor");
}

TEST(FactorFindingsTest, AnAttnFactorThatWasIgnoredWasSaidToMultiply) {
  const auto message = [](absl::string_view more) {
    const auto response =
        Resolve(ModelWith("llama", absl::StrCat(R"("rope_scaling": {"rope_type": "yarn", "factor":
            4.0, "original_max_position_embeddings": 2048, "attn_factor": 0.5)",
                                                more, "}")));
    const v1::Finding* finding = FindingOf(*response, "attn-factor");
    return finding == nullptr ? "" : finding->message();
  };
  EXPECT_THAT(message(R"(, "attention_factor": 2.0)"), HasSubstr("attn_factor is ignored"));
  EXPECT_THAT(message(""), HasSubstr("as here"));
}

TEST(FactorFindingsTest, AnMscaleThatScalesTheSoftmaxWasCalledUnused) {
  const auto model = [](const char* type) {
    return ModelWith(type, R"("rope_scaling": {"type": "linear", "factor": 4.0,
                               "mscale_all_dim": 1.0})");
  };
  EXPECT_GT(testing::TheEncoding(model("deepseek_v3")).softmax_scale_multiplier(), 1);
  EXPECT_EQ(Said(model("deepseek_v3"), "rope-key-unknown"), "");
  EXPECT_EQ(Said(model("llama"), "rope-key-unknown"), "note /rope_scaling/mscale_all_dim");
}

TEST(FactorFindingsTest, AFactorOfNullBecameTheRatioInSilence) {
  const auto model = [](const char* factor) {
    return ModelWith("llama", absl::StrCat(R"("rope_scaling": {"rope_type": "yarn",
        "original_max_position_embeddings": 2048, "factor": )",
                                           factor, "}"));
  };
  EXPECT_EQ(Said(model("null"), "yarn-factor-implied"), "note /rope_scaling/factor");
  EXPECT_EQ(FindingOf(*Resolve(model("null")), "yarn-factor-implied")->fix(), "\"factor\": 4");
  EXPECT_EQ(Said(model("4.0"), "yarn-factor-implied"), "");
}

// Llama 3 ---------------------------------------------------------------------------

std::string WithoutScaling(int hidden_size, int num_layers, absl::string_view more) {
  return absl::StrCat(
      R"({"model_type": "llama", "hidden_size": )", hidden_size, R"(, "num_hidden_layers": )",
      num_layers, R"(, "num_attention_heads": 32, "max_position_embeddings": 131072)", more, "}");
}

// The factor of Llama 3.1 was offered to all sizes (B37), and to files of other models.
// rope_scaling.get("truncate", True) is None, which is not true.
TEST(FactorFindingsTest, ATruncateOfNullWasTrue) {
  const auto response = Resolve(ModelWith("llama", R"("rope_scaling": {"type": "yarn",
      "factor": 2.0, "original_max_position_embeddings": 4096, "truncate": null})"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_FALSE(response->encodings(0).spec().rope().yarn().truncate());
  EXPECT_TRUE(response->encodings(0).spec().rope().yarn().has_truncate());
  const v1::Finding* finding = FindingOf(*response, "truncate-null");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->pointer(), "/rope_scaling/truncate");
}

TEST(LostScalingTest, TheFactorEightWasOfferedToLlama32) {
  const auto fix = [](int hidden_size, int num_layers) {
    const auto response =
        Resolve(WithoutScaling(hidden_size, num_layers, R"(, "rope_theta": 500000.0)"));
    const v1::Finding* finding = FindingOf(*response, "scaling-lost");
    return finding == nullptr ? "" : finding->fix();
  };
  for (const auto& [hidden_size, num_layers] : {std::pair{2048, 16}, {3072, 28}}) {
    EXPECT_THAT(fix(hidden_size, num_layers), HasSubstr(R"("factor": 32.0)")) << hidden_size;
  }
  for (const auto& [hidden_size, num_layers] : {std::pair{4096, 32}, {8192, 80}, {16384, 126}}) {
    EXPECT_THAT(fix(hidden_size, num_layers), HasSubstr(R"("factor": 8.0)")) << hidden_size;
  }
  EXPECT_EQ(fix(4096, 8), "") << "no Llama 3";
  EXPECT_EQ(fix(2048, 32), "") << "no Llama 3";
}

// Pasted beside the null, or beside a map of the new form, it was a second map.
TEST(LostScalingTest, TheFixWasASecondMap) {
  const auto said = [](absl::string_view more) {
    const auto response = Resolve(WithoutScaling(4096, 32, more));
    const v1::Finding* finding = FindingOf(*response, "scaling-lost");
    EXPECT_NE(finding, nullptr);
    if (finding == nullptr) return std::string();
    // The fix alone, in the place that the finding names, is a file that means Llama 3.1.
    EXPECT_EQ(
        Said(WithoutScaling(4096, 32, absl::StrCat(R"(, "rope_theta": 5e5, )", finding->fix())),
             "scaling-lost"),
        "");
    return absl::StrCat(finding->pointer(),
                        finding->message().substr(finding->message().find("degrade.") + 8));
  };
  EXPECT_EQ(said(R"(, "rope_theta": 5e5)"), "/rope_scaling");
  EXPECT_EQ(said(R"(, "rope_theta": 5e5, "rope_scaling": null)"),
            "/rope_scaling The fix replaces the rope_scaling that is there.");
  EXPECT_EQ(said(R"(, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5})"),
            "/rope_parameters The fix replaces the rope_parameters that is there.");
}

// The base ----------------------------------------------------------------------------

TEST(BaseNamesTest, ABaseInsideRopeScalingWasSaidToBeInsideRopeParameters) {
  const auto message = [](const char* map) {
    const auto response = Resolve(
        ModelWith("llama", absl::StrCat("\"", map, R"(": {"rope_type": "linear", "factor": 2.0,
                                                "rope_theta": 1e6})")));
    const v1::Finding* finding = FindingOf(*response, "theta-only-new-form");
    return finding == nullptr ? "" : finding->message();
  };
  EXPECT_THAT(message("rope_scaling"), HasSubstr("stands only inside rope_scaling;"));
  EXPECT_THAT(message("rope_parameters"), HasSubstr("stands only inside rope_parameters;"));
}

// Its base stood in both forms, its scaling in one.
TEST(NewFormTest, AnOldReaderDroppedTheScalingInSilence) {
  const std::string llama3 = R"({"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0,
      "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})";
  const std::string model =
      R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
          "num_hidden_layers": 8, "max_position_embeddings": 131072, "rope_theta": 5e5)";
  const std::string config = model + R"(, "rope_parameters": )" + llama3 + "}";
  constexpr char kRule[] = "scaling-only-new-form";
  EXPECT_EQ(Said(config, kRule), "warning /rope_parameters");
  const std::string fix = FindingOf(*Resolve(config), kRule)->fix();
  const auto mended =
      Resolve(absl::StrCat(model, R"(, "rope_parameters": )", llama3, ", ", fix, "}"));
  ASSERT_TRUE(mended.ok()) << mended.status();
  EXPECT_EQ(mended->findings_size(), 0) << "pasted, the fix is all that it takes";
  EXPECT_EQ(Said(model + R"(, "rope_scaling": )" + llama3 + "}", kRule), "");
  EXPECT_EQ(
      Said(model + R"(, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}})", kRule),
      "");
}

// validate_architecture of transformers 5.16.
TEST(SizesTest, HeadsThatDoNotDivideTheHiddenSizeWereRoundedInSilence) {
  const auto model = [](const char* type, const char* more) {
    return absl::StrCat(R"({"model_type": ")", type,
                        R"(", "hidden_size": 2050, "num_attention_heads": 32)", more, "}");
  };
  constexpr char kRule[] = "hidden-size-uneven";
  EXPECT_EQ(Said(model("llama", ""), kRule), "error /hidden_size");
  EXPECT_EQ(testing::TheEncoding(model("llama", "")).spec().rope().head_dim(), 64);
  EXPECT_EQ(Said(model("llama", R"(, "head_dim": 64)"), kRule), "error /hidden_size");
  EXPECT_EQ(Said(model("arcee", ""), kRule), "error /hidden_size");
  EXPECT_EQ(Said(model("qwen2", ""), kRule), "") << "its class does not look";
  EXPECT_EQ(Said(ModelWith("llama", ""), kRule), "");
}

// Phi-3 and kin ---------------------------------------------------------------------

TEST(PhiFindingsTest, ATypeThatPhi3RefusesWasReadInSilence) {
  const std::string linear = R"("rope_scaling": {"type": "linear", "factor": 2.0})";
  EXPECT_EQ(Said(ModelWith("phi3", linear), "rope-type-foreign"), "error /rope_scaling/type");
  EXPECT_EQ(Said(ModelWith("llama", linear), "rope-type-foreign"), "");
  EXPECT_EQ(Said(ReadConfig("Phi-3.5-mini-instruct.json"), "rope-type-foreign"), "");
}

// Its first files named a LongRoPE yarn; without the lists it is a YaRN, which the class refuses.
// Their rotary classes raise for any other (reference/hf-rope.md, 4.3).
TEST(ForeignTypeTest, AScalingThatTheClassRefusesWasReadInSilence) {
  for (const char* type : {"recurrent_gemma", "ernie4_5_vl_moe_text"}) {
    const auto response = Resolve(ModelWith(type, R"("num_hidden_layers": 3,
            "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500000.0,
                                "mrope_section": [22, 22, 20]})"));
    ASSERT_TRUE(response.ok()) << response.status();
    const v1::Finding* finding = FindingOf(*response, "rope-type-foreign");
    ASSERT_NE(finding, nullptr) << type;
    EXPECT_EQ(finding->expected(), "one of default");
  }
}

// ROPE_INIT_FUNCTIONS has no mrope; classes with M-RoPE take it for default before.
TEST(ForeignTypeTest, AnMropeInAFamilyWithoutItFailsInTransformers) {
  const std::string mrope =
      R"("rope_scaling": {"rope_type": "mrope", "mrope_section": [16, 24, 24]})";
  EXPECT_EQ(Said(ModelWith("llama", mrope), "rope-type-foreign"), "error /rope_scaling/rope_type");
  EXPECT_EQ(testing::TheEncoding(ModelWith("llama", mrope)).rope_type(), "default");
  EXPECT_EQ(Said(ModelWith("qwen2_vl", mrope), "rope-type-foreign"), "");
  EXPECT_EQ(Said(ModelWith("nobody_knows", mrope), "rope-type-foreign"), "");
}

TEST(PhiFindingsTest, AnOldYarnWithFactorListsIsALongRope) {
  EXPECT_EQ(testing::TheEncoding(LongRope("phi3", R"("type": "yarn")")).rope_type(), "longrope");
  EXPECT_EQ(Said(LongRope("phi3", R"("type": "yarn")"), "rope-type-foreign"), "");
  EXPECT_EQ(Said(ModelWith("phi3", R"("rope_scaling": {"type": "yarn", "factor": 4.0,
                                       "original_max_position_embeddings": 2048})"),
                 "rope-type-foreign"),
            "error /rope_scaling/type");
}

TEST(PhiFindingsTest, PhiMoeWithoutItsMscalesWasComputedByAFormulaOfItsOwn) {
  const std::string longrope = R"("type": "longrope", "factor": 4.0)";
  EXPECT_EQ(Refusal(LongRope("phimoe", longrope)),
            "config_json/rope_scaling/short_mscale: is required for rope_type longrope");
  EXPECT_EQ(Refusal(LongRope("phimoe", absl::StrCat(longrope, R"(, "short_mscale": 1.2)"))),
            "config_json/rope_scaling/long_mscale: is required for rope_type longrope");
  EXPECT_EQ(Refusal(LongRope("phimoe", absl::StrCat(longrope, R"(, "short_mscale": 1.2,
                                                        "long_mscale": 1.3)"))),
            "");
}

// Axes ------------------------------------------------------------------------------

TEST(AxesTest, SectionsOfAFamilyWithOneAxisWereDroppedInSilence) {
  for (const char* model_type : {"llama", "qwen3"}) {
    EXPECT_EQ(Said(ModelWith(model_type, R"("rope_scaling": {"type": "mrope",
                                           "mrope_section": [16, 24, 24]})"),
                   "rope-key-ignored"),
              "warning /rope_scaling/mrope_section");
    EXPECT_EQ(Said(ModelWith(model_type, R"("rope_scaling": {"rope_type": "default",
                                           "mrope_interleaved": true})"),
                   "rope-key-ignored"),
              "warning /rope_scaling/mrope_interleaved");
  }
  EXPECT_EQ(Said(ModelWith("qwen2_vl", R"("rope_scaling": {"type": "mrope",
                                         "mrope_section": [16, 24, 24]})"),
                 "rope-key-ignored"),
            "");
}

}  // namespace
}  // namespace posenc
