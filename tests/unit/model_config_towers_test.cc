// Parts of composites that see: the towers of images. Sources are the configuration and modeling
// files of transformers 5 (read 2026-11).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/families/family.h"
#include "lib/model_config/resolve.h"
#include "tests/support/tables.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using ::posenc::testing::CompositeWith;
using ::posenc::testing::FindingOf;
using ::posenc::testing::Refusal;
using ::posenc::testing::Resolved;
using ::posenc::testing::TheEncoding;
using ::posenc::testing::TowerOf;
using ::testing::ElementsAre;

TEST(TowersTest, Sam3WasReadAsARopeOfText) {
  const auto response = Resolved(
      R"({"model_type": "sam3_vit_model", "hidden_size": 1024, "num_attention_heads": 16,
          "num_hidden_layers": 3, "global_attn_indexes": [2], "image_size": 1008,
          "patch_size": 14, "window_size": 24, "rope_theta": 10000.0})");
  ASSERT_EQ(response.encodings_size(), 3);
  const v1::ResolvedEncoding& window = response.encodings(0);
  EXPECT_EQ(window.tower(), "vision");
  EXPECT_EQ(window.layer_type(), "window_attention");
  EXPECT_EQ(window.spec().axial_rope().preset(), v1::AXIAL_ROPE_PRESET_SAM2);
  EXPECT_EQ(window.spec().axial_rope().head_dim(), 64);
  EXPECT_THAT(window.layers(), ElementsAre(0, 1));
  const v1::ResolvedEncoding& global = response.encodings(1);
  EXPECT_EQ(global.layer_type(), "global_attention");
  EXPECT_THAT(global.layers(), ElementsAre(2));
  EXPECT_DOUBLE_EQ(global.spec().axial_rope().coordinate_scale(), 24.0 / 72.0);
  EXPECT_EQ(response.encodings(2).kind(), "learned_2d");
  EXPECT_THAT(response.encodings(2).learned().grid(), ElementsAre(24, 24));
}

// SAM 3 and SAM 2 keep the transformer in a part of the vision tower.
TEST(TowersTest, TheBackboneOfAVisionTowerWasNotLookedFor) {
  const auto sam3 = Resolved(R"({"model_type": "sam3",
      "text_config": {"model_type": "clip_text_model", "hidden_size": 1024,
                      "max_position_embeddings": 32},
      "vision_config": {"model_type": "sam3_vision_model",
                        "backbone_config": {"model_type": "sam3_vit_model",
                                            "rope_theta": 10000.0}}})");
  EXPECT_EQ(FindingOf(sam3, "tower-unknown"), nullptr);
  EXPECT_EQ(sam3.encodings(0).learned().rows(), 32);
  EXPECT_EQ(TowerOf(sam3, "vision").size(), 3u);
  EXPECT_THAT(TowerOf(sam3, "vision")[1].layers(), ElementsAre(7, 15, 23, 31));
  EXPECT_EQ(TowerOf(sam3, "neck").at(0).spec().detr_sine().num_position_features(), 128);
  const auto sam2 = Resolved(R"({"model_type": "sam2",
      "vision_config": {"model_type": "sam2_vision_model",
                        "backbone_config": {"model_type": "sam2_hiera_det_model",
                                            "hidden_size": 112}}})");
  ASSERT_EQ(sam2.encodings_size(), 3) << "and the neck";
  EXPECT_EQ(sam2.encodings(0).layer_type(), "background");
  EXPECT_THAT(sam2.encodings(0).learned().grid(), ElementsAre(7, 7));
  EXPECT_EQ(sam2.encodings(1).layer_type(), "window");
  EXPECT_THAT(sam2.encodings(1).learned().grid(), ElementsAre(8, 8));
  EXPECT_EQ(sam2.encodings(1).learned().dim(), 112);
  const auto other = Resolved(R"({"model_type": "sam2",
      "vision_config": {"model_type": "sam2_vision_model",
                        "backbone_config": {"model_type": "clip_vision_model"}}})");
  ASSERT_EQ(other.encodings_size(), 1) << "the neck alone";
  EXPECT_NE(FindingOf(other, "tower-unknown"), nullptr);
  EXPECT_EQ(Refusal(R"({"model_type": "sam2"})"),
            "config_json/vision_config: is required for model_type sam2");
}

