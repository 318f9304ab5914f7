// Rules that hold for all families: the table of findings, the rows and layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/model_config/default_maps.h"
#include "lib/model_config/family_table.h"
#include "lib/model_config/findings.h"
#include "lib/model_config/resolve.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using ::posenc::testing::FindingOf;
using ::posenc::testing::ModelWith;
using ::posenc::testing::ReadConfig;
using ::posenc::testing::Refusal;
using ::posenc::testing::Resolve;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

// The table of findings -----------------------------------------------------------

TEST(ModelConfigRulesTest, TheRuleTableIsSortedAndInTheOrderOfTheEnum) {
  const auto table = RuleTable();
  for (size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(table[i].rule), i) << table[i].id;
    EXPECT_THAT(std::string(table[i].id), MatchesRegex("[a-z0-9-]+"));
    EXPECT_FALSE(table[i].meaning.empty());
    EXPECT_NE(table[i].severity, v1::SEVERITY_UNSPECIFIED);
    EXPECT_TRUE(i == 0 || table[i - 1].id < table[i].id) << table[i].id;
  }
}

TEST(ModelConfigRulesTest, TheDocumentedListIsTheTable) {
  std::string rows;
  for (const RuleInfo& info : RuleTable()) {
    const absl::string_view severity = info.severity == v1::SEVERITY_NOTE      ? "note"
                                       : info.severity == v1::SEVERITY_WARNING ? "warning"
                                                                               : "error";
    absl::StrAppend(&rows, "| ", info.id, " | ", severity, " | ", info.meaning, " | ", info.fix,
                    " |\n");
  }
  std::ifstream file(absl::StrCat(POSENC_TEST_DATA, "/../lib/model_config/FINDINGS.md"));
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(absl::EndsWith(text.str(), rows)) << rows;
}

TEST(ModelConfigRulesTest, ARuleSpeaksOnceAboutAPlaceAndNotWithoutEnd) {
  Findings findings;
  const auto document = JsonDocument::Parse("{\"a\": 1, \"b\": 2}", "config_json");
  for (int i = 0; i < 2; ++i) findings.Add(Rule::kThetaNull, (*document)->root()["a"], {});
  findings.Add(Rule::kThetaNull, (*document)->root()["b"], {});
  EXPECT_EQ(findings.all().size(), 2u);
  for (int i = 0; i < 1000; ++i) {
    findings.AddMissing(Rule::kSizeDefaulted, (*document)->root(), absl::StrCat("key", i), {});
  }
  EXPECT_LE(findings.all().size(), 256u);
}

