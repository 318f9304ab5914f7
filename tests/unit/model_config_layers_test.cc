// Which layers rotate, how wide and by which base, where files say it in lists. Sources are the
// configuration files of transformers 5, vLLM's models/step3p5.py and transformers_utils/config.py
// (read 2026-11).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "lib/model_config/resolve.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using ::posenc::testing::FindingOf;
using ::posenc::testing::ModelWith;
using ::posenc::testing::Refusal;
using ::posenc::testing::Resolved;
using ::posenc::testing::ResolvedAs;
using ::posenc::testing::TheEncoding;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// StableLMEpochConfig, before the family was in transformers.
TEST(LayersTest, StablelmEpochHadTheWholeHead) {
  const auto response = Resolved(ModelWith("stablelm_epoch", R"("rope_pct": 0.5)"));
  EXPECT_EQ(response.encodings(0).spec().rope().rotary_dim(), 64);
  EXPECT_EQ(FindingOf(response, "model-type-unknown"), nullptr);
}

// A base, a width, a scaling for each layer ----------------------------------------------------

// As on the hub: lists with an entry for a prediction layer more than the model has.
constexpr char kStep[] = R"({"model_type": "step3p7", "text_config": {
    "architectures": ["Step3p5ForCausalLM"], "model_type": "step3p5", "num_hidden_layers": 4,
    "num_nextn_predict_layers": 1, "hidden_size": 4096, "num_attention_heads": 64,
    "head_dim": 128, "max_position_embeddings": 262144,
    "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention",
                    "sliding_attention"],
    "rope_theta": [5000000.0, 10000.0, 10000.0, 5000000.0, 10000.0],
    "partial_rotary_factors": [0.5, 1.0, 1.0, 0.5, 1.0],
    "rope_scaling": {"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 1.0,
                     "high_freq_factor": 32.0, "original_max_position_embeddings": 131072},
    "yarn_only_types": ["full_attention"]}})";

TEST(LayersTest, StepsBaseAsAListWasRefusedOrReadAsOne) {
  const auto response = Resolved(kStep);
  ASSERT_EQ(response.encodings_size(), 2);
  const v1::ResolvedEncoding& full = response.encodings(0);
  EXPECT_EQ(full.layer_type(), "full_attention");
  EXPECT_THAT(full.layers(), ElementsAre(0, 3));
  EXPECT_EQ(full.rope_type(), "llama3");
  EXPECT_EQ(full.spec().rope().rope_theta(), 5e6);
  EXPECT_EQ(full.spec().rope().rotary_dim(), 64);
  const v1::ResolvedEncoding& sliding = response.encodings(1);
  EXPECT_THAT(sliding.layers(), ElementsAre(1, 2));
  EXPECT_EQ(sliding.rope_type(), "default") << "yarn_only_types has full_attention alone";
  EXPECT_EQ(sliding.spec().rope().rope_theta(), 1e4);
  EXPECT_EQ(sliding.spec().rope().rotary_dim(), 128);
}

TEST(LayersTest, StepsLayersOfOneTypeThatDifferWereReadAsTheFirst) {
  EXPECT_EQ(Refusal(R"({"model_type": "step3p5", "num_hidden_layers": 2, "head_dim": 128,
                        "layer_types": ["full_attention", "full_attention"],
                        "rope_theta": [10000, 20000]})"),
            "config_json/rope_theta/1: must be that of the other layers of type full_attention, "
            "10000, got 20000");
  EXPECT_THAT(Refusal(R"({"model_type": "step3p5", "num_hidden_layers": 3, "head_dim": 128,
                          "rope_theta": [10000, 10000]})"),
              HasSubstr("config_json/rope_theta: must have an entry for each of the 3 layers"));
}

TEST(LayersTest, StepsLayersWithoutRopeWereReportedAsRotating) {
  const auto response = Resolved(
      R"({"model_type": "step3p5", "num_hidden_layers": 3, "head_dim": 128, "rope_theta": 10000,
          "use_rope_layers": [true, false, true]})");
  EXPECT_THAT(response.encodings(0).layers(), ElementsAre(0, 2));
  EXPECT_THAT(response.encodings(0).nope_layers(), ElementsAre(1));
}