TEST(TowersTest, VisionTowersWereUnknownUnderTheirOwnNames) {
  for (const auto& [root, type, preset] :
       {std::tuple("ernie4_5_vl_moe", "ernie4_5_vl_moe_vision", v1::AXIAL_ROPE_PRESET_QWEN_VL),
        std::tuple("cohere_compass", "cohere_compass_vision", v1::AXIAL_ROPE_PRESET_QWEN_VL),
        std::tuple("cosmos3_omni", "qwen3_vl_vision", v1::AXIAL_ROPE_PRESET_QWEN_VL),
        std::tuple("cosmos3_omni", "cosmos3_omni_vision", v1::AXIAL_ROPE_PRESET_QWEN_VL),
        std::tuple("qwen2_vl", "qwen2_vl_vision", v1::AXIAL_ROPE_PRESET_QWEN_VL),
        std::tuple("qwen2_5_vl", "qwen2_5_vl_vision", v1::AXIAL_ROPE_PRESET_QWEN2_5_VL),
        std::tuple("kimi_k25", "kimi_k25_vision", v1::AXIAL_ROPE_PRESET_KIMI_VISION),
        std::tuple("exaone4_5", "exaone4_5_vision", v1::AXIAL_ROPE_PRESET_QWEN2_5_VL),
        std::tuple("video_llama_3", "video_llama_3_vision", v1::AXIAL_ROPE_PRESET_QWEN_VL)}) {
    // Where it says its type, and where only the model around it does.
    for (const bool named : {true, false}) {
      const std::string name = named ? absl::StrCat(R"("model_type": ")", type, "\", ") : "";
      const auto response = Resolved(CompositeWith(
          root, "vision_config",
          absl::StrCat("{", name, R"("hidden_size": 1152, "num_attention_heads": 16})")));
      ASSERT_EQ(TowerOf(response, "vision").size(), 1u) << root << " " << type;
      EXPECT_EQ(TowerOf(response, "vision")[0].spec().axial_rope().preset(), preset) << root;
      EXPECT_EQ(FindingOf(response, "tower-unknown"), nullptr) << root;
    }
  }
}

// Qwen2VLVisionConfig and kin: a file that leaves spatial_merge_size or patch_size out has 2
// and 14.
TEST(TowersTest, MergedSquaresThatAFileLeavesOutWereSaidToBeNone) {
  const auto tower = [](const char* root, const char* more) {
    return TowerOf(Resolved(CompositeWith(
                       root, "vision_config",
                       absl::StrCat(R"({"hidden_size": 1280, "num_heads": 16)", more, "}"))),
                   "vision")
        .at(0);
  };
  for (const char* root : {"qwen2_vl", "qwen2_5_vl", "qwen3_vl"}) {
    EXPECT_EQ(tower(root, "").axial().spatial_merge_size(), 2) << root;
    EXPECT_EQ(tower(root, "").spec().axial_rope().merge_size(), 2) << root;
  }
  EXPECT_EQ(tower("qwen2_vl", R"(, "spatial_merge_size": 4)").axial().spatial_merge_size(), 4);
  EXPECT_EQ(tower("mlcd", "").axial().spatial_merge_size(), 1);
  EXPECT_EQ(tower("mistral3", "").axial().spatial_merge_size(), 1);
  EXPECT_EQ(tower("qwen2_5_vl", R"(, "window_size": 56)").spec().axial_rope().window_size(), 2);
}

// PaddleOCRVisionEncoder counts its patches row by row; VideoLlama3ImageProcessor merges none of an
// image; get_vision_position_ids goes through MiniMax M3's squares too.
TEST(TowersTest, PatchesOfSomeTowersStoodInTheOrderOfAnother) {
  const auto spec = [](const char* root) {
    const auto response = Resolved(
        CompositeWith(root, "vision_config", R"({"hidden_size": 1280, "num_attention_heads": 16,
                                                 "image_size": 2016, "patch_size": 14})"));
    return Canonicalize(TowerOf(response, "vision").at(0).spec()).value().proto().axial_rope();
  };
  EXPECT_EQ(spec("paddleocr_vl").token_order(), v1::GRID_TOKEN_ORDER_ROW_MAJOR);
  EXPECT_EQ(spec("video_llama_3").merge_size(), 1);
  EXPECT_EQ(spec("minimax_m3_vl").token_order(), v1::GRID_TOKEN_ORDER_MERGE_BLOCKS);
  EXPECT_EQ(spec("minimax_m3_vl").merge_size(), 2);
}

