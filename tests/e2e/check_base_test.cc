// posenc check --base: one finding for what was changed once, at the key that was changed; and
// what was merged over a model's config.
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapidjson/document.h"
#include "tests/e2e/check_run.h"

namespace posenc::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Llama(const std::string& more) {
  return absl::StrCat(R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 4,
 "rope_theta": 10000.0, "max_position_embeddings": 8192)",
                      more.empty() ? "" : ", ", more, "}");
}

// Of 2048 positions: 128 * ln(2048 / (32 * 2 pi)) / (2 ln 10000) is 16.1, so pairs from 17 on turn
// slower.
std::string Yarn(const std::string& more) {
  return Llama(absl::StrCat(R"("rope_scaling": {"rope_type": "yarn",
  "original_max_position_embeddings": 2048,
  )",
                            more, "}"));
}

std::string Against(const std::string& model, const std::string& base) {
  return Check({Write("model.json", model), "--base", Write("base.json", base)}).out;
}

// What is said of the model's file, without its name.
::testing::Matcher<std::string> Says(const std::string& at, const std::string& message) {
  return HasSubstr(absl::StrCat("model.json:", at, ": error: ", message));
}

// A misspelt base, and the base's other value: one of the two is to be pasted, not both.
TEST(CheckBaseTest, TheFixesOfTheFileAndOfTheBaseContradictedEachOther) {
  const auto model = [](const char* base) {
    return absl::StrCat(R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 4,
 "max_position_embeddings": 8192, )",
                        base, "}");
  };
  const std::string base = model(R"("rope_theta": 500000.0)");
  const std::string other = Against(model(R"("rope_tetha": 1000000.0)"), base);
  EXPECT_THAT(other, AllOf(HasSubstr("[key-misspelt]"), HasSubstr("[base-theta-differs]"),
                           HasSubstr("fix: \"rope_theta\": 500000.0\n"),
                           Not(HasSubstr("\"rope_theta\": 1000000.0"))));
  // Lost: no default is offered beside it.
  EXPECT_THAT(Against(model(R"("head_dim": 128)"), base),
              AllOf(HasSubstr("fix: \"rope_theta\": 500000.0\n"),
                    Not(HasSubstr("fix: \"rope_theta\": 10000"))));
  EXPECT_THAT(Against(model(R"("rope_tetha": 500000.0)"), base),
              HasSubstr("[key-misspelt]\n    fix: \"rope_theta\": 500000.0\n"));
}

// vLLM gives images the positions of text, whatever the tables of the two are.
TEST(CheckBaseTest, LostAxesWereOkWhereTheValuesDoNotDiffer) {
  const auto model = [](const char* map) {
    return absl::StrCat(R"({"model_type": "qwen2_vl", "hidden_size": 512, "num_attention_heads": 4,
 "max_position_embeddings": 8192, "rope_theta": 1000000.0)",
                        map, "}");
  };
  const CheckResult result =
      Check({Write("model.json", model("")), "--base",
             Write("base.json",
                   model(R"(, "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]})")),
             "--fail-on", "warning"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("[mrope-missing]"));
}

TEST(CheckBaseTest, AnAttentionFactorThatWasChangedGaveTwoErrors) {
  EXPECT_THAT(Against(Yarn(R"("factor": 4.0, "attention_factor": 2.0)"),
                      Yarn(R"("factor": 4.0, "attention_factor": 1.0)")),
              AllOf(Says("4:38",
                         "text/all: attention_factor is 2, in the base 1, scores times 4 "
                         "[base-attention-differs]\n    fix in /rope_scaling: "
                         "\"attention_factor\": 1.0\n"),
                    HasSubstr("1 model, 1 error,")));
}

TEST(CheckBaseTest, WhatFollowsFromAFactorWasAnErrorOfItsOwn) {
  EXPECT_THAT(
      Against(Yarn(R"("factor": 8.0)"), Yarn(R"("factor": 4.0)")),
      AllOf(Says("4:13", "text/all: factor 8 (base 4); 47 of 64 frequencies differ"),
            HasSubstr("; attention_factor is 1.2079441541679836, in the base "
                      "1.138629436111989, scores times 1.13 [base-scaling-differs]"),
            HasSubstr("fix in /rope_scaling: \"factor\": 4.0"), HasSubstr("1 model, 1 error,")));
  // Two keys, two errors.
  EXPECT_THAT(Against(Yarn(R"("factor": 8.0, "attention_factor": 2.0)"),
                      Yarn(R"("factor": 4.0, "attention_factor": 1.0)")),
              HasSubstr("1 model, 2 errors,"));
}

