// Profiles: the same checkpoint as each serving stack builds its table of it.
// Rows, layouts and dtypes: serving-stacks facts as cited in model_config/profile.cc.
#include "lib/model_config/profile.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/engine/engine.h"
#include "tests/unit/profile_testing.h"

namespace posenc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Expected {
  const char* config;
  const char* profile;
  const char* tensor;
  v1::DType dtype;
  std::vector<int64_t> shape;
};

TEST(ProfileTest, EachStackGetsItsRowsLayoutDtypeAndNames) {
  const char* const llama = "Meta-Llama-3.1-8B.json";        // bf16, 131072 rows
  const char* const yarn = "Yarn-Llama-2-70B-32k-AWQ.json";  // f16, 8192 rows, 4096 * 8
  const char* const linear = "SmolLM-360M-linear2-merged.json";
  const char* const latent = "DeepSeek-V3.json";              // bf16, 163840 rows, 4096 * 40
  const char* const axes = "Qwen2.5-VL-7B-Instruct.json";     // bf16, 128000 rows, M-RoPE
  const char* const longrope = "Phi-3.5-mini-instruct.json";  // bf16, 131072 rows, trained on 4096
  const std::vector<Expected> cases = {
      {llama, "vllm", "cos_sin_cache", v1::DTYPE_BF16, {131072, 128}},
      {llama, "sglang", "cos_sin_cache", v1::DTYPE_F32, {131072, 128}},
      {llama, "flashinfer", "cos_sin_cache", v1::DTYPE_F32, {131072, 128}},
      {llama, "hf", "cos", v1::DTYPE_BF16, {131072, 128}},
      {llama, "onnx", "cos_cache", v1::DTYPE_BF16, {131072, 64}},
      {llama, "trtllm", "embed_positions_for_gpt_attention", v1::DTYPE_F32, {131072, 64, 2}},
      {yarn, "vllm", "cos_sin_cache", v1::DTYPE_F16, {32768, 128}},
      {yarn, "sglang", "cos_sin_cache", v1::DTYPE_F32, {32768, 128}},
      {yarn, "trtllm", "embed_positions_for_gpt_attention", v1::DTYPE_F32, {8192, 64, 2}},
      {linear, "vllm", "cos_sin_cache", v1::DTYPE_F16, {8192, 64}},
      {linear, "onnx", "cos_cache", v1::DTYPE_F16, {4096, 32}},
      {llama, "trtllm_cos_sin", "rotary_cos_sin", v1::DTYPE_F32, {131072, 128}},
      {llama, "trtllm_sin_cos", "embed_positions", v1::DTYPE_F32, {131072, 128}},
      {latent, "vllm", "cos_sin_cache", v1::DTYPE_BF16, {163840, 64}},
      {latent, "trtllm", "rotary_cos_sin", v1::DTYPE_F32, {163840, 64, 2}},
      {latent, "trtllm_cos_sin", "rotary_cos_sin", v1::DTYPE_F32, {163840, 64}},
      {axes, "vllm", "cos_sin_cache", v1::DTYPE_BF16, {512000, 128}},
      {axes, "sglang", "cos_sin_cache", v1::DTYPE_F32, {128000, 128}},
      {longrope, "vllm", "long_short_cos_sin_cache", v1::DTYPE_BF16, {4096 + 131072, 96}},
      {longrope, "sglang", "long_short_cos_sin_cache", v1::DTYPE_BF16, {4096 + 131072, 96}},
      {longrope, "trtllm", "embed_positions_for_gpt_attention", v1::DTYPE_F32, {131072, 48, 2}},
      {longrope, "hf", "cos", v1::DTYPE_BF16, {131072, 96}},
  };
  for (const Expected& expected : cases) {
    SCOPED_TRACE(std::string(expected.config) + " as " + expected.profile);
    v1::GetTableRequest request = Request(Config(expected.config), expected.profile);
    request.mutable_model()->set_tower("text");
    const v1::TableHeader header = Header(request);
    ASSERT_GE(header.tensors_size(), 1);
    EXPECT_EQ(header.tensors(0).name(), expected.tensor);
    EXPECT_EQ(header.tensors(0).dtype(), expected.dtype);
    EXPECT_THAT(header.tensors(0).shape(), ::testing::ElementsAreArray(expected.shape));
    EXPECT_EQ(header.format().profile(), std::string(expected.profile) + "-1");
  }
}

