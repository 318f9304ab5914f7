// What a slip of the hand makes of a config that still resolves: a base lost, a key misspelt, axes
// lost, lengths exchanged. Each test is named after what went unnoticed.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/model_config/resolve.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using ::posenc::testing::MessageOf;
using ::posenc::testing::ModelWith;
using ::posenc::testing::ReadConfig;
using ::posenc::testing::Resolved;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "warning /rope_theta -> fix", a line a finding of that rule.
std::vector<std::string> Said(const v1::ResolveModelConfigResponse& response,
                              absl::string_view rule) {
  std::vector<std::string> said;
  for (const v1::Finding& finding : response.findings()) {
    if (finding.rule() != rule) continue;
    const char* const severity = finding.severity() == v1::SEVERITY_ERROR     ? "error"
                                 : finding.severity() == v1::SEVERITY_WARNING ? "warning"
                                                                              : "note";
    said.push_back(absl::StrCat(severity, " ", finding.pointer(), " -> ", finding.fix()));
  }
  return said;
}

std::vector<std::string> Said(const std::string& config, absl::string_view rule) {
  return Said(Resolved(config), rule);
}

std::vector<std::string> SaidWith(const std::string& overrides, const std::string& config,
                                  absl::string_view rule) {
  v1::ModelSource model;
  model.set_config_json(config);
  model.set_overrides_json(overrides);
  const auto response = ResolveModelConfig(model);
  EXPECT_TRUE(response.ok()) << response.status();
  return response.ok() ? Said(*response, rule) : std::vector<std::string>();
}

// A real config with one text in the place of another.
std::string Edited(const std::string& file, absl::string_view from, absl::string_view to) {
  std::string config = ReadConfig(file);
  EXPECT_THAT(config, HasSubstr(std::string(from)));
  return absl::StrReplaceAll(config, {{from, to}});
}

// The base ------------------------------------------------------------------------------

// The fix was "rope_theta": 10000, which made the damage last.
TEST(LostBaseTest, AGuessedDefaultWasOfferedAsAFix) {
  for (const char* config : {R"("head_dim": 128)", R"("rope_theta": null)"}) {
    const auto response = Resolved(ModelWith("llama", config));
    for (const v1::Finding& finding : response.findings()) EXPECT_EQ(finding.fix(), "");
  }
  const std::string lost = Edited("Meta-Llama-3.1-8B.json", R"("rope_theta": 500000.0,)", "");
  EXPECT_THAT(Said(lost, "theta-defaulted"), IsEmpty());
  EXPECT_THAT(Said(lost, "theta-defaulted-scaled"), ElementsAre("warning /rope_theta -> "));
  // The sizes and the scaling are known, and with them the base.
  EXPECT_THAT(Said(lost, "theta-unlike-model"),
              ElementsAre("warning /rope_theta -> \"rope_theta\": 500000.0"));
}

TEST(LostBaseTest, ADefaultBesideAScalingWasANote) {
  const auto model = [](const char* type, int trained = 8192) {
    return ModelWith("llama", absl::StrCat(R"("rope_scaling": {"factor": 4.0, "rope_type": ")",
                                           type, R"(", "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": )",
                                           trained, "}"));
  };
  for (const char* type : {"llama3", "yarn"}) {
    EXPECT_THAT(Said(model(type), "theta-defaulted-scaled"), ElementsAre("warning /rope_theta -> "))
        << type;
  }
  for (const char* type : {"linear", "dynamic", "default"}) {
    EXPECT_THAT(Said(model(type), "theta-defaulted"), ElementsAre("note /rope_theta -> ")) << type;
  }
  // Llama 2's was 10000, and YaRN did not change it.
  EXPECT_THAT(Said(model("yarn", 4096), "theta-defaulted"), ElementsAre("note /rope_theta -> "));
  // A class with a scaling and a base of its own.
  EXPECT_THAT(Said(ModelWith("gpt_oss", ""), "theta-defaulted-scaled"), IsEmpty());
}

TEST(LostBaseTest, AnotherBaseOnTheSizesAndTheScalingOfALlamaWasOk) {
  EXPECT_THAT(Said(Edited("Meta-Llama-3.1-8B.json", "500000.0", "10000.0"), "theta-unlike-model"),
              ElementsAre("warning /rope_theta -> \"rope_theta\": 500000.0"));
  EXPECT_THAT(Said(ReadConfig("Meta-Llama-3.1-8B.json"), "theta-unlike-model"), IsEmpty());
  // The same sizes and scaling in another family, whose base is 1e6.
  EXPECT_THAT(Said(ReadConfig("EXAONE-3.5-7.8B-Instruct.json"), "theta-unlike-model"), IsEmpty());
}

