// Profiles: the length that a table is made for, and how each family of transformers has it.
#include <cstdint>
#include <string>
#include <utility>
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

constexpr char kDynamic32768[] = R"({"model_type": "llama", "hidden_size": 512,
    "num_attention_heads": 4, "max_position_embeddings": 32768, "rope_theta": 10000.0,
    "rope_scaling": {"rope_type": "dynamic", "factor": 4.0}})";

// Rows that no length has: of the unscaled base beyond the length from which it grows.
TEST(ProfileTablesTest, ADynamicTableHadRowsBeyondTheLengthItWasMadeFor) {
  Engine engine;
  v1::GetTableRequest request = Request(kDynamic32768, "");
  request.mutable_selection()->mutable_position_ids()->add_ids(32767);
  EXPECT_TRUE(engine.GetTable(request).ok());
  request.mutable_selection()->mutable_position_ids()->add_ids(100000);
  EXPECT_EQ(engine.GetTable(request).status().message(),
            "selection.position_ids: must stay within the 32768 positions that this model's "
            "dynamic scaling is made for, got 100001; pass sequence_length, which its frequencies "
            "follow, to ask for more");
  request.mutable_model()->set_sequence_length(100000);
  EXPECT_FALSE(engine.GetTable(request).ok());
  request.mutable_model()->set_sequence_length(100001);
  EXPECT_TRUE(engine.GetTable(request).ok());
  // Qwen 1: the base grows from seq_length, 8192, not from max_position_embeddings, 32768.
  EXPECT_EQ(Header(Request(Config("Qwen-7B-Chat.json"), "")).selection().position_range().end(),
            8192);
}

TEST(ProfileTablesTest, AShortListFilledRowsBeyondTheOriginalLength) {
  Engine engine;
  v1::GetTableRequest request = Request(Config("Phi-3.5-mini-instruct.json"), "");
  EXPECT_EQ(Header(request).selection().position_range().end(), 4096);
  request.mutable_selection()->mutable_position_range()->set_end(4097);
  EXPECT_EQ(engine.GetTable(request).status().message(),
            "selection.position_range.end: must stay within the 4096 positions that this model's "
            "longrope scaling is made for, got 4097; pass sequence_length, which its frequencies "
            "follow, to ask for more");
  request.mutable_model()->set_sequence_length(4097);
  EXPECT_TRUE(engine.GetTable(request).ok());
  request.mutable_selection()->clear_coordinates();
  EXPECT_EQ(Header(request).selection().position_range().end(), 131072);
}

// The rows of max_model_len by the base of max_position_embeddings: no length has such a table.
TEST(ProfileTablesTest, ATableWithMoreRowsWasNotMadeForTheirLength) {
  using Lengths = std::pair<int64_t, int64_t>;  // rows, sequence_length
  const auto dynamic = [](const char* profile, int64_t max_model_len) {
    v1::GetTableRequest request = Request(kDynamic32768, profile);
    if (max_model_len > 0) request.mutable_format()->set_max_model_len(max_model_len);
    const v1::TableHeader header = Header(request);
    return Lengths(header.selection().position_range().end(),
                   header.spec().rope().dynamic().sequence_length());
  };
  for (const char* profile : {"hf", "onnx", "flashinfer"}) {
    EXPECT_EQ(dynamic(profile, 100000), Lengths(100000, 100000)) << profile;
    EXPECT_EQ(dynamic(profile, 0), Lengths(32768, 32768)) << profile;
  }
  // serving-stacks 1.6, 2.1: SGLang's base has always grown, vLLM's and TensorRT-LLM's never.
  EXPECT_EQ(dynamic("sglang", 0), Lengths(131072, 131072));
  EXPECT_EQ(dynamic("sglang", 100000), Lengths(100000, 131072));
  Engine engine;
  for (const char* profile : {"vllm", "trtllm"}) {
    EXPECT_EQ(dynamic(profile, 0), Lengths(32768, 32768)) << profile;
    v1::GetTableRequest request = Request(kDynamic32768, profile);
    request.mutable_format()->set_max_model_len(32769);
    EXPECT_THAT(engine.GetTable(request).status().message(),
                HasSubstr("pass sequence_length, which"));
  }
  v1::GetTableRequest longrope = Request(Config("Phi-3.5-mini-instruct.json"), "hf");
  EXPECT_EQ(Header(longrope).spec().rope().longrope().sequence_length(), 4097);
  longrope.mutable_format()->set_max_model_len(4096);
  EXPECT_EQ(Header(longrope).spec().rope().longrope().sequence_length(), 4096);
}

