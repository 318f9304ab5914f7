// posenc check, as a CI job runs it: the real program, real configs, exit codes.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapidjson/document.h"
#include "tests/e2e/check_run.h"

namespace posenc::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CheckTest, AGoodConfigPasses) {
  const CheckResult result = Check({Config("Meta-Llama-3.1-8B")});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.out, HasSubstr("Meta-Llama-3.1-8B.json: ok\n1 model, 0 errors, 0 warnings\n"));
}

// Llama 3.1 without its rope_scaling, against the real one: pairs 29 to 63 of 64 differ.
TEST(CheckTest, ALostRopeScalingIsFoundWithItsEffectInNumbers) {
  const CheckResult result =
      Check({Config("Llama-3.1-8B-Instruct-rope-null"), "--base", Config("Meta-Llama-3.1-8B")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("text/all: rope_type is default, in the base llama3 (35 of 64 "
                                    "frequencies differ, from pair 29, by up to 8x) "
                                    "[base-scheme-differs]"));
}

// Llama 3.2 1B with the factor of Llama 3.1 (llama-models#241).
TEST(CheckTest, AScaleFactorOfAnotherModelIsFound) {
  std::ifstream original(Config("Llama-3.2-1B-Instruct"));
  std::string text((std::istreambuf_iterator<char>(original)), {});
  const size_t at = text.find("\"factor\": 32.0");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 14, "\"factor\": 8.0");
  const CheckResult result =
      Check({Write("config.json", text), "--base", Config("Llama-3.2-1B-Instruct")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("factor 8 (base 32); 17 of 32 frequencies differ, from pair "
                                    "15, by up to 4x [base-scaling-differs]"));
}

// MPNet has learned rows and buckets in one part: the buckets were held against the rows.
TEST(CheckTest, AModelWithSeveralEncodingsInAPartIsLikeItself) {
  const CheckResult result =
      Check({Config("all-mpnet-base-v2"), "--base", Config("all-mpnet-base-v2")});
  EXPECT_EQ(result.exit_code, 0) << result.out;
}

// What the base alone has stands where the model's file would switch it on.
TEST(CheckTest, AnEncodingThatIsMissingHasThePlaceOfItsSwitch) {
  const auto place = [](const std::string& model, const std::string& base) {
    const std::string path = Write("tuned.json", model);
    const CheckResult result = Check({path, "--base", Write("base.json", base)});
    const size_t end = result.out.find("[base-encoding-missing]");
    EXPECT_NE(end, std::string::npos) << result.out;
    const size_t begin = result.out.rfind(path, end) + path.size() + 1;
    return result.out.substr(begin, result.out.find(": ", begin) - begin);
  };
  const std::string layoutlm = R"({"model_type": "layoutlmv2", "hidden_size": 768,
 "num_attention_heads": 12, "max_position_embeddings": 512)";
  EXPECT_EQ(place(layoutlm + ",\n \"has_spatial_attention_bias\": false}", layoutlm + "}"), "3:32");
  const std::string deberta = R"({"model_type": "deberta-v2", "hidden_size": 768,
 "num_attention_heads": 12, "max_position_embeddings": 512, "relative_attention": )";
  EXPECT_EQ(place(deberta + "false}", deberta + "true}"), "2:83");
  // A tower would be a config of its own, in the file.
  const std::string text = R"("text_config": {"model_type": "llama", "hidden_size": 512,
 "num_attention_heads": 4, "rope_theta": 10000.0})";
  EXPECT_EQ(place(R"({"model_type": "llava", )" + text + "}",
                  R"({"model_type": "llava", )" + text +
                      R"(, "vision_config": {"model_type": "clip_vision_model"}})"),
            "1:1");
}