TEST(ProfileTest, WhatTheRequestSaysWins) {
  v1::GetTableRequest request = Request(Config("Meta-Llama-3.1-8B.json"), "vllm-1");
  request.mutable_format()->set_dtype(v1::DTYPE_F64);
  request.mutable_format()->set_layout(v1::LAYOUT_PAIRS);
  request.mutable_selection()->mutable_position_range()->set_end(10);
  const v1::TableHeader header = Header(request);
  EXPECT_EQ(header.tensors(0).name(), "freqs_cis");
  EXPECT_EQ(header.tensors(0).dtype(), v1::DTYPE_F64);
  EXPECT_THAT(header.tensors(0).shape(), ElementsAre(10, 64, 2));
}

TEST(ProfileTest, MaxModelLenOverridesTheRows) {
  v1::GetTableRequest request = Request(Config("Meta-Llama-3.1-8B.json"), "vllm");
  request.mutable_format()->set_max_model_len(8192);
  const v1::TableHeader header = Header(request);
  EXPECT_THAT(header.tensors(0).shape(), ElementsAre(8192, 128));
  EXPECT_FALSE(header.format().has_max_model_len());
}

// serving-stacks 1.1: ceil(4 * original * factor), rounded up once.
TEST(ProfileTest, MropeWithYarnHasFourTimesTheScaledRowsInVllm) {
  const std::string config = R"({"model_type": "qwen2_vl", "hidden_size": 512,
      "num_attention_heads": 4, "max_position_embeddings": 4096,
      "rope_scaling": {"rope_type": "yarn", "factor": 2.1, "mrope_section": [16, 24, 24],
                       "original_max_position_embeddings": 1001}})";
  EXPECT_THAT(Header(Request(config, "vllm")).tensors(0).shape(), ElementsAre(8409, 128));
  EXPECT_THAT(Header(Request(config, "sglang")).tensors(0).shape(), ElementsAre(2103, 128));
}

// serving-stacks 1.1: its table of several axes is that of the default type and of YaRN alone.
TEST(ProfileTest, OtherScalingsOfSeveralAxesHadFourTimesTheRowsInVllm) {
  const auto rows = [](const std::string& type, const std::string& scaling) {
    return Header(Request(R"({"model_type": ")" + type + R"(", "hidden_size": 512,
                              "num_attention_heads": 4, "max_position_embeddings": 4096,
                              "rope_scaling": {)" +
                              scaling + "}}",
                          "vllm"))
        .tensors(0)
        .shape(0);
  };
  const std::string sections = R"("mrope_section": [16, 24, 24], )";
  EXPECT_EQ(rows("qwen2_vl", sections + R"("type": "mrope")"), 4 * 4096);
  EXPECT_EQ(rows("qwen2_vl", sections + R"("type": "linear", "factor": 2.0)"), 2 * 4096);
  EXPECT_EQ(rows("qwen2_vl", sections + R"("type": "dynamic", "factor": 2.0)"), 4096);
  EXPECT_EQ(rows("hunyuan_vl", R"("type": "xdrope", "alpha": 1000.0,
                                  "xdrope_section": [16, 16, 16, 16])"),
            4096);
}