TEST(CheckBaseTest, WhatFollowsFromAScalingWasAnErrorOfItsOwn) {
  EXPECT_THAT(
      Against(Llama(""), Yarn(R"("factor": 4.0)")),
      AllOf(HasSubstr("rope_type is default, in the base yarn (47 of 64 frequencies differ"),
            HasSubstr("; attention_factor is 1, in the base 1.138629436111989, scores "
                      "times 0.771) [base-scheme-differs]"),
            HasSubstr("    fix: \"rope_scaling\": {\"rope_type\": \"yarn\", "
                      "\"original_max_position_embeddings\": 2048, \"factor\": 4.0}\n"),
            HasSubstr("1 model, 1 error,")));
}

TEST(CheckBaseTest, AnotherWidthWasTheEffectOfTheScheme) {
  const std::string out = Against(Llama(R"("head_dim": 64)"), Yarn(R"("factor": 4.0)"));
  EXPECT_THAT(out, AllOf(HasSubstr("rotary_dim 64 (base 128); 32 frequencies, base 64) ["),
                         HasSubstr("in the base yarn (47 of 64 frequencies differ")));
}

TEST(CheckBaseTest, TheNumberOfHeadsWasTwoErrorsAtTheHiddenSize) {
  const std::string more = R"(, "hidden_size": 512, "rope_theta": 1e4})";
  EXPECT_THAT(
      Against(R"({"model_type": "llama", "num_attention_heads": 8)" + more,
              R"({"model_type": "llama", "num_attention_heads": 4)" + more),
      AllOf(Says("1:48",
                 "text/all: head_dim is 64, in the base 128 (rotary_dim 64 (base "
                 "128); 32 frequencies, base 64) [base-rotary-dim-differs]"),
            HasSubstr("    fix: \"num_attention_heads\": 4\n"), HasSubstr("1 model, 1 error,")));
}

TEST(CheckBaseTest, AKeyOfAllLayersWasAnErrorForEachTypeOfThem) {
  EXPECT_THAT(Check({Write("model.json",
                           R"({"model_type": "gemma3_text", "head_dim": 128,
 "num_hidden_layers": 6, "rope_theta": 1e6, "rope_local_base_freq": 1e4})"),
                     "--base",
                     Write("base.json",
                           R"({"model_type": "gemma3_text", "head_dim": 256,
 "num_hidden_layers": 6, "rope_theta": 1e6, "rope_local_base_freq": 1e4})")})
                  .out,
              AllOf(Says("1:43", "text/full_attention, text/sliding_attention: head_dim is 128"),
                    HasSubstr("1 model, 1 error,")));
}

TEST(CheckBaseTest, LayersThatChangedTheirTypeWereAnErrorForEachType) {
  const auto gemma = [](const char* pattern) {
    return absl::StrCat(R"({"model_type": "gemma3_text", "num_hidden_layers": 12,
 "rope_theta": 1e6, "rope_local_base_freq": 1e4, "sliding_window_pattern": )",
                        pattern, "}");
  };
  EXPECT_THAT(
      Against(gemma("3"), gemma("6")),
      AllOf(Says("2:76",
                 "text: 2 of 12 layers differ, from layer 2: full_attention, in "
                 "the base sliding_attention [base-layers-differ]"),
            HasSubstr("    fix: \"sliding_window_pattern\": 6\n"), HasSubstr("1 model, 1 error,")));
}

TEST(CheckBaseTest, ALengthThatADynamicScalingGrowsFromWasSaidTwice) {
  const auto dynamic = [](const char* length) {
    return absl::StrCat(R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 4,
 "rope_theta": 1e4, "rope_scaling": {"type": "dynamic", "factor": 2.0},
 "max_position_embeddings": )",
                        length, "}");
  };
  EXPECT_THAT(Against(dynamic("4096"), dynamic("8192")),
              AllOf(Says("3:29",
                         "text/all: max_position_embeddings 4096 (base 8192); at 8192 "
                         "positions 63 of 64 frequencies differ"),
                    Not(HasSubstr("sequence_length")), HasSubstr("1 model, 1 error, 0 warnings")));
}