// A difference stands at the key that decides it, or at the object which lacks it.
TEST(CheckTest, ADifferenceFromTheBaseHasAPlaceInTheModelsFile) {
  const std::string base = Write("base.json", R"({"model_type": "llama", "hidden_size": 512,
 "num_attention_heads": 4, "rope_theta": 500000.0, "max_position_embeddings": 8192,
 "rope_scaling": {"rope_type": "linear", "factor": 2.0}})");
  const std::string model = Write("tuned.json", R"({"model_type": "llama",
 "hidden_size": 512, "num_attention_heads": 4,
 "rope_theta": 10000.0,
 "max_position_embeddings": 4096})");
  const CheckResult result = Check({model, "--base", base});
  EXPECT_THAT(result.out, HasSubstr(model + ":3:16: error: text/all: rope_theta is 10000"));
  EXPECT_THAT(result.out, HasSubstr(model + ":1:1: error: text/all: rope_type is default"));
  EXPECT_THAT(result.out,
              HasSubstr(model + ":4:29: warning: text/all: max_position_embeddings is 4096"));
}

// attention_factor and mscale_all_dim had the place of the map's brace.
TEST(CheckTest, AMultiplierHadThePlaceOfTheMap) {
  const auto check = [](const std::string& type, const std::string& of_model,
                        const std::string& of_base) {
    const auto config = [&](const std::string& last) {
      return R"({"model_type": ")" + type + R"(", "hidden_size": 512, "num_attention_heads": 4,
 "rope_theta": 10000.0, "max_position_embeddings": 8192, "rope_scaling": {"rope_type": "yarn",
  "factor": 4.0, "original_max_position_embeddings": 2048,
  )" + last + "}}";
    };
    const std::string model = Write("model.json", config(of_model));
    const std::string out = Check({model, "--base", Write("base.json", config(of_base))}).out;
    const size_t end = out.find("[base-attention-differs]");
    EXPECT_NE(end, std::string::npos) << out;
    const size_t begin = out.rfind(model, end) + model.size() + 1;
    return out.substr(begin, out.find(": ", begin) - begin);
  };
  EXPECT_EQ(check("llama", R"("attention_factor": 2.0)", R"("attention_factor": 1.5)"), "4:23");
  EXPECT_EQ(check("deepseek_v3", R"("mscale_all_dim": 1.0)", R"("mscale_all_dim": 0.5)"), "4:21");
  // What the model lacks stands in no line: the map's.
  EXPECT_EQ(check("llama", R"("beta_fast": 32)", R"("attention_factor": 1.5)"), "2:74");
}

TEST(CheckTest, AnMropeThatIsMissingWasAnEmptyObjectWithoutALine) {
  const auto config = [](const std::string& type, const std::string& more) {
    return R"({"model_type": ")" + type +
           R"(", "hidden_size": 512, "num_attention_heads": 4,
 "rope_theta": 10000.0, "max_position_embeddings": 8192)" +
           more + "}";
  };
  const std::string model = Write("model.json", config("qwen2", ""));
  const std::string base = Write(
      "base.json",
      config("qwen2_vl", R"(, "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]})"));
  EXPECT_THAT(Check({model, "--base", base}).out,
              HasSubstr(model + ":1:1: error: text/all: mrope is none, in the base 16,24,24 "));
  EXPECT_THAT(Check({base, "--base", model}).out,
              HasSubstr("16,24,24 contiguous, in the base none"));
}

// Both findings told what the two do together.
TEST(CheckTest, TheEffectOfASchemeHadThatOfTheBaseInIt) {
  const auto config = [](const std::string& name, const std::string& more) {
    return Write(name, R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 4,
 "max_position_embeddings": 131072, )" +
                           more + "}");
  };
  const std::string base = config("base.json", R"("rope_theta": 500000.0, "rope_scaling":
      {"rope_type": "linear", "factor": 2.0})");
  const std::string model = config("model.json", R"("rope_theta": 10000.0)");
  const std::string out = Check({model, "--base", base}).out;
  EXPECT_THAT(out, HasSubstr("rope_type is default, in the base linear (64 of 64 frequencies "
                             "differ, from pair 0, by up to 2x)"));
  EXPECT_THAT(out, HasSubstr("in the base 500000 (63 of 64 frequencies differ, from pair 1, by"));
  // A parameter of one scheme too.
  const std::string other = config("other.json", R"("rope_theta": 10000.0, "rope_scaling":
      {"rope_type": "linear", "factor": 8.0})");
  EXPECT_THAT(
      Check({other, "--base", base}).out,
      HasSubstr("factor 8 (base 2); 64 of 64 frequencies differ, from pair 0, by up to 4x"));
}