// "vllm does not heed factor. This table heeds it": so it said of a table that had no use for it.
TEST(ProfileTablesTest, AFindingSpokeOfAFactorThatTheTableDidNotHeed) {
  const auto messages = [](const char* profile, int64_t sequence_length) {
    v1::GetTableRequest request = Request(kDynamic32768, profile);
    if (sequence_length > 0) request.mutable_model()->set_sequence_length(sequence_length);
    const v1::TableHeader header = Header(request);
    std::vector<std::string> found;
    for (const v1::Finding& finding : header.findings()) {
      if (finding.rule() == "profile-ignores-key") found.push_back(finding.message());
    }
    return found;
  };
  for (const char* profile : {"vllm", "trtllm"}) {
    // The stack ignores it at this length too, though it changes nothing here.
    for (const int64_t length : {0, 32768}) {
      EXPECT_THAT(messages(profile, length),
                  ElementsAre(HasSubstr("builds the unscaled table at every length. This table is "
                                        "for a length at which nothing is scaled.")));
    }
    EXPECT_THAT(messages(profile, 32769),
                ElementsAre(HasSubstr("builds the unscaled table at every length. This table "
                                      "heeds it.")));
  }
  EXPECT_THAT(messages("sglang", 0), ElementsAre(HasSubstr("appends rows at load")));
  EXPECT_THAT(messages("sglang", 40000),
              ElementsAre(HasSubstr("appends rows at load"), HasSubstr("whatever the sequence")));
  EXPECT_THAT(messages("sglang", 100),
              ElementsAre(HasSubstr("whatever the sequence. This table is for a length at which "
                                    "nothing is scaled.")));
}

// hf-rope 3.1: each family's class returns cosines and sines in its own way.
TEST(ProfileTablesTest, TheTableOfHfWasThatOfLlamaForEveryFamily) {
  const auto model = [](const char* type) {
    return absl::StrCat(R"({"model_type": ")", type, R"(", "hidden_size": 512, "head_dim": 64,
        "num_attention_heads": 8, "num_hidden_layers": 2, "qk_rope_head_dim": 64,
        "max_position_embeddings": 128, "rope_theta": 1e4,
        "layer_types": ["full_attention", "full_attention"]})");
  };
  const v1::TableHeader half = Header(Request(model("gpt_oss"), "hf"));
  ASSERT_EQ(half.tensors_size(), 2);
  EXPECT_EQ(half.tensors(0).name(), "cos");
  EXPECT_EQ(half.tensors(1).name(), "sin");
  EXPECT_THAT(half.tensors(0).shape(), ElementsAre(128, 32));
  v1::GetTableRequest v4 = Request(Config("DeepSeek-V4-Flash-FP8-sgl.json"), "hf");
  v4.mutable_model()->set_layer_type("compress");
  v4.mutable_selection()->mutable_position_range()->set_end(8);
  EXPECT_THAT(Header(v4).tensors(0).shape(), ElementsAre(8, 32));

  const auto layout = [&](const char* type) {
    const v1::TableHeader header = Header(Request(model(type), "hf"));
    EXPECT_EQ(header.tensors(0).name(), "cos");
    EXPECT_EQ(header.spec().rope().pairing(), v1::PAIRING_INTERLEAVED);
    return header.format().layout();
  };
  for (const char* type : {"deepseek_v3", "longcat_flash", "glm4", "ernie4_5", "helium"}) {
    EXPECT_EQ(layout(type), v1::LAYOUT_COS_AND_SIN_REPEATED) << type;
  }
  EXPECT_EQ(layout("cohere"), v1::LAYOUT_COS_AND_SIN_FULL) << "its class repeats each value";
}

// transformers' modeling files of 2026: glm4v, glm_ocr and moonshine_streaming spread repeated
// halves out when they rotate, ernie4_5_vl_moe returns each value twice, in float32.
TEST(HfTablesTest, GlmVAndMoonshineStreamingHadEachValueTwice) {
  const auto header = [](const std::string& type, const std::string& sections) {
    return Header(Request(
        absl::StrCat(R"({"model_type": ")", type, R"(", "hidden_size": 512, "dtype": "bfloat16",
          "num_attention_heads": 4, "max_position_embeddings": 128, "rope_parameters": {
          "rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": )",
                     sections, "}}"),
        "hf"));
  };
  for (const char* type : {"glm4v_text", "glm_ocr_text", "moonshine_streaming"}) {
    const v1::TableHeader table =
        header(type, type[0] == 'm' ? "0.5" : R"(0.5, "mrope_section": [8, 12, 12])");
    EXPECT_EQ(table.format().layout(), v1::LAYOUT_COS_AND_SIN_REPEATED) << type;
    EXPECT_EQ(table.format().dtype(), v1::DTYPE_BF16) << type;
    EXPECT_THAT(table.tensors(0).shape(), ElementsAre(128, 64)) << type;
    EXPECT_EQ(table.tensors(0).name(), "cos");
    EXPECT_EQ(table.tensors(1).name(), "sin");
  }
  const v1::TableHeader ernie =
      header("ernie4_5_vl_moe_text", R"(1.0, "mrope_section": [22, 22, 20])");
  EXPECT_EQ(ernie.format().layout(), v1::LAYOUT_COS_AND_SIN_FULL);
  EXPECT_EQ(ernie.spec().rope().pairing(), v1::PAIRING_INTERLEAVED);
  EXPECT_EQ(ernie.format().dtype(), v1::DTYPE_F32);
  EXPECT_THAT(ernie.tensors(0).shape(), ElementsAre(128, 128));
}

}  // namespace
}  // namespace posenc
