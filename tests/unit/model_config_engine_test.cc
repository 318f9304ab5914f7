// A config as the source of a table: what the engine makes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "lib/engine/engine.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using ::posenc::testing::ReadConfig;

v1::DescribeTableRequest Describe(absl::string_view config) {
  v1::DescribeTableRequest request;
  request.mutable_model()->set_config_json(ReadConfig(config));
  return request;
}

TEST(ModelConfigEngineTest, AModelsTableHasTheIdOfItsSpecs) {
  Engine engine(EngineOptions{});
  v1::DescribeTableRequest by_model = Describe("Meta-Llama-3.1-8B.json");
  by_model.mutable_selection()->mutable_position_range()->set_end(10);
  const auto model = engine.DescribeTable(by_model);
  ASSERT_TRUE(model.ok()) << model.status();
  v1::DescribeTableRequest by_spec = by_model;
  *by_spec.mutable_spec() = model->header().spec();
  *by_spec.mutable_format() = model->header().format();
  const auto spec = engine.DescribeTable(by_spec);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(model->header().table_id(), spec->header().table_id());
}

TEST(ModelConfigEngineTest, RefusalsPointIntoTheConfig) {
  Engine engine(EngineOptions{});
  v1::DescribeTableRequest request;
  request.mutable_model()->set_config_json("{\"model_type\": 7}");
  EXPECT_EQ(engine.DescribeTable(request).status().message(),
            "config_json/model_type: must be a string, got 7");
  EXPECT_EQ(engine.DescribeTable(Describe("EUBERT-roberta.json")).status().message(),
            "tower: encoder has an encoding of kind learned, of which there is no table");
}

// "2:3 /rope_theta 0" of a refusal: the place of what is refused, and what stands there.
std::string RefusedAt(const std::string& config) {
  Engine engine(EngineOptions{});
  v1::ResolveModelConfigRequest request;
  request.mutable_model()->set_config_json(config);
  const absl::Status status = engine.ResolveModelConfig(request).status();
  EXPECT_THAT(std::string(status.message()), ::testing::StartsWith("config_json/")) << config;
  v1::FactPlace place;
  const auto payload = status.GetPayload("type.googleapis.com/posenc.v1.FactPlace");
  if (!payload || !place.ParseFromString(std::string(*payload))) return "";
  return absl::StrCat(place.line(), ":", place.column(), " ", place.pointer(), " ", place.found());
}

// What only the canonicalization of the spec refuses had the spec's field for a place.
TEST(ModelConfigEngineTest, ARefusalOfTheSpecHasThePlaceOfTheKeyThatGaveIt) {
  const auto llama = [](const std::string& more) {
    return absl::StrCat("{\"model_type\": \"llama\", \"head_dim\": 64,\n", more, "}");
  };
  EXPECT_EQ(RefusedAt(llama(R"("rope_theta": 1e-5)")), "2:15 /rope_theta 1e-5");
  EXPECT_EQ(RefusedAt(llama(R"("rope_scaling": {"rope_type": "linear", "factor": 1e-9})")),
            "2:51 /rope_scaling/factor 1e-9");
  EXPECT_EQ(RefusedAt(llama(R"("rope_scaling": {"rope_type": "yarn", "factor": 4, "beta_fast": -1,
      "original_max_position_embeddings": 4096})")),
            "2:65 /rope_scaling/beta_fast -1");
  EXPECT_EQ(RefusedAt(llama(R"("original_max_position_embeddings": 2147483647, "rope_theta": 1.0,
      "rope_scaling": {"rope_type": "yarn", "factor": 4})")),
            "2:63 /rope_theta 1.0");
  EXPECT_EQ(RefusedAt(llama(R"("rope_theta": 3e38, "max_position_embeddings": 2048,
      "rope_scaling": {"rope_type": "dynamic", "factor": 4})")),
            "2:15 /rope_theta 3e38");
  EXPECT_EQ(RefusedAt(R"({"model_type": "llama", "head_dim": 65538})"), "1:37 /head_dim 65538");
  EXPECT_EQ(RefusedAt(R"({"model_type": "phi3small", "hidden_size": 512, "num_attention_heads": 4,
      "rope_position_scale": 1e-30})"),
            "2:30 /rope_position_scale 1e-30");
  EXPECT_EQ(RefusedAt(R"({"model_type": "mpnet", "hidden_size": 512, "num_attention_heads": 4,
      "max_position_embeddings": 512, "relative_attention_num_buckets": 7})"),
            "2:73 /relative_attention_num_buckets 7");
  EXPECT_EQ(RefusedAt(R"({"model_type": "deberta-v2", "hidden_size": 64, "num_attention_heads": 2,
      "relative_attention": true, "max_position_embeddings": 512, "position_buckets": 3,
      "max_relative_positions": 2})"),
            "3:33 /max_relative_positions 2");
  EXPECT_EQ(RefusedAt(R"({"model_type": "dinov3_vit", "hidden_size": 384,
      "num_attention_heads": 6, "rope_theta": 0.5})"),
            "2:47 /rope_theta 0.5");
  EXPECT_EQ(RefusedAt(R"({"model_type": "mpt", "d_model": 64, "n_heads": 70000})"),
            "1:49 /n_heads 70000");
}

// The refusal names the request's field, and no place.
TEST(ModelConfigEngineTest, ARefusalOfWhatTheRequestSetIsNoneOfTheFile) {
  Engine engine(EngineOptions{});
  v1::DescribeTableRequest request = Describe("Phi-3.5-mini-instruct.json");
  request.mutable_model()->set_sequence_length(-1);
  const absl::Status status = engine.DescribeTable(request).status();
  EXPECT_THAT(std::string(status.message()), ::testing::StartsWith("sequence_length: "));
  EXPECT_FALSE(status.GetPayload("type.googleapis.com/posenc.v1.FactPlace").has_value());
}

}  // namespace
}  // namespace posenc
