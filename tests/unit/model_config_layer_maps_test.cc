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
using ::posenc::testing::ModelWith;
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

TEST(LayerMapsTest, MapsThatAreAllMisspeltWereOnlyNoted) {
  const auto response =
      Resolved(EightLayers("llama", R"("rope_parameters": {"full_attn": {}, "sliding_attn": {}})"));
  const v1::Finding* finding = FindingOf(response, "rope-key-ignored");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->pointer(), "/rope_parameters/full_attn");
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

TEST(LayerMapsTest, LayersThatAListDoesNotRotateWereLostUnderAMap) {
  const std::string list = R"("no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0], )";
  for (const char* model_type : {"smollm3", "llama4_text", "nobody_knows"}) {
    const auto response = Resolved(EightLayers(model_type, list + Maps(kFullMap)));
    ASSERT_EQ(response.encodings_size(), 1) << model_type;
    EXPECT_EQ(response.encodings(0).layer_type(), "full_attention");
    EXPECT_EQ(response.encodings(0).spec().rope().rope_theta(), 1e6);
    EXPECT_THAT(response.encodings(0).layers(), ElementsAre(0, 1, 2, 4, 5, 6)) << model_type;
    EXPECT_THAT(response.encodings(0).nope_layers(), ElementsAre(3, 7)) << model_type;
  }
  const auto typed = Resolved(EightLayers("smollm3", absl::StrCat(list, R"("layer_types":
      ["full_attention", "full_attention", "full_attention", "full_attention",
       "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention"], )",
                                                                  Maps(kFullMap, kSlidingMap))));
  ASSERT_EQ(typed.encodings_size(), 2);
  EXPECT_THAT(typed.encodings(0).layers(), ElementsAre(0, 1, 2));
  EXPECT_THAT(typed.encodings(1).layers(), ElementsAre(4, 5, 6));
  EXPECT_THAT(typed.encodings(0).nope_layers(), ElementsAre(3, 7));
}

TEST(LayerMapsTest, BasesOfEachLayerWereLostUnderAMap) {
  const auto response = Resolved(
      EightLayers("granite_swa",
                  absl::StrCat(R"("layer_rope_theta": [1e4, 1e4, 1e4, 0, 1e6, 1e6, 1e6, 0], )",
                               Maps(R"("full_attention": {"rope_type": "linear", "factor": 2})"))));
  ASSERT_EQ(response.encodings_size(), 2);
  EXPECT_THAT(response.encodings(1).layers(), ElementsAre(4, 5, 6));
  EXPECT_EQ(response.encodings(1).spec().rope().rope_theta(), 1e6);
  EXPECT_EQ(response.encodings(1).rope_type(), "linear");
  EXPECT_THAT(response.encodings(1).nope_layers(), ElementsAre(3, 7));
}

TEST(LayerMapsTest, AMapMadeLayersRotateThatTheirClassDoesNot) {
  const auto response = Resolved(EightLayers("cohere2", Maps(kFullMap, kSlidingMap)));
  ASSERT_EQ(response.encodings_size(), 1);
  EXPECT_EQ(response.encodings(0).layer_type(), "sliding_attention");
  EXPECT_THAT(response.encodings(0).nope_layers(), ElementsAre(3, 7));
  const v1::Finding* finding = FindingOf(response, "rope-key-ignored");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->pointer(), "/rope_parameters/full_attention");
}

