// Profiles: what a stack makes of a config that says too little, and what it has no table of. Each
// test is named after what was wrong. Facts: the stacks' code as of ProfileSource.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

std::vector<std::string> Notes(const v1::TableHeader& header, const std::string& rule) {
  std::vector<std::string> messages;
  for (const v1::Finding& finding : header.findings()) {
    if (finding.rule() == rule) messages.push_back(finding.message());
  }
  return messages;
}

// "vllm does not heed factor ... unless it is a power of two", of Gemma 3's factor 8.
TEST(ProfileStacksTest, AFactorThatIsAPowerOfTwoWasSaidNotToBeHeeded) {
  const auto model = [](const char* factor) {
    return absl::StrCat(R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 4,
      "max_position_embeddings": 4096, "rope_theta": 1e4, "rope_scaling": {"rope_type": "linear",
      "factor": )",
                        factor, "}}");
  };
  EXPECT_THAT(Notes(Header(Request(model("8.0"), "vllm")), "profile-ignores-key"), IsEmpty());
  EXPECT_THAT(Notes(Header(Request(model("3.0"), "vllm")), "profile-ignores-key"),
              ElementsAre("vllm heeds factor of rope_type linear in its own way: it divides "
                          "positions by it, where transformers divides frequencies: values differ "
                          "by roundings. This table is as transformers has it."));
  v1::GetTableRequest gemma = Request(Config("gemma-3-27b-it-hub.json"), "vllm");
  gemma.mutable_model()->set_tower("text");
  gemma.mutable_model()->set_layer_type("full_attention");
  EXPECT_THAT(Notes(Header(gemma), "profile-ignores-key"), ElementsAre());
}

// SGLang's gemma3_causal.py: Gemma3RotaryEmbedding in each call; get_rope's table, without the
// scaling, is for CPUs alone.
TEST(ProfileStacksTest, Gemma3HadATableThatSglangDoesNotHave) {
  Engine engine;
  for (const char* layers : {"full_attention", "sliding_attention"}) {
    v1::GetTableRequest request = Request(Config("gemma-3-1b-it.json"), "sglang");
    request.mutable_model()->set_layer_type(layers);
    EXPECT_THAT(engine.GetTable(request).status().message(),
                HasSubstr("format.profile: sglang has no table for gemma3_text: on GPUs it "
                          "computes cos and sin in each call"));
    request.mutable_format()->set_profile("hf");
    EXPECT_EQ(Header(request).tensors(0).name(), "cos");
  }
}

// vLLM's _resolve_auto_dtype: "--profile vllm" made float32 tables, which vLLM has of no config.
TEST(ProfileStacksTest, AConfigOfFloat32OrNoDtypeHadAFloat32TableInVllm) {
  const auto model = [](const char* type, const char* more) {
    return absl::StrCat(R"({"model_type": ")", type,
                        R"(", "hidden_size": 512, "num_attention_heads": 4, "num_hidden_layers": 2,
                            "max_position_embeddings": 4096, "rope_theta": 1e4)",
                        more, "}");
  };
  struct Case {
    std::string config;
    const char* profile;
    v1::DType dtype;
    const char* note;
  };
  const std::string longrope = absl::StrCat(
      R"(, "rope_scaling": {"rope_type": "longrope", "original_max_position_embeddings": 1024,
           "short_factor": [1, 1], "long_factor": [1, 1]}, "head_dim": 4)");
  const std::vector<Case> cases = {
      {Config("EXAONE-3.5-7.8B-Instruct.json"), "vllm", v1::DTYPE_BF16, "says float32"},
      {Config("Qwen-7B-Chat.json"), "vllm", v1::DTYPE_BF16, "says no dtype"},
      {Config("gpt-j-6b.json"), "vllm", v1::DTYPE_BF16, "safetensors' headers"},
      {Config("Meta-Llama-3.1-8B.json"), "vllm", v1::DTYPE_BF16, ""},
      {model("nomic_bert", R"(, "torch_dtype": "float32")"), "vllm", v1::DTYPE_F16, "pooling"},
      {model("gpt_oss", R"(, "torch_dtype": "float32")"), "vllm", v1::DTYPE_F32, ""},
      {model("llama", ""), "sglang", v1::DTYPE_F32, ""},
      {model("llama", longrope.c_str()), "sglang", v1::DTYPE_F16, "says no dtype"},
      {model("llama", ""), "hf", v1::DTYPE_F32, "takes that of the weights"},
      {model("llama", R"(, "torch_dtype": "float32")"), "hf", v1::DTYPE_F32, ""},
      {model("llama", ""), "onnx", v1::DTYPE_F32, "the one that it is asked for"},
      {model("llama", ""), "flashinfer", v1::DTYPE_F32, ""},
  };
  for (const Case& expected : cases) {
    SCOPED_TRACE(absl::StrCat(expected.config, " as ", expected.profile));
    v1::GetTableRequest request = Request(expected.config, expected.profile);
    const v1::TableHeader header = Header(request);
    ASSERT_GE(header.tensors_size(), 1);
    EXPECT_EQ(header.tensors(0).dtype(), expected.dtype);
    const std::string note = absl::StrJoin(Notes(header, "profile-dtype"), "");
    EXPECT_EQ(note.empty(), *expected.note == '\0');
    EXPECT_THAT(note, HasSubstr(expected.note));
    // A dtype that was asked for needs no note.
    request.mutable_format()->set_dtype(v1::DTYPE_F16);
    EXPECT_THAT(Notes(Header(request), "profile-dtype"), IsEmpty());
  }
}

TEST(ProfileStacksTest, NobodyCouldSeeWhichVersionOfAStackAProfileFollows) {
  const v1::GetServerInfoResponse info = Engine().GetServerInfo();
  ASSERT_EQ(info.profiles_size(), static_cast<int>(ProfileNames().size()));
  for (const v1::ProfileInfo& profile : info.profiles()) {
    EXPECT_FALSE(profile.source().empty()) << profile.name();
  }
  EXPECT_THAT(std::string(ProfileSource("vllm-1")), HasSubstr("017e9f4448b7"));
}

// It was called an encoding that is no rope; resolve calls it one.
TEST(ProfileStacksTest, RowsByAxisWereSaidToBeNoRope) {
  v1::GetTableRequest request = Request(Config("Qwen2-VL-7B-Instruct.json"), "vllm");
  request.mutable_model()->set_tower("text");
  for (int i = 0; i < 3; ++i) {
    request.mutable_selection()->mutable_axis_position_ids()->add_axes()->add_ids(0);
  }
  Engine engine;
  EXPECT_EQ(engine.GetTable(request).status().message(),
            "format.profile: has no rows by axis of the text tower (rope_type default of "
            "qwen2_vl): the stack's table has a row a position, in which it looks up each axis; "
            "ask for that by position_range or position_ids, or for rows by axis without a "
            "profile");
}

}  // namespace
}  // namespace posenc