// MiniMaxM3VLConfig makes both parts of its own classes, whatever type the released file gives
// them.
TEST(TowersTest, MiniMaxM3sVisionTowerWasReadAsClips) {
  const auto response = Resolved(R"({"model_type": "minimax_m3_vl",
      "text_config": {"model_type": "minimax_m2", "hidden_size": 6144, "num_attention_heads": 64,
                      "num_hidden_layers": 2, "rope_theta": 5000000, "rotary_dim": 64},
      "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1280,
                        "num_attention_heads": 16, "image_size": 2016, "patch_size": 14}})");
  ASSERT_EQ(TowerOf(response, "vision").size(), 1u);
  EXPECT_EQ(TowerOf(response, "vision")[0].spec().axial_rope().preset(),
            v1::AXIAL_ROPE_PRESET_MINIMAX_M3);
  EXPECT_EQ(TowerOf(response, "text").at(0).spec().rope().rotary_dim(), 64);
  const auto sparse = Resolved(R"({"model_type": "minimax_m3_vl", "text_config": {
      "model_type": "minimax_m3_vl_text", "hidden_size": 6144, "num_attention_heads": 64}})");
  EXPECT_EQ(TowerOf(sparse, "text").at(0).spec().rope().rotary_dim(), 64) << "of 128, the class's";
}

// Step3p7VisionModel: rows, then columns, no merged squares; width and heads are the hub's names.
TEST(TowersTest, Step3p7sVisionTowerWasUnknown) {
  const auto response = Resolved(
      CompositeWith("step3p7", "vision_config", R"({"width": 1536, "heads": 16, "layers": 47})"));
  const v1::AxialRopeSpec spec = TowerOf(response, "vision").at(0).spec().axial_rope();
  EXPECT_EQ(spec.preset(), v1::AXIAL_ROPE_PRESET_QWEN_VL);
  EXPECT_EQ(spec.head_dim(), 96);
  EXPECT_EQ(spec.merge_size(), 1);
}

// Of a token of a square grid: cosines of x and y times 10000^(-2k/8), in this order, of a head
// of 16.
void ExpectCosines(const v1::EncodingSpec& spec, int64_t side, size_t token, double x, double y) {
  v1::Selection selection;
  selection.mutable_patch_grid()->set_height(side);
  selection.mutable_patch_grid()->set_width(side);
  const auto table =
      testing::FillTable(spec, selection, testing::Format("layout: LAYOUT_COS_AND_SIN_HALF"));
  ASSERT_TRUE(table.ok()) << table.status();
  const std::vector<float> cos = table->tensors[0].As<float>();
  ASSERT_EQ(cos.size(), static_cast<size_t>(side * side) * 8);
  for (size_t k = 0; k < 4; ++k) {
    const double inv_freq = std::pow(1e4, -2.0 * static_cast<double>(k) / 8);
    EXPECT_NEAR(cos[token * 8 + k], std::cos(x * inv_freq), 1e-6) << k;
    EXPECT_NEAR(cos[token * 8 + 4 + k], std::cos(y * inv_freq), 1e-6) << k;
  }
}

TEST(TowersTest, RowsOfMuseGlimmerAndSam3AreThoseOfTheirFormulas) {
  const auto muse = Resolved(R"({"model_type": "muse_glimmer_vision", "hidden_size": 64,
      "num_attention_heads": 4, "pos_emb_height": 2})");
  // Windows of 2 x 2: the fifth token begins the second, at row 0, column 2, counted from 1.
  ExpectCosines(muse.encodings(0).spec(), 3, 4, 3, 1);
  const auto sam3 = Resolved(R"({"model_type": "sam3_vit_model", "hidden_size": 64,
      "num_attention_heads": 4, "num_hidden_layers": 1, "image_size": 84, "patch_size": 14,
      "window_size": 2, "pretrain_image_size": 28})");
  ExpectCosines(sam3.encodings(0).spec(), 2, 3, 1, 1);
  // Across the three windows of a side the coordinates are a third of their own.
  ExpectCosines(sam3.encodings(1).spec(), 6, 3, 1, 0);
}