// Misspelt keys -----------------------------------------------------------------------------

TEST(MisspeltKeyTest, AKeyOfThePositionsWithASlipInItWasIgnoredInSilence) {
  const auto said = [](const char* type, const char* more) {
    return absl::StrJoin(Said(ModelWith(type, more), "key-misspelt"), "\n");
  };
  EXPECT_EQ(said("llama", R"("rope_tetha": 5e5)"), "warning /rope_tetha -> \"rope_theta\": 5e5");
  EXPECT_EQ(said("llama", R"("ropeTheta": 5e5)"), "warning /ropeTheta -> \"rope_theta\": 5e5");
  EXPECT_EQ(said("llama", R"("rope-theta": 5e5)"), "warning /rope-theta -> \"rope_theta\": 5e5");
  EXPECT_EQ(said("llama", R"("rope_scalling": {"type": "linear", "factor": 2.0})"),
            "warning /rope_scalling -> \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.0}");
  EXPECT_EQ(said("stablelm", R"("partial_rotary_facter": 0.5)"),
            "warning /partial_rotary_facter -> \"partial_rotary_factor\": 0.5");
  EXPECT_EQ(said("gpt_neox", R"("rotary_emb_bse": 5e5)"),
            "warning /rotary_emb_bse -> \"rotary_emb_base\": 5e5");
  EXPECT_EQ(said("gemma3_text", R"("num_hidden_layers": 6, "rope_local_base_frq": 1e4)"),
            "warning /rope_local_base_frq -> \"rope_local_base_freq\": 1e4");
  EXPECT_EQ(said("llama", R"("headDim": 64)"), "warning /headDim -> \"head_dim\": 64");
  EXPECT_EQ(said("llama", R"("v_head_dim": 64, "rope_thetas": null)"), "");
  EXPECT_EQ(absl::StrJoin(Said(R"({"model_type": "llama", "hidden_size": 4096, "rope_theta": 1e4,
                                   "num_attention_heads": 32, "max_position_embedding": 8192})",
                               "key-misspelt"),
                          ""),
            "warning /max_position_embedding -> \"max_position_embeddings\": 8192");
  EXPECT_EQ(
      absl::StrJoin(Said(R"({"model_type": "t5", "d_model": 8, "num_heads": 2, "num_layers": 1,
                                   "relative_attention_num_bucket": 64})",
                         "key-misspelt"),
                    ""),
      "warning /relative_attention_num_bucket -> \"relative_attention_num_buckets\": 64");
}

TEST(MisspeltKeyTest, TheRightKeyBesideItIsWhatCounts) {
  EXPECT_THAT(Said(ModelWith("llama", R"("rope_theta": 1e4, "rope_tetha": 5e5)"), "key-misspelt"),
              IsEmpty());
  EXPECT_THAT(Said(ModelWith("llama", R"("rope_parameters": {"rope_theta": 1e4, "rope_type":
                                         "default"}, "ropeTheta": 5e5)"),
                   "key-misspelt"),
              IsEmpty());
  EXPECT_THAT(Said(ModelWith("llama", R"("rope_theta": 1e4, "max_src_len": 8, "rotary_bass": 1)"),
                   "key-misspelt"),
              IsEmpty());
  // A null is no value, and another name of the base would be contradicted by the fix.
  EXPECT_THAT(Said(ModelWith("llama", R"("rope_scaling": null, "rope_scalling": {"type": "linear",
                                         "factor": 2.0})"),
                   "key-misspelt"),
              ::testing::SizeIs(1));
  EXPECT_THAT(Said(ModelWith("llama", R"("rotary_base": 1e4, "rope_tetha": 5e5)"), "key-misspelt"),
              ElementsAre("warning /rope_tetha -> "));
}

TEST(MisspeltKeyTest, AKeyOfTheMapWithASlipInItWasANote) {
  const std::string config = ModelWith("llama", R"("rope_theta": 1e4, "rope_scaling": {
      "rope_type": "yarn", "factor": 4.0, "original_max_position_embedings": 2048,
      "attention_facter": 1.5, "finetuned": true})");
  EXPECT_THAT(Said(config, "key-misspelt"),
              ElementsAre("warning /rope_scaling/original_max_position_embedings -> "
                          "\"original_max_position_embeddings\": 2048",
                          "warning /rope_scaling/attention_facter -> \"attention_factor\": 1.5"));
  EXPECT_THAT(Said(config, "rope-key-unknown"), ElementsAre("note /rope_scaling/finetuned -> "));
}

