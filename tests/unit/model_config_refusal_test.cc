// What is not a config is refused with the place, the rule and the value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "lib/model_config/json_document.h"
#include "lib/model_config/resolve.h"
#include "posenc/v1/error_details.pb.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using ::posenc::testing::ModelWith;
using ::posenc::testing::Refusal;
using ::posenc::testing::Resolve;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ModelConfigRefusalTest, TextThatIsNotAJsonObject) {
  EXPECT_EQ(Refusal(""), "config_json: must be a JSON object, got nothing");
  EXPECT_EQ(Refusal(" \n"), "config_json: must be a JSON object, got nothing");
  EXPECT_EQ(Refusal("[1, 2]"), "config_json: must be a JSON object, got a list");
  EXPECT_EQ(Refusal("7"), "config_json: must be a JSON object, got 7");
  EXPECT_EQ(Refusal("null"), "config_json: must be a JSON object, got null");
  EXPECT_EQ(Refusal("\"llama\""), "config_json: must be a JSON object, got string \"llama\"");
  EXPECT_EQ(Refusal("hello"), "config_json: must be JSON: Invalid value (line 1, column 1)");
  EXPECT_EQ(Refusal("{\n  \"a\": 1,\n}"),
            "config_json: must be JSON: Missing a name for object member (line 3, column 1)");
  EXPECT_EQ(Refusal("{'a': 1}"),
            "config_json: must be JSON: Missing a name for object member (line 1, column 2)");
  EXPECT_EQ(Refusal("{} {}"),
            "config_json: must be JSON: The document root must not be followed by other values "
            "(line 1, column 4)");
}

TEST(ModelConfigRefusalTest, BinaryAndForeignEncodings) {
  EXPECT_EQ(Refusal(std::string("{}\0{}", 5)),
            "config_json: must be JSON text, got binary data (a zero byte)");
  EXPECT_EQ(Refusal("\xEF\xBB\xBF{}"),
            "config_json: must be UTF-8 without a byte order mark, got one at the start");
  EXPECT_EQ(Refusal(std::string("\xFF\xFE{\0}\0", 6)), "config_json: must be UTF-8, got UTF-16");
  // "Invalid value", said of a clone without its large files.
  EXPECT_EQ(Refusal("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 661\n"),
            "config_json: must be JSON, got a Git LFS pointer; git lfs pull fetches what it stands "
            "for");
  EXPECT_EQ(Refusal("{\"a\": \"\xC0\xAF\"}"),
            "config_json: must be JSON: Invalid encoding in string (line 1, column 8)");
}