// MuseGlimmerVisionModel: columns first, counted from 1, windows of pos_emb_height patches.
TEST(TowersTest, MuseGlimmersVisionTowerWasUnknown) {
  const auto response = Resolved(
      CompositeWith("muse_glimmer", "vision_config", R"({"model_type": "muse_glimmer_vision"})"));
  const v1::AxialRopeSpec spec = TowerOf(response, "vision").at(0).spec().axial_rope();
  EXPECT_EQ(spec.head_dim(), 96);
  ASSERT_EQ(spec.axes_size(), 2);
  EXPECT_EQ(spec.axes(0).axis(), v1::GRID_AXIS_X);
  EXPECT_EQ(spec.axes(0).dim(), 48);
  EXPECT_EQ(spec.coordinate_offset(), 1);
  EXPECT_EQ(spec.merge_size(), 1);
  EXPECT_EQ(spec.window_size(), 32);
}

TEST(TowersTest, LearnedGridsOfMllamaAndCosmosWereUnknown) {
  const auto mllama = Resolved(CompositeWith(
      "mllama", "vision_config", R"({"model_type": "mllama_vision_model", "image_size": 560})"));
  EXPECT_EQ(TowerOf(mllama, "vision").at(0).learned().rows(), 1601);
  EXPECT_EQ(TowerOf(mllama, "vision").at(0).variant(), "gated_tiles");
  const auto cosmos = Resolved(
      CompositeWith("cosmos3_edge", "vision_config", R"({"model_type": "cosmos3_edge_vision"})"));
  EXPECT_EQ(TowerOf(cosmos, "vision").at(0).learned().rows(), 256);
}

// The model around them has one class for them, or a default (configuration_llama4.py,
// configuration_gemma3.py, configuration_mistral3.py, configuration_qwen2_audio.py).
TEST(TowersTest, TowersWithoutATypeWereUnknown) {
  const auto kind = [](const char* model_type, const char* part, const char* keys) {
    const auto response =
        Resolved(absl::StrCat(R"({"model_type": ")", model_type,
                              R"(", "text_config": {"hidden_size": 4096, "num_attention_heads": 32,
                         "head_dim": 128, "num_hidden_layers": 8}, ")",
                              part, R"(": {)", keys, "}}"));
    EXPECT_EQ(FindingOf(response, "tower-unknown"), nullptr) << model_type;
    const auto& last = response.encodings(response.encodings_size() - 1);
    return absl::StrCat(last.tower(), " ", last.kind(), " ", last.rope_type());
  };
  constexpr char kSizes[] = R"("hidden_size": 1408, "num_attention_heads": 16, "image_size": 336,
                               "patch_size": 14)";
  EXPECT_EQ(kind("llama4", "vision_config", kSizes), "vision rope axial_2d");
  EXPECT_EQ(kind("gemma3", "vision_config", kSizes), "vision learned_2d ");
  EXPECT_EQ(kind("diffusion_gemma", "vision_config", kSizes), "vision rope axial_2d");
  EXPECT_EQ(kind("mistral3", "vision_config", kSizes), "vision rope pixtral_2d");
  EXPECT_EQ(kind("llava", "vision_config", kSizes), "vision learned_2d ");
  EXPECT_EQ(kind("qwen2_audio", "audio_config", R"("d_model": 1280)"), "audio sinusoidal ");
}

TEST(TowersTest, AnAudioTowerWithoutATypeWasReadAsOneThatSees) {
  const auto response = Resolved(R"({"model_type": "qwen2_5_omni", "text_config": {
      "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 8},
      "audio_config": {"hidden_size": 1280, "num_heads": 16}})");
  EXPECT_NE(FindingOf(response, "tower-unknown"), nullptr);
  EXPECT_EQ(response.encodings_size(), 1);
}

TEST(TowersTest, EomtDinov3WasUnknown) {
  const auto encoding = TheEncoding(R"({"model_type": "eomt_dinov3", "hidden_size": 1024,
      "num_attention_heads": 16, "rope_parameters": {"rope_theta": 100.0}})");
  EXPECT_EQ(encoding.spec().axial_rope().preset(), v1::AXIAL_ROPE_PRESET_DINOV3);
}

}  // namespace
}  // namespace posenc