TEST(ModelConfigRulesTest, KeysOfOtherFamiliesAreNotIgnoredInSilence) {
  for (const char* key :
       {R"("rotary_pct": 0.25)", R"("rotary_dim": 64)", R"("no_rope_layers": [1, 1, 1, 0])",
        R"("rope_local_base_freq": 1e4)", R"("layer_rope_theta": [1e4])"}) {
    const auto response = Resolve(ModelWith("llama", absl::StrCat(R"("rope_theta": 1e4, )", key)));
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_NE(testing::FindingOf(*response, "rope-key-ignored"), nullptr) << key;
  }
  const auto read = Resolve(ModelWith("gpt_neox", R"("rotary_emb_base": 1e4, "rotary_pct": 0.25)"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(testing::FindingOf(*read, "rope-key-ignored"), nullptr);
}

// The rows ------------------------------------------------------------------------------

TEST(ModelConfigRulesTest, NoModelTypeIsInTwoRowsOfOneTable) {
  for (const auto& tables :
       {std::vector{DecoderRows(), LayeredRows(), EncoderRows()}, std::vector{VisionRows()}}) {
    std::set<std::string> seen;
    for (const auto& table : tables) {
      for (const ModelFamily& family : table) {
        for (absl::string_view type : absl::StrSplit(family.model_types, ' ')) {
          EXPECT_FALSE(type.empty());
          EXPECT_TRUE(seen.insert(std::string(type)).second) << type;
        }
      }
    }
  }
}

TEST(ModelConfigRulesTest, DefaultMapsOfTheRowsParse) {
  int maps = 0;
  for (const auto& table : {DecoderRows(), LayeredRows()}) {
    for (const ModelFamily& family : table) {
      if (family.rope.default_map.empty()) continue;
      const JsonValue map = DefaultMap(family.rope.default_map);
      // Of one RoPE, or one for each layer type.
      const JsonValue first = map["rope_type"].present() ? map : map.children().front();
      EXPECT_TRUE(map.is_object() && first["rope_type"].is_string()) << family.model_types;
      ++maps;
    }
  }
  EXPECT_EQ(maps, 9);
}

// Every family resolves a file with nothing but the common sizes.
TEST(ModelConfigRulesTest, EveryKnownTypeAnswersTheCommonSizes) {
  for (const std::string& type : KnownModelTypes()) {
    if (absl::EndsWith(type, "Model")) continue;  // a diffusion model's class, no model_type
    // Their parts have the sizes: model_config_composites_test.
    if (type == "t5gemma2" || type == "blt") continue;
    // Half of their heads rotate, which their classes do not say.
    if (type.starts_with("glm4v") || type.starts_with("glm_")) {
      EXPECT_TRUE(Resolve(ModelWith(type, R"("partial_rotary_factor": 0.5)")).ok()) << type;
      continue;
    }
    // Its base grows past seq_length, unless the file says otherwise.
    if (type == "qwen") {
      EXPECT_TRUE(Resolve(ModelWith(type, R"("seq_length": 2048)")).ok());
      continue;
    }
    // 0.9 of a head is even for few heads only: Moonshine's are 36 wide.
    const std::string config =
        absl::StartsWith(type, "moonshine")
            ? absl::StrCat(R"({"model_type": ")", type,
                           R"(", "hidden_size": 288, "num_attention_heads": 8})")
            : ModelWith(type, R"("num_hidden_layers": 8, "image_size": 224, "patch_size": 14)");
    const auto response = Resolve(config);
    EXPECT_TRUE(response.ok() && response->encodings_size() > 0)
        << type << ": " << response.status();
  }
}

TEST(ModelConfigRulesTest, AnUnknownTypeWithStandardKeysIsReadByTheGenericRules) {
  const auto response = Resolve(ModelWith("nobody_knows", R"("rope_theta": 500000)"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->encodings(0).spec().rope().rope_theta(), 500000);
  ASSERT_NE(FindingOf(*response, "model-type-unknown"), nullptr);
  EXPECT_EQ(FindingOf(*response, "model-type-unknown")->severity(), v1::SEVERITY_WARNING);
  EXPECT_EQ(Refusal(ModelWith("nobody_knows", "")),
            "config_json/model_type: is not a model family that is known here: \"nobody_knows\"");
}

TEST(ModelConfigRulesTest, AnUnknownTypeIsReadByItsClass) {
  const auto response = Resolve(
      ModelWith("my_finetune", R"("architectures": ["Gemma2ForCausalLM"], "head_dim": 256)"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->encodings(0).spec().rope().head_dim(), 256);
  EXPECT_NE(FindingOf(*response, "model-type-unknown"), nullptr);
}

// Layers ---------------------------------------------------------------------------------

TEST(ModelConfigRulesTest, ANestedNullIsNoRotation) {
  const auto response = Resolve(ModelWith("llama", R"("num_hidden_layers": 4,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
                        "full_attention"],
        "rope_parameters": {"full_attention": null,
                            "sliding_attention": {"rope_type": "default", "rope_theta": 2e4}})"));
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->encodings_size(), 1);
  EXPECT_THAT(response->encodings(0).layers(), ElementsAre(0, 2));
  EXPECT_THAT(response->encodings(0).nope_layers(), ElementsAre(1, 3));
}

TEST(ModelConfigRulesTest, PatternsStandInForLayerTypes) {
  const auto layers = [](absl::string_view model_type, absl::string_view more) {
    const auto response = Resolve(ModelWith(model_type, more));
    EXPECT_TRUE(response.ok()) << response.status();
    const auto& list = response->encodings(0).layers();
    return std::vector<int64_t>(list.begin(), list.end());
  };
  EXPECT_THAT(layers("gemma3_text", R"("num_hidden_layers": 13)"), ElementsAre(5, 11));
  EXPECT_THAT(layers("gemma4_text", R"("num_hidden_layers": 8)"), ElementsAre(5, 7))
      << "the last is full whatever the pattern";
  EXPECT_THAT(layers("modernbert", R"("num_hidden_layers": 5)"), ElementsAre(0, 3));
  EXPECT_THAT(layers("cohere2", R"("num_hidden_layers": 5)"), ElementsAre(0, 1, 2, 4));
  EXPECT_THAT(layers("exaone4", R"("num_hidden_layers": 5, "sliding_window": 4096,
                                   "sliding_window_pattern": "LLLG")"),
              ElementsAre(0, 1, 2, 4));
  EXPECT_THAT(layers("exaone4", R"("num_hidden_layers": 5, "sliding_window": null)"), IsEmpty())
      << "all rotate";
  EXPECT_THAT(layers("llama4_text", R"("num_hidden_layers": 5, "no_rope_layers": [])"),
              ElementsAre(0, 1, 2, 4));
  EXPECT_THAT(
      layers("mllama_text_model", R"("num_hidden_layers": 4, "cross_attention_layers": [1, 3])"),
      ElementsAre(0, 2));
}

TEST(ModelConfigRulesTest, ABaseALayerGroupsTheLayers) {
  const auto response = Resolve(ModelWith(
      "granite_swa", R"("num_hidden_layers": 4, "layer_rope_theta": [1e4, 0, 1e6, 1e4])"));
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->encodings_size(), 2);
  EXPECT_THAT(response->encodings(0).layers(), ElementsAre(0, 3));
  EXPECT_EQ(response->encodings(1).spec().rope().rope_theta(), 1e6);
  EXPECT_THAT(response->encodings(1).nope_layers(), ElementsAre(1));
}

