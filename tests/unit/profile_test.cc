// Profiles: the same checkpoint as each serving stack builds its table of it.
// Rows, layouts and dtypes: serving-stacks facts as cited in model_config/profile.cc.
#include "lib/model_config/profile.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/engine/engine.h"

namespace posenc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Config(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(std::string(POSENC_TEST_DATA "/golden/configs/") + file).rdbuf();
  return text.str();
}

v1::GetTableRequest Request(const std::string& config, const std::string& profile) {
  v1::GetTableRequest request;
  request.mutable_model()->set_config_json(config);
  request.mutable_format()->set_profile(profile);
  return request;
}

v1::TableHeader Header(const v1::GetTableRequest& request) {
  Engine engine;
  const auto table = engine.GetTable(request);
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? (*table)->header() : v1::TableHeader();
}

struct Expected {
  const char* config;
  const char* profile;
  const char* tensor;
  v1::DType dtype;
  std::vector<int64_t> shape;
};

TEST(ProfileTest, EachStackGetsItsRowsLayoutDtypeAndNames) {
  const char* const llama = "Meta-Llama-3.1-8B.json";       // bf16, 131072 rows
  const char* const yarn = "Yarn-Llama-2-70B-32k-AWQ.json";  // f16, 8192 rows, 4096 * 8
  const char* const linear = "SmolLM-360M-linear2-merged.json";
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
  };
  for (const Expected& expected : cases) {
    SCOPED_TRACE(std::string(expected.config) + " as " + expected.profile);
    const v1::TableHeader header = Header(Request(Config(expected.config), expected.profile));
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
            "vllm-1, got vlm");
  request.mutable_format()->set_profile("vllm");
  request.mutable_format()->set_max_model_len(0);
  EXPECT_EQ(engine.GetTable(request).status().message(),
            "format.max_model_len: must be at least 1, got 0");
  request.mutable_format()->clear_profile();
  EXPECT_EQ(engine.GetTable(request).status().message(),
            "format.max_model_len: needs a profile");
  request = v1::GetTableRequest();
  request.mutable_spec()->mutable_t5();
  request.mutable_format()->set_profile("hf");
  EXPECT_EQ(engine.GetTable(request).status().message(), "format.profile: applies to rope only");
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