TEST(LayersTest, LagunaMellumAndZayaHadTheBaseOfLlama) {
  const auto laguna = Resolved(R"({"model_type": "laguna", "num_hidden_layers": 2,
      "layer_types": ["full_attention", "sliding_attention"]})");
  ASSERT_EQ(laguna.encodings_size(), 2);
  EXPECT_EQ(laguna.encodings(0).spec().rope().rope_theta(), 5e5);
  EXPECT_EQ(laguna.encodings(0).spec().rope().rotary_dim(), 64);
  EXPECT_EQ(laguna.encodings(1).spec().rope().rope_theta(), 1e4);
  EXPECT_EQ(laguna.encodings(1).spec().rope().rotary_dim(), 128);
  const auto mellum = Resolved(R"({"model_type": "mellum", "num_hidden_layers": 2})");
  ASSERT_EQ(mellum.encodings_size(), 1) << "all layers are full where layer_types is missing";
  EXPECT_EQ(mellum.encodings(0).spec().rope().rope_theta(), 5e5);
  EXPECT_THAT(mellum.encodings(0).layers(), ElementsAre(0, 1));
  const auto zaya = Resolved(R"({"model_type": "zaya", "num_hidden_layers": 2,
      "layer_types": ["hybrid", "hybrid_sliding"]})");
  EXPECT_EQ(zaya.encodings(0).spec().rope().rope_theta(), 5e6);
  EXPECT_EQ(zaya.encodings(0).spec().rope().rotary_dim(), 64);
  EXPECT_EQ(zaya.encodings(1).spec().rope().rope_theta(), 1e4);
}

// ZayaConfig: without layer_types every layer is hybrid, whatever other maps the file has.
TEST(LayersTest, ZayaWithoutLayerTypesHadTwoBasesInEveryLayer) {
  constexpr char kMaps[] = R"(, "rope_parameters": {"rope_type": "default",
      "hybrid": {"rope_type": "default", "rope_theta": 5000000, "partial_rotary_factor": 0.5},
      "hybrid_sliding": {"rope_type": "default", "rope_theta": 10000}})";
  for (const char* maps : {"", kMaps}) {
    const auto zaya =
        TheEncoding(absl::StrCat(R"({"model_type": "zaya", "num_hidden_layers": 2)", maps, "}"));
    EXPECT_EQ(zaya.layer_type(), "hybrid") << maps;
    EXPECT_THAT(zaya.layers(), ElementsAre(0, 1)) << maps;
    EXPECT_EQ(zaya.spec().rope().rope_theta(), 5e6) << maps;
  }
}

// The rotary classes of deepseek_v4, laguna (whose mellum's and zaya's are) and step3p7 take
// int(head_dim * partial_rotary_factor) with rope_type default too.
TEST(LayersTest, TransformersFiveWasSaidToIgnoreThePartOfTheHead) {
  for (const char* model_type : {"laguna", "mellum", "step3p7", "deepseek_v4"}) {
    const bool latent = std::string(model_type) == "deepseek_v4";
    const std::string type = latent ? "main" : "full_attention";
    const auto response =
        ResolvedAs(absl::StrCat(R"({"model_type": ")", model_type, R"(", "head_dim": 128,
                         "num_hidden_layers": 1, "rope_parameters": {")",
                                type, R"(": {"rope_type": "default", "rope_theta": 10000,
                               "partial_rotary_factor": 0.25},
                         "compress": {"rope_type": "default", "rope_theta": 160000}}})"),
                   v1::COMPAT_V5_16);
    ASSERT_GT(response.encodings_size(), 0) << model_type;
    EXPECT_EQ(response.encodings(0).spec().rope().rotary_dim(), 32) << model_type;
    EXPECT_EQ(FindingOf(response, "compat-differs"), nullptr) << model_type;
  }
  const auto zaya = ResolvedAs(R"({"model_type": "zaya", "num_hidden_layers": 1,
      "layer_types": ["hybrid"], "rope_parameters": {"hybrid": {"rope_type": "default",
      "rope_theta": 5000000, "partial_rotary_factor": 0.25}}})",
                               v1::COMPAT_V5_16);
  EXPECT_EQ(zaya.encodings(0).spec().rope().rotary_dim(), 32);
}