// LongRoPE: both lists where the stack holds both, else one, and what the request says wins.
TEST(ProfileTest, TheListOfALongRopeIsTheStacksUnlessTheRequestNamesIt) {
  const auto longrope = [](const v1::GetTableRequest& request) {
    return Header(request).spec().rope().longrope();
  };
  v1::GetTableRequest request = Request(Config("Phi-3.5-mini-instruct.json"), "vllm");
  EXPECT_TRUE(longrope(request).short_then_long());
  request.mutable_format()->set_max_model_len(8192);
  EXPECT_THAT(Header(request).tensors(0).shape(), ElementsAre(4096 + 8192, 96));

  request.mutable_model()->set_sequence_length(4097);
  EXPECT_FALSE(longrope(request).short_then_long());
  EXPECT_EQ(longrope(request).sequence_length(), 4097);
  EXPECT_EQ(Header(request).tensors(0).name(), "cos_sin_cache");

  // Coordinates of the request are positions, not rows of two lists.
  request = Request(Config("Phi-3.5-mini-instruct.json"), "vllm");
  request.mutable_selection()->mutable_position_range()->set_end(8);
  EXPECT_FALSE(longrope(request).short_then_long());

  request = Request(Config("Phi-3.5-mini-instruct.json"), "trtllm");
  EXPECT_EQ(longrope(request).sequence_length(), 4097);
  request.mutable_format()->set_max_model_len(4096);
  EXPECT_EQ(longrope(request).sequence_length(), 4096);
  EXPECT_FALSE(longrope(Request(Config("Phi-3.5-mini-instruct.json"), "hf")).short_then_long());
}

// "vllm does not heed original_max_position_embeddings. This table heeds it": of vLLM's own rows.
TEST(ProfileTest, TheTableOfALongRopeWasSaidToHeedWhatItsStackDoesNot) {
  const auto rows = [](const char* profile, int64_t max_model_len) {
    v1::GetTableRequest request = Request(Config("Phi-3.5-mini-instruct.json"), profile);
    if (max_model_len > 0) request.mutable_format()->set_max_model_len(max_model_len);
    const v1::TableHeader header = Header(request);
    std::string message;
    for (const v1::Finding& finding : header.findings()) {
      EXPECT_THAT(finding.message(), Not(HasSubstr("This table heeds it"))) << profile;
      if (finding.rule() != "profile-longrope-rows") continue;
      EXPECT_GT(finding.line(), 0);
      message = finding.message();
    }
    return message;
  };
  EXPECT_EQ(rows("vllm", 0),
            "vllm takes the long rows for all positions once max_model_len exceeds 4096, else the "
            "short ones. This table has both, the 4096 short ones first.");
  EXPECT_THAT(rows("sglang", 0), HasSubstr("This table has both, the 4096 short ones first."));
  EXPECT_THAT(
      rows("trtllm", 0),
      HasSubstr("This table has the long ones; sequence_length 4096 gives the short ones."));
  EXPECT_EQ(rows("hf", 0), "");
}

// Llama-4's vision tower has a table in vLLM, of its image's patches.
TEST(ProfileTest, AVisionTowerIsRefusedByName) {
  Engine engine;
  v1::GetTableRequest request = Request(Config("Llama-4-Scout-17B-16E-Instruct.json"), "vllm");
  request.mutable_model()->set_tower("vision");
  request.mutable_selection()->mutable_patch_grid()->set_height(24);
  request.mutable_selection()->mutable_patch_grid()->set_width(24);
  EXPECT_EQ(engine.GetTable(request).status().message(),
            "format.profile: has no table of the vision tower (rope_type axial_2d of "
            "llama4_vision_model): its rows are patches of a grid that the stack takes from each "
            "image; ask for them by grid without a profile");
}

// serving-stacks 1.5: five tables, of which a profile with one has none.
TEST(ProfileTest, DualChunkAttentionHasNoProfile) {
  const std::string config = R"({"model_type": "qwen2", "hidden_size": 512,
      "num_attention_heads": 4, "max_position_embeddings": 4096, "rope_theta": 1e6,
      "dual_chunk_attention_config": {"chunk_size": 262144, "local_size": 8192}})";
  Engine engine;
  for (const char* stack : {"vllm", "sglang"}) {
    EXPECT_EQ(engine.GetTable(Request(config, stack)).status().message(),
              absl::StrCat("format.profile: has no table for /dual_chunk_attention_config of this "
                           "config: ",
                           stack,
                           " builds five, for queries and keys inside and across chunks; their "
                           "rows are those of position_ids without a profile"));
  }
  EXPECT_TRUE(engine.GetTable(Request(config, "hf")).ok());
}

