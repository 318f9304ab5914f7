// Maps by layer type, and lists of the types that they are for: no layer is left out in silence.
// Sources are the configuration files of transformers 5 (read 2026-11).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using ::posenc::testing::FindingOf;
using ::posenc::testing::Refusal;
using ::posenc::testing::Resolved;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string EightLayers(absl::string_view model_type, absl::string_view more) {
  return absl::StrCat(R"({"model_type": ")", model_type,
                      R"(", "hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128,
                         "num_hidden_layers": 8, "max_position_embeddings": 8192, )",
                      more, "}");
}

constexpr char kFullMap[] = R"("full_attention": {"rope_type": "default", "rope_theta": 1e6})";
constexpr char kSlidingMap[] =
    R"("sliding_attention": {"rope_type": "default", "rope_theta": 1e4})";

std::string Maps(absl::string_view first, absl::string_view second = "") {
  return absl::StrCat(R"("rope_parameters": {)", first, second.empty() ? "" : ", ", second, "}");
}

TEST(LayerMapsTest, LayersWhoseMapIsLeftOutVanished) {
  EXPECT_EQ(Refusal(EightLayers("gemma3_text", Maps(kFullMap))),
            "config_json/rope_parameters/sliding_attention: is required beside the maps of other "
            "layers: layer 0 is of this type; null says that it does not rotate");
  EXPECT_THAT(Refusal(EightLayers("gemma3_text", Maps(kSlidingMap))),
              HasSubstr("config_json/rope_parameters/full_attention: is required beside the maps "
                        "of other layers: layer 5 "));
  EXPECT_THAT(
      Refusal(EightLayers("llama", absl::StrCat(R"("layer_types": ["full_attention",
          "full_attention", "full_attention", "full_attention", "full_attention",
          "full_attention", "full_attention", "chunked_attention"], )",
                                                Maps(kFullMap)))),
      HasSubstr("config_json/rope_parameters/chunked_attention: is required beside the maps of "
                "other layers: layer 7 "));
}

TEST(LayerMapsTest, LayersWhoseMapIsMisspeltVanished) {
  EXPECT_THAT(Refusal(EightLayers("gemma3_text", Maps(kFullMap, R"("sliding_attn": {})"))),
              HasSubstr("config_json/rope_parameters/sliding_attention: is required"));
}

TEST(LayerMapsTest, AMapOfNoTypeOfLayerWasIgnoredInSilence) {
  const auto response = Resolved(EightLayers(
      "gemma3_text", Maps(kFullMap, absl::StrCat(kSlidingMap, R"(, "sliding_attn": {})"))));
  const v1::Finding* finding = FindingOf(response, "rope-key-ignored");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->pointer(), "/rope_parameters/sliding_attn");
}

TEST(LayerMapsTest, LayersWithoutAttentionNeedNoMap) {
  const auto response =
      Resolved(EightLayers("llama", absl::StrCat(R"("layer_types": ["mamba", "mamba", "mamba",
          "mamba", "mamba", "mamba", "mamba", "full_attention"], )",
                                                 Maps(kFullMap))));
  ASSERT_EQ(response.encodings_size(), 1);
  EXPECT_THAT(response.encodings(0).layers(), ElementsAre(7));
  EXPECT_THAT(response.encodings(0).nope_layers(), ElementsAre(0, 1, 2, 3, 4, 5, 6));
}
// MORE

}  // namespace
}  // namespace posenc