TEST(CheckTest, WhatIsNoConfigIsRefusedQuicklyAndClearly) {
  const auto refusal = [](const std::string& name, const std::string& text) {
    const CheckResult result = Check({Write(name, text)});
    EXPECT_EQ(result.exit_code, 1) << name;
    EXPECT_THAT(result.out, HasSubstr("[config-refused]"));
    return result.out;
  };
  EXPECT_THAT(refusal("list.json", "[1, 2]"), HasSubstr("must be a JSON object, got a list"));
  EXPECT_THAT(refusal("number.json", "7"), HasSubstr("must be a JSON object, got 7"));
  EXPECT_THAT(refusal("empty.json", ""), HasSubstr("must be a JSON object, got nothing"));
  EXPECT_THAT(refusal("binary.json", std::string("\x7f"
                                                 "ELF\0\1\2",
                                                 7)),
              HasSubstr("must be JSON text, got binary data"));
  EXPECT_THAT(refusal("large.json", std::string(200'000'000, '{')),
              HasSubstr("must be at most 16777216 bytes, is larger"));
}

TEST(CheckTest, ARefusalHasAPlaceInTheFile) {
  const std::string bad = Write("bad_factor.json", R"({"model_type": "llama", "head_dim": 64,
 "rope_scaling": {"rope_type": "linear", "factor": "8"}})");
  EXPECT_THAT(Check({bad}).out, StartsWith(bad + ":2:52: error: "));
  const std::string broken = Write("broken.json", "{\"model_type\":\n ?}");
  EXPECT_THAT(Check({broken}).out, StartsWith(broken + ":2:2: error: "));
}

TEST(CheckTest, ARefusedConfigIsAFindingAndTheOthersAreStillChecked) {
  const std::string bad = Write("bad.json", R"({"model_type": "llama", "hidden_size": 64,
 "num_attention_heads": 1, "max_position_embeddings": 64,
 "rope_scaling": {"rope_type": "linear", "factor": "8"}})");
  const CheckResult result = Check({bad, Config("Meta-Llama-3.1-8B")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, StartsWith(bad));
  EXPECT_THAT(result.out, HasSubstr("[config-refused]"));
  EXPECT_THAT(result.out, HasSubstr("Meta-Llama-3.1-8B.json: ok"));
}

TEST(CheckTest, FailOnDecidesTheExitCodeOnly) {
  const std::vector<std::string> warned = {Config("Yarn-Mistral-7b-64k")};  // factor mismatch
  EXPECT_EQ(Check(warned).exit_code, 0);
  EXPECT_EQ(Check({warned[0], "--fail-on", "warning"}).exit_code, 1);
  EXPECT_EQ(Check({warned[0], "--fail-on", "never"}).exit_code, 0);
  EXPECT_EQ(Check({warned[0], "--fail-on", "sometimes"}).exit_code, 2);
}

TEST(CheckTest, AFolderIsWalkedInOrder) {
  const std::filesystem::path folder = TemporaryPath("models");
  for (const char* name : {"b", "a", "a/draft"}) {
    std::filesystem::create_directories(folder / name);
    std::filesystem::copy_file(Config("Meta-Llama-3.1-8B"), folder / name / "config.json");
  }
  const CheckResult result = Check({folder.string()});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(result.out, (folder / "a/config.json").string() + ": ok\n" +
                            (folder / "a/draft/config.json").string() + ": ok\n" +
                            (folder / "b/config.json").string() + ": ok\n" +
                            "3 models, 0 errors, 0 warnings\n");
}