// vllm-project/vllm#44286 (B31): the limit was raised past a table that did not grow.
TEST(ProfileTest, B31_ALimitPastAScaledTableIsRefusedAndAPlainOneGrows) {
  Engine engine;
  v1::GetTableRequest scaled = Request(Config("Meta-Llama-3.1-8B.json"), "vllm");
  scaled.mutable_format()->set_max_model_len(131073);
  EXPECT_EQ(engine.GetTable(scaled).status().message(),
            "format.max_model_len: must stay within the 131072 positions that this model's llama3 "
            "scaling is made for, got 131073; override max_position_embeddings to ask for more");
  scaled.mutable_model()->set_overrides_json(R"({"max_position_embeddings": 262144})");
  EXPECT_TRUE(engine.GetTable(scaled).ok());
  v1::GetTableRequest ids = Request(Config("Meta-Llama-3.1-8B.json"), "vllm");
  ids.mutable_selection()->mutable_position_ids()->add_ids(131072);
  EXPECT_THAT(engine.GetTable(ids).status().message(), HasSubstr("selection.position_ids: must"));
  // What YaRN's own numbers allow is more than this file's 8192.
  v1::GetTableRequest yarn = Request(Config("Yarn-Llama-2-70B-32k-AWQ.json"), "vllm");
  yarn.mutable_format()->set_max_model_len(32768);
  EXPECT_TRUE(engine.GetTable(yarn).ok());
  yarn.mutable_format()->set_max_model_len(32769);
  EXPECT_FALSE(engine.GetTable(yarn).ok());
  v1::GetTableRequest plain = Request(Config("Llama-2-7b-hf.json"), "vllm");
  plain.mutable_format()->set_max_model_len(40000);
  EXPECT_THAT(Header(plain).tensors(0).shape(), ElementsAre(40000, 128));
}

TEST(ProfileTest, AnIgnoredAttentionFactorIsHeededAndReported) {
  v1::GetTableRequest request = Request(R"({"model_type": "llama", "head_dim": 64,
      "hidden_size": 512, "num_attention_heads": 8, "max_position_embeddings": 65536,
      "rope_scaling": {"rope_type": "yarn", "factor": 64.0, "attention_factor": 1.0,
                       "original_max_position_embeddings": 1024}})",
                                        "vllm");
  const v1::TableHeader header = Header(request);
  EXPECT_EQ(header.attention_factor(), 1.0);
  std::vector<std::string> messages;
  for (const v1::Finding& finding : header.findings()) {
    if (finding.rule() == "profile-ignores-key") messages.push_back(finding.message());
  }
  EXPECT_THAT(messages, ElementsAre(HasSubstr("vllm does not heed attention_factor")));
}

TEST(ProfileTest, RefusalsNameTheFieldAndTheRule) {
  Engine engine;
  v1::GetTableRequest request = Request(Config("Meta-Llama-3.1-8B.json"), "vlm");
  EXPECT_EQ(engine.GetTable(request).status().message(),
            "format.profile: must be one of flashinfer-1, hf-1, onnx-1, sglang-1, trtllm-1, "
            "trtllm_cos_sin-1, trtllm_sin_cos-1, vllm-1, got vlm");
  request.mutable_format()->set_profile("vllm");
  request.mutable_format()->set_max_model_len(0);
  EXPECT_EQ(engine.GetTable(request).status().message(),
            "format.max_model_len: must be at least 1, got 0");
  request.mutable_format()->clear_profile();
  EXPECT_EQ(engine.GetTable(request).status().message(), "format.max_model_len: needs a profile");
  request = v1::GetTableRequest();
  request.mutable_spec()->mutable_t5();
  request.mutable_format()->set_profile("hf");
  EXPECT_EQ(engine.GetTable(request).status().message(),
            "format.profile: applies to rope only, got t5");
}

TEST(ProfileTest, ABareSpecTakesLayoutAndDtypeFromTheProfile) {
  v1::GetTableRequest request;
  request.mutable_spec()->mutable_rope()->set_head_dim(64);
  request.mutable_selection()->mutable_position_range()->set_end(4);
  request.mutable_format()->set_profile("onnx");
  EXPECT_EQ(Header(request).tensors(1).name(), "sin_cache");
}

}  // namespace
}  // namespace posenc