// Its map was where it pointed, and what it does was not said.
TEST(CheckBaseTest, AScaleOfTheQueriesHadThePlaceOfTheMap) {
  const auto ministral = [](const char* beta, const char* original) {
    return absl::StrCat(R"({"model_type": "ministral3", "hidden_size": 512,
 "num_attention_heads": 4, "max_position_embeddings": 65536, "rope_parameters": {
  "rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0,
  "llama_4_scaling_beta": )",
                        beta, R"(,
  "original_max_position_embeddings": )",
                        original, "}}");
  };
  EXPECT_THAT(Against(ministral("0.2", "16384"), ministral("0.1", "16384")),
              AllOf(Says("4:27",
                         "text/all: query_scale: beta 0.2 (base 0.1); at position 65535 "
                         "queries times 1.28, in the base 1.14 [base-attention-differs]"),
                    HasSubstr("fix in /rope_parameters: \"llama_4_scaling_beta\": 0.1"),
                    HasSubstr("1 model, 1 error,")));
  // The length is the scaling's too.
  EXPECT_THAT(Against(ministral("0.1", "8192"), ministral("0.1", "16384")),
              AllOf(Says("5:39", "text/all: original_max_position_embeddings 8192"),
                    HasSubstr("1 model, 1 error,")));
  const auto llama4 = [](const char* tuning) {
    return absl::StrCat(R"({"model_type": "llama4_text", "hidden_size": 512,
 "num_attention_heads": 4, "max_position_embeddings": 65536, "num_hidden_layers": 4,
 "attn_temperature_tuning": )",
                        tuning, "}");
  };
  EXPECT_THAT(Against(llama4("false"), llama4("true")),
              AllOf(Says("3:29", "text/all: query_scale is none, in the base {"),
                    HasSubstr("    fix: \"attn_temperature_tuning\": true\n")));
}

TEST(CheckBaseTest, APairingHadNoEffect) {
  const auto deepseek = [](const char* interleave) {
    return absl::StrCat(R"({"model_type": "deepseek_v3", "hidden_size": 512,
 "num_attention_heads": 4, "rope_theta": 1e4, "qk_rope_head_dim": 64, "rope_interleave": )",
                        interleave, "}");
  };
  EXPECT_THAT(Against(deepseek("false"), deepseek("true")),
              AllOf(Says("2:90",
                         "text/all: rotation is half, in the base interleaved_to_half "
                         "(channel 0 turns with channel 32, in the base with 1) "
                         "[base-pairing-differs]"),
                    HasSubstr("    fix: \"rope_interleave\": true\n")));
}

TEST(CheckBaseTest, TheHeadsOfAlibiHadThePlaceOfTheModelType) {
  const auto bloom = [](const char* heads) {
    return absl::StrCat(R"({"model_type": "bloom", "hidden_size": 512,
 "n_head": )",
                        heads, "}");
  };
  EXPECT_THAT(Against(bloom("8"), bloom("16")),
              AllOf(Says("2:12", "text/all: num_heads 8 (base 16); 8 slopes, base 16"),
                    HasSubstr("    fix: \"n_head\": 16\n")));
}

TEST(CheckBaseTest, TheTableOfBucketsWasSaidBesideTheBuckets) {
  const auto t5 = [](const char* buckets) {
    return absl::StrCat(R"({"model_type": "t5", "d_model": 512, "num_heads": 8,
 "relative_attention_num_buckets": )",
                        buckets, "}");
  };
  EXPECT_THAT(Against(t5("64"), t5("32")), HasSubstr("1 model, 2 errors,"));
}

// What came with --hf-overrides ------------------------------------------------------------

constexpr char kOverrides[] = R"({"rope_theta": 20000, "rope_scaling": {"type": "yarn",
    "factor": 4.0, "original_max_position_embeddings": 4096}})";