TEST(ModelConfigRulesTest, AListShorterThanTheModelIsRefused) {
  EXPECT_EQ(Refusal(ModelWith("gemma3_text", R"("num_hidden_layers": 3,
                                                "layer_types": ["full_attention"])")),
            "config_json/layer_types: must have an entry for each of the 3 layers, has 1");
}

// Keys that only some families have -------------------------------------------------

TEST(ModelConfigRulesTest, SwitchesOfRope) {
  const auto kind = [](absl::string_view model_type, absl::string_view more) {
    const auto response = Resolve(ModelWith(model_type, more));
    EXPECT_TRUE(response.ok()) << response.status();
    return response->encodings(0).kind();
  };
  EXPECT_EQ(kind("zamba2", R"("use_mem_rope": true)"), "rope");
  EXPECT_EQ(kind("zamba2", ""), "none");
  EXPECT_EQ(kind("granitemoehybrid", R"("position_embedding_type": "rope")"), "rope");
  EXPECT_EQ(kind("granitemoehybrid", R"("position_embedding_type": "nope")"), "none");
  EXPECT_EQ(kind("kimi_linear", R"("mla_use_nope": true)"), "none");
  EXPECT_EQ(kind("falcon", R"("alibi": true)"), "alibi");
  EXPECT_EQ(kind("bert", R"("position_embedding_type": "relative_key")"), "relative_key");
  EXPECT_EQ(kind("mpt", R"("attn_config": {"alibi": false}, "max_seq_len": 2048)"), "learned");
}

TEST(ModelConfigRulesTest, ScalingsOutsideAnyMap) {
  const auto spec = [](absl::string_view model_type, absl::string_view more) {
    return testing::TheEncoding(ModelWith(model_type, more)).spec().rope();
  };
  EXPECT_EQ(spec("phi3small", R"("rope_position_scale": 4)").linear().factor(), 4);
  EXPECT_FALSE(spec("phi3small", R"("rope_position_scale": 1.0)").has_linear());
  EXPECT_EQ(spec("qwen", R"("use_dynamic_ntk": true, "seq_length": 2048)")
                .dynamic()
                .max_position_embeddings(),
            2048);
  EXPECT_EQ(spec("chatglm", R"("rope_ratio": 500)").rope_theta(), 5e6);
  EXPECT_EQ(spec("ministral3", R"("head_dim": 128)").yarn().factor(), 16) << "the class's default";
}

// QWenConfig: use_dynamic_ntk=True, use_logn_attn=True.
TEST(ModelConfigRulesTest, SwitchesOfQwen1WereOffWhereItsClassHasThemOn) {
  const auto unsaid = testing::TheEncoding(ModelWith("qwen", R"("seq_length": 8192)"));
  EXPECT_EQ(unsaid.rope_type(), "dynamic");
  EXPECT_EQ(unsaid.spec().rope().dynamic().max_position_embeddings(), 8192);
  EXPECT_EQ(unsaid.query_scale().rule(), "logn");
  for (const char* off : {"false", "null"}) {
    const auto encoding = testing::TheEncoding(
        ModelWith("qwen", absl::StrCat(R"("seq_length": 8192, "use_dynamic_ntk": )", off,
                                       R"(, "use_logn_attn": )", off)));
    EXPECT_FALSE(encoding.spec().rope().has_dynamic()) << off;
    EXPECT_FALSE(encoding.has_query_scale()) << off;
  }
  EXPECT_THAT(testing::Refusal(ModelWith("qwen", "")),
              ::testing::HasSubstr("config_json/seq_length: is required beside use_dynamic_ntk"));
  EXPECT_EQ(testing::TheEncoding(ModelWith("llama", R"("seq_length": 8192)")).rope_type(),
            "default");
}

TEST(ModelConfigRulesTest, QueriesThatAreScaledByTheirPosition) {
  const auto scale = [](absl::string_view config) {
    return testing::TheEncoding(config).query_scale();
  };
  const v1::QueryScale ministral = scale(ReadConfig("ERNIE-Image-pe-ministral3.json"));
  EXPECT_EQ(ministral.rule(), "floor_log");
  EXPECT_EQ(ministral.beta(), 0.1);
  EXPECT_EQ(ministral.length(), 16384);
  const auto llama4 = Resolve(ReadConfig("Llama-4-Scout-17B-16E-Instruct.json"));
  EXPECT_EQ(llama4->encodings(0).query_scale().shift(), 1);
  EXPECT_TRUE(llama4->encodings(0).query_scale().nope_layers_only());
  const v1::QueryScale qwen = scale(ReadConfig("Qwen-7B-Chat.json"));
  EXPECT_EQ(qwen.rule(), "logn");
  EXPECT_EQ(qwen.length(), 8192);
}

// Llama4TextConfig's default was the number 4, which files have still.
TEST(ModelConfigRulesTest, Llama4sTuningAsANumberWasRefused) {
  const auto rule = [](absl::string_view tuning) {
    return Resolve(ModelWith("llama4_text", absl::StrCat(R"("attn_temperature_tuning": )", tuning)))
        ->encodings(0)
        .query_scale()
        .rule();
  };
  for (absl::string_view on : {"4", "1", "true"}) EXPECT_EQ(rule(on), "floor_log") << on;
  for (absl::string_view off : {"0", "false"}) EXPECT_EQ(rule(off), "") << off;
}

TEST(ModelConfigRulesTest, AxesOfADiffusionTransformer) {
  const auto axes = [](absl::string_view list) {
    return absl::StrCat(R"({"_class_name": "FluxTransformer2DModel", "attention_head_dim": 64,)",
                        R"("axes_dims_rope": )", list, "}");
  };
  const auto response = Resolve(axes("[8, 28, 28]"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->encodings(0).spec().axial_rope().axes(1).dim(), 28);
  EXPECT_EQ(
      Refusal(axes("[8, 28]")),
      "config_json/axes_dims_rope: must be 3 even numbers that sum to the head's 64 channels, "
      "are 2 that sum to 36");
  EXPECT_EQ(Refusal(R"({"_class_name": "UNet2DConditionModel"})"),
            "config_json/_class_name: is not a class that is known here: "
            "\"UNet2DConditionModel\"");
}

}  // namespace
}  // namespace posenc
