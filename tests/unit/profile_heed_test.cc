// Profiles: what a table's header says of keys that the stack reads in its own way.
// Facts as cited in model_config/profile_findings.cc.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/engine/engine.h"
#include "lib/model_config/profile.h"
#include "tests/unit/profile_testing.h"

namespace posenc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The exporter writes two tables; ours is one of them, and did not say which.
TEST(ProfileTest, TheTableOfOnnxDidNotSayWhichOfTheTwoItIs) {
  const auto header = [](int64_t max_model_len, int64_t sequence_length) {
    v1::GetTableRequest request = Request(Config("Phi-3.5-mini-instruct.json"), "onnx");
    if (max_model_len > 0) request.mutable_format()->set_max_model_len(max_model_len);
    if (sequence_length > 0) request.mutable_model()->set_sequence_length(sequence_length);
    return Header(request);
  };
  const v1::TableHeader long_rows = header(0, 0);
  EXPECT_GT(long_rows.spec().rope().longrope().sequence_length(), 4096);
  const auto message = [](const v1::TableHeader& of) {
    return of.findings(of.findings_size() - 1).message();
  };
  ASSERT_GT(long_rows.findings_size(), 0);
  EXPECT_EQ(message(long_rows),
            "onnx writes two tables, of short rows for sequences of at most 4096 positions and of "
            "long rows for others. This table has the long ones; sequence_length 4096 gives the "
            "short ones.");
  // By what the request says in either way.
  for (const v1::TableHeader& short_rows : {header(4096, 0), header(0, 4096)}) {
    EXPECT_EQ(short_rows.spec().rope().longrope().sequence_length(), 4096);
    EXPECT_THAT(message(short_rows), HasSubstr("This table has the short ones; sequence_length "
                                               "4097 gives the long ones."));
  }
}

std::vector<std::string> IgnoredKeys(const std::string& config, const std::string& profile) {
  std::vector<std::string> keys;
  const v1::TableHeader header = Header(Request(config, profile));
  for (const v1::Finding& finding : header.findings()) {
    if (finding.rule() != "profile-ignores-key") continue;
    EXPECT_GT(finding.line(), 0);
    keys.push_back(finding.pointer());
  }
  return keys;
}

// serving-stacks section 4, row by row.
TEST(ProfileTest, TheHeaderListsTheKeysThatAStackReadsInItsOwnWay) {
  const auto model = [](const std::string& scaling, const std::string& type = "llama") {
    return R"({"model_type": ")" + type + R"(", "hidden_size": 512, "num_attention_heads": 4,
      "qk_rope_head_dim": 64, "max_position_embeddings": 4096, "rope_theta": 10000.0,
      "rope_scaling": {)" +
           scaling + "}}";
  };
  const std::string linear = model(R"("rope_type": "linear", "factor": 3.0)");
  EXPECT_THAT(IgnoredKeys(linear, "vllm"), ElementsAre("/rope_scaling/factor"));
  // It divides positions, and appends rows at load that it does not divide.
  EXPECT_THAT(IgnoredKeys(linear, "sglang"),
              ElementsAre("/rope_scaling/factor", "/rope_scaling/factor"));
  EXPECT_THAT(IgnoredKeys(linear, "trtllm"), ElementsAre());
  const std::string dynamic = model(R"("rope_type": "dynamic", "factor": 4.0)");
  for (const char* profile : {"sglang", "vllm", "trtllm"}) {
    EXPECT_THAT(IgnoredKeys(dynamic, profile), ElementsAre("/rope_scaling/factor")) << profile;
  }
  const std::string yarn =
      R"("rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024)";
  const std::string alone = model(yarn + R"(, "mscale": 0.5, "beta_fast": 32)");
  // transformers does not heed it either: no difference is none to report.
  EXPECT_THAT(IgnoredKeys(alone, "vllm"), ElementsAre());
  EXPECT_THAT(IgnoredKeys(alone, "sglang"), ElementsAre("/rope_scaling/factor"));
  EXPECT_THAT(IgnoredKeys(alone, "trtllm"), ElementsAre("/rope_scaling/mscale"));
  EXPECT_THAT(IgnoredKeys(alone, "onnx"), ElementsAre("/rope_scaling/mscale"));
  EXPECT_THAT(IgnoredKeys(alone, "hf"), ElementsAre());
  EXPECT_THAT(IgnoredKeys(model(yarn), "onnx"), ElementsAre("/rope_scaling/beta_fast"));
  const std::string latent =
      model(yarn + R"(, "truncate": false, "mscale": 1, "mscale_all_dim": 1)", "deepseek_v3");
  EXPECT_THAT(IgnoredKeys(latent, "vllm"), ElementsAre("/rope_scaling/truncate"));
  EXPECT_THAT(IgnoredKeys(latent, "sglang"),
              ElementsAre("/rope_scaling/factor", "/rope_scaling/truncate"));
  EXPECT_THAT(IgnoredKeys(model(yarn + R"(, "attn_factor": 0.9, "beta_fast": 32)"), "hf"),
              ElementsAre("/rope_scaling/attn_factor"));
  const std::string phi = Config("Phi-3.5-mini-instruct.json");
  EXPECT_THAT(IgnoredKeys(phi, "trtllm"), IsEmpty())
      << "its factor is the ratio of the lengths, not a key of the file";
  // Of the class, not of the file: at the map that the file would have.
  EXPECT_THAT(IgnoredKeys(R"({"model_type": "ministral3", "hidden_size": 512,
                              "num_attention_heads": 4, "rope_theta": 1e6})",
                          "vllm"),
              ElementsAre("/rope_scaling/mscale", "/rope_scaling/mscale_all_dim"));
}