TEST(CheckOverridesTest, WhatIsMergedOverAFileHasNoLineInIt) {
  const std::string model = Write("model.json", Llama(""));
  const std::vector<std::string> run = {model, "--base", Write("base.json", Llama("")),
                                        "--hf-overrides", kOverrides};
  EXPECT_THAT(
      Check(run).out,
      AllOf(HasSubstr(model + ": warning: factor is 4, but max_position_embeddings / "),
            HasSubstr("(in --hf-overrides: /rope_scaling/factor) [factor-mismatch]"),
            HasSubstr(model + ": error: text/all: rope_theta is 20000, in the base 10000 ("),
            HasSubstr("(in --hf-overrides: /rope_theta) [base-theta-differs]"),
            // A fix in the file would change nothing.
            Not(HasSubstr("fix"))));
  const auto with = [&](const char* format) {
    std::vector<std::string> arguments = run;
    arguments.insert(arguments.end(), {"--format", format});
    return Check(arguments).out;
  };
  EXPECT_THAT(with("github"),
              AllOf(HasSubstr("::error file=" + model + ",title=base-theta-differs::"),
                    HasSubstr("(in --hf-overrides: /rope_theta)"), Not(HasSubstr("line="))));
  rapidjson::Document json;
  json.Parse(with("json").c_str());
  ASSERT_FALSE(json.HasParseError());
  for (const auto& finding : json["models"][0]["findings"].GetArray()) {
    EXPECT_TRUE(finding["in_overrides"].GetBool()) << finding["rule"].GetString();
    EXPECT_EQ(finding["line"].GetInt(), 0);
  }
  rapidjson::Document sarif;
  sarif.Parse(with("sarif").c_str());
  ASSERT_FALSE(sarif.HasParseError());
  for (const auto& result : sarif["runs"][0]["results"].GetArray()) {
    EXPECT_TRUE(result["properties"]["in_overrides"].GetBool());
    EXPECT_FALSE(result["locations"][0]["physicalLocation"].HasMember("region"));
  }
}

TEST(CheckOverridesTest, ARefusalOfThemHadALineOfTheFile) {
  const std::string model = Write("model.json", Llama(""));
  const auto refused = [&](const char* overrides) {
    return Check({model, "--hf-overrides", overrides}).out;
  };
  EXPECT_THAT(refused(R"({"rope_theta": "x"})"),
              HasSubstr(model + ": error: rope_theta: must be a number, got string \"x\" (in "
                                "--hf-overrides: /rope_theta) [config-refused]"));
  EXPECT_THAT(refused(R"({"rope_scaling": {"type": "linear"}})"),
              HasSubstr(model + ": error: rope_scaling/factor: is required for rope_type linear "
                                "(in --hf-overrides: /rope_scaling/factor)"));
  EXPECT_THAT(refused("[]"), HasSubstr(model + ": error: must be a JSON object, got a list (in "
                                               "--hf-overrides)"));
  EXPECT_THAT(refused("{\n ?"), AllOf(HasSubstr(model + ": error: must be JSON"),
                                      HasSubstr("(line 2, column 2) (in --hf-overrides)")));
  // What the file itself has keeps its line.
  EXPECT_THAT(Check({Write("bad.json", Llama(R"("head_dim": 63)")), "--hf-overrides",
                     R"({"rope_theta": 1e6})"})
                  .out,
              HasSubstr("bad.json:2:70: error: "));
}

// Refusals ---------------------------------------------------------------------------------

TEST(CheckRefusalTest, WhatIsExpectedHadWhatWasFoundInIt) {
  const auto expected = [](const std::string& config) {
    rapidjson::Document json;
    json.Parse(Check({Write("refused.json", config), "--format", "json"}).out.c_str());
    return std::string(json["models"][0]["findings"][0]["expected"].GetString());
  };
  EXPECT_EQ(expected(Llama(R"("rope_scaling": {"type": "x, got y"})")),
            "one of default, linear, dynamic, ntk, yarn, longrope, llama3, proportional");
  EXPECT_EQ(expected(R"({"model_type": "smollm3", "hidden_size": 512, "num_attention_heads": 4,
                         "num_hidden_layers": 3, "no_rope_layers": [1, 0]})"),
            "have an entry for each of the 3 layers");
  EXPECT_EQ(expected(Llama(R"("rope_theta": true)")), "");
}

}  // namespace
}  // namespace posenc::testing