TEST(ModelConfigRefusalTest, DepthSizeAndCount) {
  const std::string deep(100'000, '[');
  EXPECT_EQ(Refusal(absl::StrCat("{\"a\": ", deep)),
            "config_json: must not be nested deeper than 128 levels (line 1, column 134)");
  EXPECT_EQ(Refusal(std::string(kMaxConfigBytes + 1, ' ')),
            absl::StrCat("config_json: must be at most ", kMaxConfigBytes,
                         " bytes, which no config.json reaches, got ", kMaxConfigBytes + 1));
  std::string many = "{\"a\": [0";
  for (size_t i = 0; i < kMaxConfigValues; ++i) many += ",0";
  EXPECT_EQ(Refusal(many + "]}"),
            absl::StrCat("config_json: must have at most ", kMaxConfigValues, " values"));
}

TEST(ModelConfigRefusalTest, DuplicateKeysNameTheirPointer) {
  EXPECT_EQ(Refusal("{\"rope_scaling\": {\"factor\": 2,\n\"a\": 1,\n\"factor\": 4}}"),
            "config_json/rope_scaling/factor: is given twice, on lines 1 and 3");
  // The same key, written differently.
  EXPECT_EQ(Refusal("{\"a/b\": 1, \"\\u0061/b\": 1}"),
            "config_json/a~1b: is given twice, on lines 1 and 1");
}

TEST(ModelConfigRefusalTest, ModelTypes) {
  EXPECT_EQ(Refusal("{}"), "config_json/model_type: is required to know the model's family");
  EXPECT_EQ(Refusal(R"({"model_type": 7})"), "config_json/model_type: must be a string, got 7");
  EXPECT_EQ(Refusal(R"({"model_type": "foo", "hidden_size": 64})"),
            "config_json/model_type: is not a model family that is known here: \"foo\"");
}

TEST(ModelConfigRefusalTest, FactorsThatAreNoFactors) {
  const auto with_factor = [](absl::string_view factor) {
    return Refusal(ModelWith(
        "llama", absl::StrCat(R"("rope_scaling": {"type": "linear", "factor": )", factor, "}")));
  };
  EXPECT_EQ(with_factor("\"8\""),
            "config_json/rope_scaling/factor: must be a number, got string \"8\"");
  EXPECT_EQ(with_factor("null"),
            "config_json/rope_scaling/factor: is required for rope_type linear");
  EXPECT_EQ(with_factor("true"), "config_json/rope_scaling/factor: must be a number, got true");
  EXPECT_EQ(with_factor("[2]"), "config_json/rope_scaling/factor: must be a number, got a list");
  EXPECT_EQ(with_factor("0"), "config_json/rope_scaling/factor: must be above 0, got 0");
  EXPECT_EQ(with_factor("-2.50"), "config_json/rope_scaling/factor: must be above 0, got -2.50");
  // Python's json.load reads these.
  EXPECT_EQ(with_factor("NaN"),
            "config_json/rope_scaling/factor: must be a finite number, got NaN");
  EXPECT_EQ(with_factor("Infinity"),
            "config_json/rope_scaling/factor: must be a finite number, got Infinity");
  EXPECT_THAT(with_factor("1e999"),
              StartsWith("config_json: must be JSON: Number too big to be stored in double"));
}

TEST(ModelConfigRefusalTest, ThetaThatIsNoBase) {
  EXPECT_EQ(Refusal(ModelWith("llama", R"("rope_theta": 0)")),
            "config_json/rope_theta: must be above 0, got 0");
  EXPECT_EQ(Refusal(ModelWith("llama", R"("rope_theta": -Infinity)")),
            "config_json/rope_theta: must be a finite number, got -Infinity");
  EXPECT_EQ(Refusal(ModelWith("llama", R"("rope_parameters": {"rope_theta": "1e6"})")),
            "config_json/rope_parameters/rope_theta: must be a number, got string \"1e6\"");
}

TEST(ModelConfigRefusalTest, RopeTypes) {
  const std::string unknown =
      Refusal(ModelWith("llama", R"("rope_scaling": {"type": "ntk_yarn", "factor": 4})"));
  EXPECT_THAT(unknown, StartsWith("config_json/rope_scaling/type: must be one of default, linear"));
  EXPECT_THAT(unknown, HasSubstr("got string \"ntk_yarn\""));
  EXPECT_EQ(Refusal(ModelWith("llama", R"("rope_scaling": {"factor": 4})")),
            "config_json/rope_scaling/rope_type: is required beside factor: without it the "
            "scaling would be ignored");
  EXPECT_EQ(
      Refusal(ModelWith("llama",
                        R"("rope_scaling": {"type": "yarn", "rope_type": "linear", "factor": 4})")),
      "config_json/rope_scaling/type: contradicts rope_type, its other spelling: \"yarn\" against "
      "\"linear\"");
  EXPECT_EQ(Refusal(ModelWith("llama", R"("rope_scaling": "linear")")),
            "config_json/rope_scaling: must be an object or null, got string \"linear\"");
  EXPECT_EQ(Refusal(ModelWith("llama", R"("rope_scaling": {"type": "llama3", "factor": 8})")),
            "config_json/rope_scaling/low_freq_factor: is required for rope_type llama3");
}

TEST(ModelConfigRefusalTest, Widths) {
  EXPECT_EQ(Refusal(R"({"model_type": "llama"})"), "config_json/hidden_size: is required");
  EXPECT_EQ(Refusal(R"({"model_type": "llama", "hidden_size": 4096})"),
            "config_json/num_attention_heads: is required");
  EXPECT_EQ(Refusal(R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 9})"),
            "config_json/num_attention_heads: must be at most hidden_size (8), got 9");
  EXPECT_EQ(Refusal(R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 0})"),
            "config_json/num_attention_heads: must be a whole number from 1 to 2147483647, got 0");
  // huggingface/transformers#48217: accepted at load, a crash at the first forward.
  EXPECT_EQ(Refusal(R"({"model_type": "llama", "hidden_size": 520, "num_attention_heads": 8})"),
            "config_json/head_dim: gives 65 rotary channels, must be even, at least 2 and at most "
            "the head's 65");
  EXPECT_EQ(Refusal(ModelWith("llama", R"("head_dim": 64.5)")),
            "config_json/head_dim: must be a whole number from 0 to 2147483647, got 64.5");
  EXPECT_EQ(Refusal(ModelWith("phi", R"("partial_rotary_factor": 1.5)")),
            "config_json/partial_rotary_factor: must be at most 1, got 1.5");
}

TEST(ModelConfigRefusalTest, TwoNamesOfOneBaseThatDiffer) {
  // PaddlePaddle/PaddleFleet#2026.
  EXPECT_EQ(Refusal(ModelWith("llama", R"("rope_theta": 10000.0, "rotary_base": 500000)")),
            "config_json/rotary_base: contradicts config_json/rope_theta, another name of the "
            "same: 500000 against 10000.0");
}

TEST(ModelConfigRefusalTest, XdropeWithoutAnAlphaWasCalledDynamic) {
  EXPECT_EQ(Refusal(ModelWith("llama", R"("rope_scaling": {"type": "xdrope"})")),
            "config_json/rope_scaling/alpha: is required for rope_type xdrope");
}

TEST(ModelConfigRefusalTest, CarriesABadRequest) {
  const absl::Status status = Resolve("{}").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const auto payload = status.GetPayload("type.googleapis.com/google.rpc.BadRequest");
  ASSERT_TRUE(payload.has_value());
  v1::BadRequest detail;
  ASSERT_TRUE(detail.ParseFromString(std::string(*payload)));
  EXPECT_EQ(detail.field_violations(0).field(), "config_json/model_type");
}

TEST(ModelConfigRefusalTest, Overrides) {
  v1::ModelSource model;
  model.set_config_json(ModelWith("llama", ""));
  model.set_overrides_json(R"({"rope_scaling": {"type": "linear", "factor": "8"}})");
  EXPECT_EQ(ResolveModelConfig(model).status().message(),
            "overrides_json/rope_scaling/factor: must be a number, got string \"8\"");
  model.set_overrides_json("[]");
  EXPECT_EQ(ResolveModelConfig(model).status().message(),
            "overrides_json: must be a JSON object, got a list");
}

}  // namespace
}  // namespace posenc