TEST(CheckTest, HiddenFoldersWereWalked) {
  const std::filesystem::path folder = TemporaryPath("hidden") + "/.models";
  for (const char* name : {"a", ".git/modules/a", ".cache", "b/.cache"}) {
    std::filesystem::create_directories(folder / name);
    std::filesystem::copy_file(Config("Meta-Llama-3.1-8B"), folder / name / "config.json");
  }
  const CheckResult result = Check({folder.string()});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.out, StartsWith((folder / "a/config.json").string() + ": ok\n1 "))
      << "the folder that was named is walked, whatever its name";
}

TEST(CheckTest, AFileThatCannotBeReadIsExitCode4AndTheOthersAreStillChecked) {
  const CheckResult result = Check({TemporaryPath("missing.json"), Config("Meta-Llama-3.1-8B")});
  EXPECT_EQ(result.exit_code, 4);
  const std::string& errors = result.errors;
  EXPECT_THAT(errors, HasSubstr("missing.json"));
  EXPECT_EQ(errors.find("missing.json"), errors.rfind("missing.json")) << "said once";
  EXPECT_THAT(result.out, HasSubstr("Meta-Llama-3.1-8B.json: ok"));
  EXPECT_EQ(Check({}).exit_code, 2);
}

TEST(CheckTest, JsonAndSarifParseAndPointIntoTheFile) {
  const std::string model = Config("Yarn-Mistral-7b-64k");
  const CheckResult json = Check({model, "--format", "json"});
  rapidjson::Document report;
  report.Parse(json.out.c_str());
  ASSERT_FALSE(report.HasParseError());
  EXPECT_EQ(report["models"][0]["model"].GetString(), model);
  const auto& findings = report["models"][0]["findings"];
  ASSERT_GE(findings.Size(), 1u);
  EXPECT_GT(findings[0]["line"].GetInt(), 1);

  const CheckResult sarif = Check({model, "--format", "sarif"});
  rapidjson::Document log;
  log.Parse(sarif.out.c_str());
  ASSERT_FALSE(log.HasParseError());
  EXPECT_STREQ(log["version"].GetString(), "2.1.0");
  const auto& first = log["runs"][0]["results"][0];
  EXPECT_EQ(first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].GetString(),
            model);
  EXPECT_STREQ(first["ruleId"].GetString(), findings[0]["rule"].GetString());
}

TEST(CheckTest, SarifNamesAFileByItsUri) {
  const std::string model = Write("a model.json", R"({"model_type": "unknown"})");
  EXPECT_THAT(Check({model, "--format", "sarif"}).out, HasSubstr("a%20model.json\""));
}

TEST(CheckTest, GithubAnnotatesFileAndLine) {
  const std::string model = Config("Yarn-Mistral-7b-64k");
  const CheckResult result = Check({model, "--format", "github"});
  EXPECT_THAT(result.out, HasSubstr("::warning file=" + model + ",line="));
}

// Forges know no ./ before a file's name.
TEST(CheckTest, TheFileOfAnAnnotationBeganWithADot) {
  const std::filesystem::path folder = TemporaryPath("checkout");
  std::filesystem::create_directories(folder / "my model/sub");
  std::filesystem::copy_file(Config("Yarn-Mistral-7b-64k"), folder / "my model/sub/config.json",
                             std::filesystem::copy_options::overwrite_existing);
  for (const auto& [format, file] :
       {std::pair{"github", "::warning file=my model/sub/config.json,line="},
        std::pair{"sarif", "\"uri\": \"my%20model/sub/config.json\""}}) {
    Process process(
        {"/bin/sh", "-c",
         "cd '" + folder.string() + "' && exec '" POSENC_BINARY "' check . --format " + format});
    std::string out;
    for (std::string line; process.ReadLine(&line);) out += line + "\n";
    EXPECT_EQ(process.Wait(), 0) << process.Errors();
    EXPECT_THAT(out, HasSubstr(file));
  }
}