// DeepseekV4Config: sliding layers have `main`, the compressed ones the other.
TEST(LayersTest, DeepseekV4sLayerTypesWereNotRead) {
  const auto response = Resolved(R"({"model_type": "deepseek_v4", "num_hidden_layers": 3,
      "rope_theta": 10000, "layer_types": ["sliding_attention", "compressed_sparse_attention",
      "heavily_compressed_attention"]})");
  EXPECT_THAT(response.encodings(0).layers(), ElementsAre(0));
  EXPECT_THAT(response.encodings(1).layers(), ElementsAre(1, 2));
}

// What transformers 5.17 saves in place of global_head_dim.
TEST(LayersTest, Gemma4sHeadsByLayerWereNotRead) {
  const auto response = Resolved(R"({"model_type": "gemma4_text", "num_hidden_layers": 2,
      "head_dim": 64, "layer_types": ["sliding_attention", "full_attention"],
      "per_layer_config": {"1": {"head_dim": 128}}})");
  EXPECT_EQ(response.encodings(0).spec().rope().head_dim(), 128);
  EXPECT_EQ(response.encodings(1).spec().rope().head_dim(), 64);
}

// MuseGlimmerTextConfig: counted back from the last layer.
TEST(LayersTest, MuseGlimmerWithoutItsListRotatedEverywhere) {
  const auto encoding = TheEncoding(R"({"model_type": "muse_glimmer_text", "rope_theta": 500000,
                                        "num_hidden_layers": 6})");
  EXPECT_THAT(encoding.nope_layers(), ElementsAre(1, 5));
  EXPECT_THAT(encoding.layers(), ElementsAre(0, 2, 3, 4));
  EXPECT_EQ(encoding.spec().rope().head_dim(), 128);
}

// Hybrids ---------------------------------------------------------------------------------------

TEST(HybridTest, BambasStateSpaceLayersWereReportedAsRotating) {
  const auto encoding = TheEncoding(ModelWith(
      "bamba", R"("num_hidden_layers": 4, "attn_layer_indices": [1, 3], "rope_theta": 10000)"));
  EXPECT_THAT(encoding.layers(), ElementsAre(1, 3));
  EXPECT_THAT(encoding.nope_layers(), ElementsAre(0, 2));
  EXPECT_THAT(Refusal(ModelWith("bamba", R"("num_hidden_layers": 4, "attn_layer_indices": [4])")),
              HasSubstr("config_json/attn_layer_indices: must name layers from 0 to 3, names 4"));
}

// BambaConfig sets it, whatever the file has beside the map.
TEST(HybridTest, BambasPartOfTheHeadWasTheFiles) {
  const auto response = Resolved(ModelWith("bamba", R"("partial_rotary_factor": 0.25)"));
  EXPECT_EQ(response.encodings(0).spec().rope().rotary_dim(), 64);
  ASSERT_NE(FindingOf(response, "rope-key-ignored"), nullptr);
  EXPECT_EQ(FindingOf(response, "rope-key-ignored")->pointer(), "/partial_rotary_factor");
  EXPECT_EQ(FindingOf(Resolved(ModelWith("bamba", R"("partial_rotary_factor": 0.5)")),
                      "rope-key-ignored"),
            nullptr);
}

