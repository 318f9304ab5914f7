// From a model's config.json to tables whose rows have several axes: the whole
// way that the tool and the server go.
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/engine/engine.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

v1::GetTableRequest ModelRequest(const std::string& config, const std::string& tower,
                                 const std::string& selection, const std::string& format = "") {
  std::ifstream file(POSENC_TEST_DATA "/golden/configs/" + config);
  EXPECT_TRUE(file.good()) << config;
  std::stringstream text;
  text << file.rdbuf();
  v1::GetTableRequest request;
  request.mutable_model()->set_config_json(text.str());
  request.mutable_model()->set_tower(tower);
  *request.mutable_selection() = Select(selection);
  *request.mutable_format() = Format(format);
  return request;
}

v1::GetTableRequest SpecRequest(const std::string& spec, const std::string& selection,
                                const std::string& format = "") {
  v1::GetTableRequest request;
  *request.mutable_spec() = Spec(spec);
  *request.mutable_selection() = Select(selection);
  *request.mutable_format() = Format(format);
  return request;
}

std::string BytesOf(const v1::GetTableRequest& request) {
  Engine engine;
  auto table = engine.GetTable(request);
  EXPECT_TRUE(table.ok()) << table.status();
  std::string bytes;
  while (table.ok() && !(*table)->done()) {
    const Slice slice = (*table)->Next();
    bytes.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
  }
  return bytes;
}

constexpr char kPrompt[] =
    "token_runs { runs { text: 3 } runs { image { height: 4 width: 6 } } runs { text: 2 } }";

TEST(EngineAxesTest, APromptOfQwen2VlIsItsMrope) {
  const std::string bytes =
      BytesOf(ModelRequest("Qwen2-VL-2B-Instruct.json", "text", kPrompt, "dtype: DTYPE_F32"));
  EXPECT_EQ(bytes.size(), 11u * 128 * 4);
  EXPECT_EQ(bytes, BytesOf(SpecRequest("mrope { rope { head_dim: 128 rope_theta: 1e6 } "
                                       "mrope_section: [16, 24, 24] }",
                                       kPrompt)));
}

TEST(EngineAxesTest, TextAloneIsServedFromTheRope) {
  const auto request = [](const std::string& selection, const std::string& layout) {
    return ModelRequest("Qwen2-VL-2B-Instruct.json", "text", selection,
                        "dtype: DTYPE_F32 layout: LAYOUT_" + layout);
  };
  Engine engine;
  const auto table = engine.GetTable(request("position_range { end: 5 }", "COS_SIN"));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE((*table)->header().spec().has_rope());
  EXPECT_EQ(BytesOf(request("position_range { end: 5 }", "COS_SIN")),
            BytesOf(request("token_runs { runs { text: 5 } }", "COS_SIN")));
}

TEST(EngineAxesTest, PositionIdsOfAPrompt) {
  auto request = ModelRequest("Qwen3-VL-2B-Instruct.json", "text", kPrompt,
                              "layout: LAYOUT_POSITION_IDS");  // a bf16 checkpoint
  const std::string bytes = BytesOf(request);
  ASSERT_EQ(bytes.size(), (3 * 11 + 1) * sizeof(int32_t));
  const auto* ids = reinterpret_cast<const int32_t*>(bytes.data());
  EXPECT_EQ(std::vector<int32_t>(ids, ids + 11),
            (std::vector<int32_t>{0, 1, 2, 3, 3, 3, 3, 3, 3, 6, 7}));
  EXPECT_EQ(std::vector<int32_t>(ids + 11, ids + 22),
            (std::vector<int32_t>{0, 1, 2, 3, 3, 3, 4, 4, 4, 6, 7}));
  EXPECT_EQ(std::vector<int32_t>(ids + 22, ids + 33),
            (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 7}));
  EXPECT_EQ(ids[33], 8 - 11);
}

TEST(EngineAxesTest, AVisionTowerIsAskedForByGrid) {
  const std::string grid = "patch_grid { height: 8 width: 12 }";
  EXPECT_EQ(
      BytesOf(ModelRequest("Qwen2.5-VL-7B-Instruct.json", "vision", grid, "dtype: DTYPE_F32")),
      BytesOf(
          SpecRequest("axial_rope { preset: AXIAL_ROPE_PRESET_QWEN2_5_VL head_dim: 80 }", grid)));
  EXPECT_EQ(BytesOf(ModelRequest("Llama-4-Scout-17B-16E-Instruct.json", "vision", grid,
                                 "dtype: DTYPE_F32"))
                .size(),
            (8u * 12 + 1) * 88 * 4);  // and the class token
}

TEST(EngineAxesTest, AVisionTowerWithoutAGridIsRefused) {
  Engine engine;
  const auto table = engine.GetTable(ModelRequest("Qwen2-VL-2B-Instruct.json", "vision", ""));
  EXPECT_EQ(table.status().message(),
            "selection: is required: a patch_grid, axis_position_ids or points");
}

// Axes of 16, 56 and 56 channels: the class default, since the file does not say.
TEST(EngineAxesTest, FluxHasTheFilesAxes) {
  EXPECT_EQ(BytesOf(ModelRequest("FLUX.1-dev-transformer.json", "transformer",
                                 "patch_grid { height: 4 width: 4 }", "dtype: DTYPE_F32")),
            BytesOf(SpecRequest("axial_rope { preset: AXIAL_ROPE_PRESET_FLUX head_dim: 128 }",
                                "patch_grid { height: 4 width: 4 }")));
}

}  // namespace
}  // namespace posenc::testing