TEST(LayerMapsTest, OnlyNullsReadAsRotating) {
  for (const char* model_type : {"gemma3_text", "llama"}) {
    const auto response = Resolved(EightLayers(
        model_type, R"("rope_parameters": {"full_attention": null, "sliding_attention": null})"));
    ASSERT_EQ(response.encodings_size(), 1) << model_type;
    EXPECT_EQ(response.encodings(0).kind(), "none") << model_type;
    EXPECT_THAT(response.encodings(0).nope_layers(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  }
  EXPECT_THAT(Refusal(EightLayers("gemma3_text", Maps(R"("sliding_attention": null)"))),
              HasSubstr("config_json/rope_parameters/full_attention: is required"));
}

TEST(LayerMapsTest, MapsOfLayersThatNothingNamesHeldForAllOfThem) {
  EXPECT_EQ(Refusal(EightLayers("llama", Maps(kFullMap, kSlidingMap))),
            "config_json/layer_types: is required beside maps by layer type: which of the 8 layers "
            "each of the 2 holds for is not said");
  EXPECT_THAT(Refusal(EightLayers("llama", Maps(kFullMap, R"("sliding_attention": null)"))),
              HasSubstr("config_json/layer_types: is required"));
}

// layer_types ----------------------------------------------------------------------------------

TEST(LayerMapsTest, NamesThatNoGroupTakesWereAccepted) {
  const std::string types =
      R"("num_hidden_layers": 2, "layer_types": ["full_attention", "sliding"])";
  for (const char* model_type : {"gemma3_text", "gemma4_text", "olmo3", "modernbert",
                                 "mimo_v2_flash", "cohere2", "exaone4", "t5gemma2_decoder"}) {
    EXPECT_THAT(Refusal(ModelWith(model_type, types)),
                HasSubstr("config_json/layer_types/1: must be full_attention or "
                          "sliding_attention in this family, got string \"sliding\""))
        << model_type;
  }
}

TEST(LayerMapsTest, HybridsWhoseNamesNobodyKnowsRotatedEverywhere) {
  EXPECT_EQ(Refusal(ModelWith("qwen3_next", R"("num_hidden_layers": 2,
                                               "layer_types": ["linear_attention", "full"])")),
            "config_json/layer_types: must name layers with attention full_attention or attention "
            "or hybrid, has \"full\"");
}

// Its layers would not rotate, and nobody would be told.
TEST(LayerMapsTest, AMisspeltTypeBesideCorrectOnesDidNotRotate) {
  EXPECT_EQ(Refusal(ModelWith("qwen3_next", R"("num_hidden_layers": 3, "layer_types":
                ["linear_attention", "full_attention", "full_atention"])")),
            "config_json/layer_types/2: must be full_attention or one of linear_attention, mamba, "
            "mamba2, conv, recurrent, whose layers do not rotate, got string \"full_atention\"");
  EXPECT_THAT(Refusal(ModelWith("bamba", R"("num_hidden_layers": 2,
                  "layers_block_type": ["atention", "attention"])")),
              HasSubstr("config_json/layers_block_type/0: must be attention or one of"));
  EXPECT_THAT(Refusal(ModelWith("recurrent_gemma", R"("num_hidden_layers": 4,
                  "block_types": ["recurent", "attention"])")),
              HasSubstr("config_json/block_types/0: must be attention or one of"));
  EXPECT_THAT(Refusal(ModelWith("granitemoehybrid", R"("num_hidden_layers": 2,
                  "position_embedding_type": "rope", "layer_types": ["attention", "mamba3"])")),
              HasSubstr("config_json/layer_types/1: must be attention or one of"));
  EXPECT_THAT(Refusal(R"({"model_type": "deepseek_v4", "num_hidden_layers": 2,
                  "layer_types": ["sliding_atention", "compressed_sparse_attention"]})"),
              HasSubstr("config_json/layer_types/0: must be sliding_attention or "
                        "compressed_sparse_attention or heavily_compressed_attention"));
}

TEST(LayerMapsTest, AnUnknownTypeOfAnUnknownFamilyWasSilentlyWithoutAttention) {
  const auto response = Resolved(ModelWith("nobody_knows", R"("num_hidden_layers": 4,
      "rope_theta": 1e4, "layer_types": ["moe", "full_attn", "full_attention", "full_attn"])"));
  EXPECT_THAT(response.encodings(0).nope_layers(), ElementsAre(0, 1, 3));
  const v1::Finding* finding = FindingOf(response, "layer-type-unknown");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->pointer(), "/layer_types/1");
}

TEST(LayerMapsTest, AModelWithoutARotationHadNoLength) {
  for (const char* more : {R"("num_hidden_layers": 3)",
                           R"("num_hidden_layers": 3, "layer_types": ["linear_attention",
                              "linear_attention", "linear_attention"])"}) {
    const auto response = Resolved(ModelWith("qwen3_next", more));
    EXPECT_EQ(response.encodings(0).kind(), "none");
    EXPECT_EQ(response.encodings(0).max_position_embeddings(), 8192);
  }
  const auto off = Resolved(ModelWith("granitemoehybrid", R"("num_hidden_layers": 3)"));
  EXPECT_EQ(off.encodings(0).kind(), "none");
  EXPECT_EQ(off.encodings(0).max_position_embeddings(), 8192);
}

TEST(LayerMapsTest, GroupsWithoutLayersMeantAllLayers) {
  const std::string both = Maps(kFullMap, kSlidingMap);
  for (const std::string& more : {std::string(R"("num_hidden_layers": 4)"),
                                  absl::StrCat(R"("num_hidden_layers": 4, )", both)}) {
    for (const char* model_type : {"gemma3_text", "t5gemma2_decoder"}) {
      const auto response = Resolved(ModelWith(model_type, more));
      ASSERT_EQ(response.encodings_size(), 1) << model_type << more;
      EXPECT_EQ(response.encodings(0).layer_type(), "sliding_attention");
      EXPECT_THAT(response.encodings(0).layers(), ElementsAre(0, 1, 2, 3));
    }
  }
  const auto llama = Resolved(ModelWith(
      "llama",
      absl::StrCat(
          R"("num_hidden_layers": 2, "layer_types": ["full_attention", "full_attention"], )",
          both)));
  ASSERT_EQ(llama.encodings_size(), 1);
  EXPECT_EQ(llama.encodings(0).layer_type(), "full_attention");
}

TEST(LayerMapsTest, AHybridWithoutAFullLayerRotatedEverywhere) {
  const auto response = Resolved(ModelWith("qwen3_next", R"("num_hidden_layers": 3)"));
  ASSERT_EQ(response.encodings_size(), 1);
  EXPECT_EQ(response.encodings(0).kind(), "none");
  EXPECT_THAT(response.encodings(0).nope_layers(), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace posenc