TEST(HybridTest, ZambasStateSpaceLayersWereReportedAsRotating) {
  const auto encoding = TheEncoding(
      ModelWith("zamba2", R"("num_hidden_layers": 4, "use_mem_rope": true, "rope_theta": 10000,
                   "layers_block_type": ["mamba", "mamba", "hybrid", "mamba"])"));
  EXPECT_EQ(encoding.layer_type(), "hybrid");
  EXPECT_THAT(encoding.layers(), ElementsAre(2));
  EXPECT_THAT(encoding.nope_layers(), ElementsAre(0, 1, 3));
  const auto by_numbers = TheEncoding(ModelWith(
      "zamba2", R"("num_hidden_layers": 4, "use_mem_rope": true, "hybrid_layer_ids": [2])"));
  EXPECT_THAT(by_numbers.layers(), ElementsAre(2));
}

// Zamba2Config: attention_head_dim = 2 * hidden_size / num_attention_heads.
TEST(HybridTest, ZambasHeadsWereHalfAsWide) {
  EXPECT_EQ(TheEncoding(ModelWith("zamba2", R"("use_mem_rope": true)")).spec().rope().head_dim(),
            256);
}

TEST(HybridTest, ZambasLongContextWasIgnored) {
  EXPECT_THAT(Refusal(ModelWith("zamba2", R"("use_mem_rope": true, "use_long_context": true)")),
              HasSubstr("config_json/use_long_context: must be false"));
}

// RecurrentGemmaConfig repeats block_types over the layers.
TEST(HybridTest, RecurrentGemmasRecurrentLayersWereReportedAsRotating) {
  const auto by_class = TheEncoding(ModelWith("recurrent_gemma", R"("num_hidden_layers": 4)"));
  EXPECT_THAT(by_class.layers(), ElementsAre(2));
  const auto by_file = TheEncoding(ModelWith(
      "recurrent_gemma", R"("num_hidden_layers": 4, "block_types": ["recurrent", "attention"])"));
  EXPECT_THAT(by_file.layers(), ElementsAre(1, 3));
  EXPECT_THAT(by_file.nope_layers(), ElementsAre(0, 2));
}

// full_attn_layers counts from 1.
TEST(HybridTest, KimisLinearLayersWereReportedAsRotating) {
  const auto encoding = TheEncoding(ModelWith(
      "kimi_linear", R"("num_hidden_layers": 4, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
         "mla_use_nope": false, "rope_theta": 10000,
         "linear_attn_config": {"kda_layers": [1, 2, 3], "full_attn_layers": [4]})"));
  EXPECT_THAT(encoding.layers(), ElementsAre(3));
  EXPECT_THAT(encoding.nope_layers(), ElementsAre(0, 1, 2));
}

// MiniMaxConfig: every other layer is full, the first of them layer 0.
TEST(HybridTest, MiniMaxsLinearLayersWereReportedAsRotating) {
  const auto by_file = TheEncoding(ModelWith(
      "minimax", R"("num_hidden_layers": 3, "head_dim": 128, "layer_types": ["linear_attention",
                    "linear_attention", "full_attention"])"));
  EXPECT_THAT(by_file.layers(), ElementsAre(2));
  EXPECT_THAT(by_file.nope_layers(), ElementsAre(0, 1));
  const auto by_class = TheEncoding(ModelWith("minimax", R"("num_hidden_layers": 3)"));
  EXPECT_THAT(by_class.layers(), ElementsAre(0, 2));
  // The hub's files: 1 is full attention, 0 lightning attention.
  const auto by_numbers = TheEncoding(ModelWith(
      "minimax_m1", R"("num_hidden_layers": 3, "head_dim": 128, "attn_type_list": [0, 0, 1])"));
  EXPECT_THAT(by_numbers.layers(), ElementsAre(2));
}

// Lfm2Config: full_attn_idxs, and all layers where the file has no list at all.
TEST(HybridTest, Lfm2sConvolutionsWereEveryFourthLayersOthers) {
  const auto by_numbers =
      TheEncoding(ModelWith("lfm2", R"("num_hidden_layers": 4, "full_attn_idxs": [0, 2])"));
  EXPECT_THAT(by_numbers.layers(), ElementsAre(0, 2));
  EXPECT_THAT(by_numbers.nope_layers(), ElementsAre(1, 3));
  const auto by_class = TheEncoding(ModelWith("lfm2", R"("num_hidden_layers": 4)"));
  EXPECT_THAT(by_class.nope_layers(), IsEmpty());
}

// OlmoHybridModel makes a rotary embedding only where rope_parameters has a base.
TEST(HybridTest, OlmoHybridWithoutABaseWasUnknownOrRotated) {
  const auto none = Resolved(ModelWith("olmo_hybrid", R"("num_hidden_layers": 4,
      "rope_parameters": null)"));
  EXPECT_EQ(none.encodings(0).kind(), "none");
  const auto rotated = TheEncoding(ModelWith("olmo_hybrid", R"("num_hidden_layers": 4,
                        "rope_parameters": {"rope_type": "default", "rope_theta": 500000})"));
  EXPECT_THAT(rotated.layers(), ElementsAre(3));
  EXPECT_EQ(rotated.spec().rope().rope_theta(), 5e5);
}

}  // namespace
}  // namespace posenc