// What the file says of the right key is not what they mean.
TEST(MisspeltKeyTest, AMisspeltKeyOfTheOverridesChangedNothingInSilence) {
  const std::string config = ReadConfig("Meta-Llama-3.1-8B.json");
  EXPECT_THAT(SaidWith(R"({"rope_tetha": 1e6})", config, "key-misspelt"),
              ElementsAre("warning /rope_tetha -> "));
  EXPECT_THAT(
      SaidWith(R"({"rope_scalling": {"type": "linear", "factor": 2.0}})", config, "key-misspelt"),
      ElementsAre("warning /rope_scalling -> "));
  EXPECT_THAT(SaidWith(R"({"rope_theta": 1e6, "rope_tetha": 1e6})", config, "key-misspelt"),
              IsEmpty());
}

TEST(MisspeltKeyTest, NoKeyOfARealModelIsCalledMisspelt) {
  int read = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(POSENC_TEST_DATA "/golden/configs")) {
    const auto response = testing::Resolve(ReadConfig(entry.path().filename().string()));
    if (!response.ok()) continue;
    ++read;
    EXPECT_THAT(Said(*response, "key-misspelt"), IsEmpty()) << entry.path();
  }
  EXPECT_GT(read, 150);
}

// Axes --------------------------------------------------------------------------------------

// vLLM's uses_mrope asks for the key; images had the positions of text.
TEST(LostAxesTest, AModelWithoutItsSectionsWasOk) {
  const auto lost = Resolved(Edited("Qwen2-VL-7B-Instruct.json", "rope_scaling", "no_scaling"));
  EXPECT_THAT(Said(lost, "mrope-missing"), ElementsAre("warning /rope_scaling -> "));
  EXPECT_THAT(MessageOf("mrope-missing", lost),
              HasSubstr("The family's own, 16, 24, 24, are used here."));
  EXPECT_THAT(Said(ReadConfig("Qwen2-VL-7B-Instruct.json"), "mrope-missing"), IsEmpty());
  EXPECT_THAT(Said(ModelWith("hunyuan_vl", R"("rope_scaling": {"type": "xdrope",
                                              "alpha": 1000.0})"),
                   "mrope-missing"),
              ElementsAre("warning /rope_scaling/xdrope_section -> "));
  // Its own model has positions of one axis.
  EXPECT_THAT(Said(ReadConfig("MiniCPM-V-4_6.json"), "mrope-missing"), IsEmpty());
}

TEST(LostAxesTest, SectionsThatNoLongerInterleaveWereOk) {
  const auto model = [](const char* more) {
    return ModelWith("qwen3_vl_text", absl::StrCat(R"("rope_theta": 5e6, "rope_scaling": {
        "rope_type": "default", "mrope_section": [24, 20, 20])",
                                                   more, "}"));
  };
  const std::vector<std::string> said = {
      "warning /rope_scaling/mrope_interleaved -> \"mrope_interleaved\": true"};
  EXPECT_EQ(Said(model(""), "mrope-missing"), said);
  EXPECT_EQ(Said(model(R"(, "mrope_interleaved": false)"), "mrope-missing"), said);
  EXPECT_THAT(Said(model(R"(, "mrope_interleaved": true)"), "mrope-missing"), IsEmpty());
}

// Lengths -----------------------------------------------------------------------------------

TEST(SwappedLengthsTest, AFactorBelowOneThatFollowsFromTheLengthsWasANote) {
  const std::string config = ReadConfig("Phi-3.5-mini-instruct.json");
  const std::string swapped = absl::StrReplaceAll(
      config, {{R"("max_position_embeddings": 131072)", R"("max_position_embeddings": 4096)"},
               {R"("original_max_position_embeddings": 4096)",
                R"("original_max_position_embeddings": 131072)"}});
  EXPECT_THAT(Said(config, "lengths-swapped"), IsEmpty());
  EXPECT_THAT(Said(swapped, "lengths-swapped"),
              ElementsAre("error /original_max_position_embeddings -> "));
  EXPECT_THAT(Said(swapped, "original-length-too-long"), IsEmpty());
  const auto yarn = [](const char* factor) {
    return ModelWith("llama", absl::StrCat(R"("rope_theta": 1e4, "rope_scaling": {
        "rope_type": "yarn", "original_max_position_embeddings": 32768, "factor": )",
                                           factor, "}"));
  };
  EXPECT_THAT(Said(yarn("null"), "lengths-swapped"),
              ElementsAre("error /rope_scaling/original_max_position_embeddings -> "));
  // transformers warns of a factor that is given, and uses it.
  EXPECT_THAT(Said(yarn("4.0"), "lengths-swapped"), IsEmpty());
  EXPECT_THAT(Said(yarn("4.0"), "factor-mismatch"),
              ElementsAre("warning /rope_scaling/factor -> "));
}

}  // namespace
}  // namespace posenc