// sgl-project/sglang#31232: it heeds the pair since July 2026.
TEST(ProfileTest, SglangHeedsThePairOfMscales) {
  const std::string config = R"({"model_type": "llama", "hidden_size": 512,
      "num_attention_heads": 4, "max_position_embeddings": 4096, "rope_theta": 10000.0,
      "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                       "original_max_position_embeddings": 1024}})";
  EXPECT_THAT(IgnoredKeys(config, "sglang"), ElementsAre("/rope_scaling/factor"));
  EXPECT_THAT(IgnoredKeys(config, "vllm"),
              ElementsAre("/rope_scaling/mscale", "/rope_scaling/mscale_all_dim"));
}

// vLLM's DeepSeek-V4 keeps its cache in float32 and multiplies by 1, whatever the file calls the
// family; the profile had the file's model_type to go by, and the multiplier of YaRN.
TEST(ProfileTest, DeepseekV4WasTakenForAYarnOfTheCheckpointsDtype) {
  v1::GetTableRequest request = Request(Config("DeepSeek-V4-Flash-FP8-sgl.json"), "vllm");
  request.mutable_model()->set_layer_type("compress");
  const v1::TableHeader header = Header(request);
  EXPECT_EQ(header.tensors(0).dtype(), v1::DTYPE_F32);
  for (const v1::Finding& finding : header.findings()) {
    EXPECT_NE(finding.rule(), "profile-ignores-key") << finding.message();
  }
}

// It has 0.07 for 0.1, in vLLM as here; SGLang knows no such type.
TEST(ProfileTest, Telechat3WasSaidToMultiplyByTheFormulaOfYarn) {
  const std::string config = R"({"model_type": "telechat3", "hidden_size": 512,
      "num_attention_heads": 4, "max_position_embeddings": 32768, "rope_theta": 1e6,
      "rope_scaling": {"rope_type": "telechat3-yarn", "factor": 4.0,
                       "original_max_position_embeddings": 8192}})";
  EXPECT_THAT(IgnoredKeys(config, "vllm"), ElementsAre("/rope_scaling/factor"));
  Engine engine;
  EXPECT_EQ(engine.GetTable(Request(config, "sglang")).status().message(),
            "format.profile: sglang does not know rope_type yarn_telechat3 and refuses this "
            "config");
}

TEST(ProfileTest, NtkIsReadInItsOwnWayOrNotKnown) {
  const auto ntk = [](const char* more) {
    return absl::StrCat(R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 4,
      "max_position_embeddings": 4096, "rope_theta": 1e4, "rope_scaling": {"rope_type": "ntk", )",
                        more, "}}");
  };
  EXPECT_THAT(IgnoredKeys(ntk(R"("factor": 2.0)"), "vllm"), ElementsAre("/rope_scaling/factor"));
  EXPECT_THAT(IgnoredKeys(ntk(R"("alpha": 2.0)"), "vllm"), ElementsAre("/rope_scaling/alpha"));
  Engine engine;
  for (const char* stack : {"sglang", "hf"}) {
    EXPECT_EQ(engine.GetTable(Request(ntk(R"("factor": 2.0)"), stack)).status().message(),
              absl::StrCat("format.profile: ", stack,
                           " does not know rope_type ntk and refuses this config"));
  }
  // HunYuan's alpha is known to all.
  for (const char* stack : {"vllm", "sglang", "hf"}) {
    EXPECT_THAT(IgnoredKeys(Config("Hunyuan-A13B-Instruct.json"), stack), ElementsAre()) << stack;
  }
}

}  // namespace
}  // namespace posenc
