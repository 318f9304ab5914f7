// A config as the source of a table: what the engine makes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace posenc