// A line feed in a model_type began a line of its own, which a runner takes for a command.
TEST(CheckTest, AStringOfAConfigWasALineOfTheReport) {
  const std::string hostile = R"(x\n::set-output name=a::b\r\u001b[2J\u009b%0A,é\"\\)";
  const std::string rope = R"("hidden_size": 512, "num_attention_heads": 4, "rope_theta": 1e4)";
  const std::vector<std::string> models = {
      Write("type.json", R"({"model_type": ")" + hostile + "\"}"),
      Write("generic.json", R"({"model_type": ")" + hostile + "\", " + rope + "}"),
      Write("key.json", R"({"model_type": "llama", "rope_scaling": {"rope_type": "linear",
          "factor": 2.0, ")" +
                            hostile + "\": 1}, " + rope + "}"),
      Write("rope_type.json", R"({"model_type": "llama", "rope_scaling": {"rope_type": ")" +
                                  hostile + "\"}, " + rope + "}"),
      Write("class.json", R"({"_class_name": ")" + hostile + "\"}"),
  };
  const auto lines = [&](const char* format) {
    std::vector<std::string> arguments = models;
    arguments.insert(arguments.end(), {"--format", format});
    const std::string out = Check(arguments).out;
    EXPECT_EQ(out.find_first_of("\r\x1b"), std::string::npos) << format;
    return out;
  };
  const std::string text = lines("text");
  EXPECT_EQ(text.find("\n::"), std::string::npos) << text;
  EXPECT_EQ(text.find("\xC2\x9B"), std::string::npos) << "a C1 control";
  const std::string github = lines("github");
  EXPECT_EQ(github.find("\n::set-output"), std::string::npos) << github;
  for (const char* format : {"json", "sarif"}) {
    rapidjson::Document document;
    document.Parse<rapidjson::kParseValidateEncodingFlag>(lines(format).c_str());
    EXPECT_FALSE(document.HasParseError()) << format;
  }
}

TEST(CheckTest, TheFixWasLostInGithubAndSarif) {
  const std::string model = Config("Llama-3.1-8B-Instruct-rope-null");
  const std::string fix = R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0,)";
  EXPECT_THAT(Check({model, "--format", "github"}).out, HasSubstr("%0Afix: " + fix));
  const CheckResult sarif =
      Check({model, "--base", Config("Meta-Llama-3.1-8B"), "--format", "sarif"});
  rapidjson::Document log;
  log.Parse(sarif.out.c_str());
  ASSERT_FALSE(log.HasParseError());
  const auto& run = log["runs"][0];
  const auto& lost = run["results"][0];
  EXPECT_THAT(lost["message"]["text"].GetString(), HasSubstr("\nfix: " + fix));
  EXPECT_STREQ(lost["properties"]["pointer"].GetString(), "/rope_scaling");
  EXPECT_STREQ(lost["properties"]["found"].GetString(), "null");
  EXPECT_STREQ(lost["properties"]["expected"].GetString(), "rope_type llama3");
  EXPECT_THAT(lost["properties"]["fix"].GetString(), StartsWith(fix));
  for (const auto& rule : run["tool"]["driver"]["rules"].GetArray()) {
    ASSERT_TRUE(rule.HasMember("shortDescription")) << rule["id"].GetString();
    EXPECT_STRNE(rule["shortDescription"]["text"].GetString(), "");
  }
}

TEST(CheckTest, ARefusalHasADescriptionInSarif) {
  const std::string model = Write("refused.json", "7");
  EXPECT_THAT(Check({model, "--format", "sarif"}).out,
              HasSubstr("The file is no config or contradicts itself."));
}

}  // namespace
}  // namespace posenc::testing
