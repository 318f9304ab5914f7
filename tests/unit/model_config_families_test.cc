// Rows of the table of families, each as its class in transformers or diffusers has it. Sources
// are the classes' configuration files of transformers 5 (read 2026-11), and reference/
// other-encodings.md for what is not RoPE.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/families/family.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using ::posenc::testing::ModelWith;
using ::posenc::testing::Refusal;
using ::posenc::testing::Resolve;
using ::posenc::testing::Resolved;
using ::posenc::testing::TheEncoding;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Decoders --------------------------------------------------------------------------------

// ApertusConfig and CwmConfig, whose __post_init__ fills in a llama3 map.
TEST(FamilyRowsTest, ApertusAndCwmHaveALlama3ScalingWithoutAMap) {
  const auto apertus =
      TheEncoding(R"({"model_type": "apertus", "hidden_size": 4096, "num_attention_heads": 32})");
  EXPECT_EQ(apertus.spec().rope().rope_theta(), 1.2e7);
  EXPECT_EQ(apertus.spec().rope().llama3().factor(), 8);
  EXPECT_EQ(apertus.spec().rope().llama3().original_max_position_embeddings(), 8192);
  const auto cwm = TheEncoding(R"({"model_type": "cwm", "hidden_size": 6144,
                                   "num_attention_heads": 48})");
  EXPECT_EQ(cwm.spec().rope().rope_theta(), 1e6);
  EXPECT_EQ(cwm.spec().rope().llama3().factor(), 16);
  EXPECT_EQ(cwm.spec().rope().llama3().high_freq_factor(), 4);
}

// Heads that are not hidden_size / num_attention_heads in the class.
TEST(FamilyRowsTest, HeadsOfTheClassStandInWhereTheFileHasNone) {
  for (const auto& [model_type, head_dim] :
       {std::pair("afmoe", 128), std::pair("seed_oss", 128), std::pair("ernie4_5", 128),
        std::pair("minimax_m2", 128), std::pair("mimo_v2_flash", 192), std::pair("qwen3", 128),
        std::pair("cwm", 128), std::pair("qwen3_moe", 64)}) {
    const auto response = Resolved(absl::StrCat(R"({"model_type": ")", model_type,
                                                R"(", "hidden_size": 2048,
                                                   "num_attention_heads": 32})"));
    EXPECT_EQ(response.encodings(0).spec().rope().head_dim(), head_dim) << model_type;
  }
}

// MiMoV2FlashConfig: the first layer and every sixth are full; hybrid_layer_pattern of the hub's
// files has 0 for them.
TEST(FamilyRowsTest, MimoV2HasTwoBasesAndFullLayersAtTheStartAndEverySixth) {
  const auto by_class = Resolved(R"({"model_type": "mimo_v2_flash", "num_hidden_layers": 13})");
  ASSERT_EQ(by_class.encodings_size(), 2);
  EXPECT_THAT(by_class.encodings(0).layers(), ElementsAre(0, 5, 11));
  EXPECT_EQ(by_class.encodings(0).spec().rope().rope_theta(), 5e6);
  EXPECT_EQ(by_class.encodings(0).spec().rope().rotary_dim(), 64) << "trunc(0.334 * 192)";
  EXPECT_EQ(by_class.encodings(1).spec().rope().rope_theta(), 1e4);
  const auto by_file = Resolved(R"({"model_type": "mimo_v2_flash", "num_hidden_layers": 4,
      "rope_theta": 5000000, "swa_rope_theta": 10000, "head_dim": 192, "swa_head_dim": 192,
      "partial_rotary_factor": 0.334, "hybrid_layer_pattern": [0, 1, 1, 0]})");
  EXPECT_THAT(by_file.encodings(0).layers(), ElementsAre(0, 3));
  EXPECT_THAT(by_file.encodings(1).layers(), ElementsAre(1, 2));
}

// MiMoV2Config of MiMo-V2.5's repository: base 10000, every layer full, and sliding layers as full
// ones where the file does not say otherwise.
TEST(FamilyRowsTest, MimoV2OfTheHubWasRefusedForItsTwoBases) {
  const auto by_file = Resolved(R"({"model_type": "mimo_v2", "num_hidden_layers": 4,
      "architectures": ["MiMoV2ForCausalLM"],
      "rope_theta": 10000000, "swa_rope_theta": 10000, "head_dim": 192, "swa_head_dim": 128,
      "partial_rotary_factor": 0.334, "hybrid_layer_pattern": [0, 1, 1, 0]})");
  ASSERT_EQ(by_file.encodings_size(), 2);
  EXPECT_THAT(by_file.encodings(0).layers(), ElementsAre(0, 3));
  EXPECT_EQ(by_file.encodings(0).spec().rope().rope_theta(), 1e7);
  EXPECT_EQ(by_file.encodings(0).spec().rope().rotary_dim(), 64);
  EXPECT_THAT(by_file.encodings(1).layers(), ElementsAre(1, 2));
  EXPECT_EQ(by_file.encodings(1).spec().rope().rope_theta(), 1e4);
  EXPECT_EQ(by_file.encodings(1).spec().rope().head_dim(), 128);
  const auto blocks = Resolved(R"({"model_type": "mimo_v2", "num_hidden_layers": 4,
      "rope_theta": 640000, "head_dim": 64, "hybrid_block_size": 2})");
  ASSERT_EQ(blocks.encodings_size(), 2);
  EXPECT_THAT(blocks.encodings(0).layers(), ElementsAre(1, 3));
  EXPECT_EQ(blocks.encodings(1).spec().rope().rope_theta(), 640000);
  EXPECT_EQ(blocks.encodings(1).spec().rope().head_dim(), 64);
  const auto by_class = TheEncoding(R"({"model_type": "mimo_v2", "num_hidden_layers": 2,
      "hidden_size": 4096, "num_attention_heads": 32})");
  EXPECT_EQ(by_class.spec().rope().rope_theta(), 1e4);
  EXPECT_EQ(by_class.spec().rope().head_dim(), 128);
}

// AfmoeConfig: global_attn_every_n_layers 4, the last of each run; those do not rotate.
TEST(FamilyRowsTest, AfmoeRotatesInLocalLayersOnly) {
  const auto encoding = TheEncoding(R"({"model_type": "afmoe", "num_hidden_layers": 8})");
  EXPECT_THAT(encoding.nope_layers(), ElementsAre(3, 7));
  const auto other = TheEncoding(R"({"model_type": "afmoe", "num_hidden_layers": 6,
                                     "global_attn_every_n_layers": 3})");
  EXPECT_THAT(other.nope_layers(), ElementsAre(2, 5));
}

// Exaone4Config: sliding_window 4096 unless it is null; then every layer rotates.
TEST(FamilyRowsTest, Exaone4WithoutASlidingWindowRotatesEverywhere) {
  const auto nope_layers = [](const char* window) {
    return TheEncoding(absl::StrCat(R"({"model_type": "exaone4", "hidden_size": 512,
        "num_attention_heads": 4, "num_hidden_layers": 8)",
                                    window, "}"))
        .nope_layers();
  };
  EXPECT_THAT(nope_layers(""), ElementsAre(3, 7));
  EXPECT_THAT(nope_layers(R"(, "sliding_window": 4096)"), ElementsAre(3, 7));
  EXPECT_THAT(nope_layers(R"(, "sliding_window": null)"), ElementsAre());
}

// vLLM's rope_type openpangu: sections, spread over the frequencies by a rule of its own.
TEST(FamilyRowsTest, OpenPanguNeedsSectionsAndSpreadsThem) {
  const std::string config = R"({"model_type": "pangu_vl", "hidden_size": 512,
      "num_attention_heads": 4, "rope_scaling": {"rope_type": "openpangu",
      "mrope_interleaved": true)";
  const auto encoding = TheEncoding(config + R"(, "mrope_section": [16, 24, 24]}})");
  EXPECT_EQ(encoding.mrope().scheme(), "openpangu");
  EXPECT_EQ(encoding.rope_type(), "default");
  EXPECT_EQ(Refusal(config + "}}"),
            "config_json/rope_scaling/mrope_section: is required for rope_type openpangu");
}

TEST(FamilyRowsTest, SectionsOfAnUnknownFamilyAreHeeded) {
  const auto encoding = TheEncoding(R"({"model_type": "some_new_vl", "hidden_size": 512,
      "num_attention_heads": 4, "rope_theta": 1e6, "rope_scaling": {"rope_type": "default",
      "mrope_section": [24, 20, 20], "mrope_interleaved": true}})");
  EXPECT_EQ(encoding.mrope().scheme(), "interleaved");
}

// InternS1's files have no switch, only what its matrices were made with (LMDeploy's rule); they
// were read as plain RoPE.
TEST(FamilyRowsTest, FourierRopeIsRefusedByName) {
  const auto refusal = [](const std::string& keys) {
    return Refusal(R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 4,
                       "rope_scaling": {"rope_type": "default", )" +
                   keys + "}}");
  };
  EXPECT_EQ(refusal(R"("use_fope": true)"),
            "config_json/rope_scaling/use_fope: must be false: Fourier RoPE (FoPE) multiplies cos "
            "and sin by matrices of the checkpoint, got true");
  EXPECT_EQ(refusal(R"("fope_init_factor": 0.5, "fope_sep_head": true, "num_inv_freq": null)"),
            "config_json/rope_scaling/fope_init_factor: must be null: Fourier RoPE (FoPE) "
            "multiplies cos and sin by matrices of the checkpoint, got 0.5");
  EXPECT_EQ(refusal(R"("use_fope": false, "fope_init_factor": 0.5)"), "");
}

// Tele-AI/Telechat: the 7B counts from 4096, the 12B from 8192, TeleChat 2 from base_seqlen; none
// builds a table that is shorter than training_seqlen.
TEST(FamilyRowsTest, TeleChatsBaseGrowsFromALengthOfItsOwn) {
  const auto telechat = [](int hidden_size, const char* more) {
    return TheEncoding(absl::StrCat(R"({"model_type": "telechat", "n_head": 32, "seq_length": 8192,
        "hidden_size": )",
                                    hidden_size, more, "}"));
  };
  const auto small = telechat(4096, R"(, "training_seqlen": 8192)");
  EXPECT_EQ(small.rope_type(), "dynamic");
  EXPECT_EQ(small.variant(), "dynamic_telechat");
  EXPECT_EQ(small.max_position_embeddings(), 8192);
  const v1::RopeSpec rope = Canonicalize(small.spec())->proto().rope();
  EXPECT_EQ(rope.rope_theta(), 10000);
  EXPECT_EQ(rope.dynamic().max_position_embeddings(), 4096);
  EXPECT_EQ(rope.dynamic().sequence_length(), 8192) << "the base has grown by 3^(128/126)";
  EXPECT_FALSE(rope.dynamic().has_attention_factor());
  EXPECT_EQ(telechat(5120, "").spec().rope().dynamic().max_position_embeddings(), 8192);
  EXPECT_EQ(
      telechat(3072, R"(, "base_seqlen": 16384)").spec().rope().dynamic().max_position_embeddings(),
      16384);
  EXPECT_EQ(Refusal(R"({"model_type": "telechat", "n_head": 16, "hidden_size": 2048})"),
            "config_json/base_seqlen: is required for a model whose hidden_size is 2048: its "
            "code's own number is not known here");
}

// hf-rope 5.3: InternLM's own code divides positions.
TEST(FamilyRowsTest, OwnCodeThatDividesPositionsIsFollowed) {
  const auto linear = TheEncoding(R"({"model_type": "internlm2", "hidden_size": 512,
      "num_attention_heads": 4, "rope_scaling": {"type": "linear", "factor": 3.0}})");
  EXPECT_TRUE(linear.spec().rope().linear().divide_positions());
  EXPECT_EQ(linear.variant(), "divided_positions");
}

// hf-rope 4.5: what transformers only warns of is computed, and said.
TEST(FamilyRowsTest, WhatTransformersOnlyWarnsOfIsANote) {
  const auto llama = [](const std::string& scaling) {
    return Resolve(R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 4,
        "max_position_embeddings": 65536, "rope_theta": 1e4, "rope_scaling": {)" +
                   scaling + "}}");
  };
  const auto equal = llama(R"("rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
      "high_freq_factor": 1.0, "original_max_position_embeddings": 8192)");
  ASSERT_TRUE(equal.ok()) << equal.status();
  ASSERT_NE(testing::FindingOf(*equal, "bands-without-ramp"), nullptr);
  const auto integer = llama(R"("rope_type": "yarn", "factor": 8.0, "attention_factor": 1,
      "original_max_position_embeddings": 8192)");
  ASSERT_TRUE(integer.ok()) << integer.status();
  ASSERT_NE(testing::FindingOf(*integer, "attention-factor-integer"), nullptr);
  EXPECT_EQ(testing::FindingOf(*integer, "attention-factor-integer")->expected(), "1.0");
  const auto real = llama(R"("rope_type": "yarn", "factor": 8.0, "attention_factor": 1.0,
      "original_max_position_embeddings": 8192)");
  EXPECT_EQ(testing::FindingOf(*real, "attention-factor-integer"), nullptr);
  const auto length = llama(R"("rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
      "high_freq_factor": 4.0, "original_max_position_embeddings": 8192.0)");
  ASSERT_TRUE(length.ok()) << length.status();
  ASSERT_NE(testing::FindingOf(*length, "original-length-float"), nullptr);
  EXPECT_EQ(testing::FindingOf(*length, "original-length-float")->expected(), "8192");
  EXPECT_EQ(testing::FindingOf(*equal, "original-length-float"), nullptr);
}

TEST(FamilyRowsTest, MixedNtkIsRead) {
  const auto encoding = TheEncoding(R"({"model_type": "llama", "hidden_size": 512,
      "num_attention_heads": 4, "rope_scaling": {"rope_type": "ntk", "factor": 4,
      "mixed_b": 0.625}})");
  EXPECT_EQ(encoding.spec().rope().ntk().mixed_b(), 0.625);
}

// Speech -------------------------------------------------------------------------------------

TEST(FamilyRowsTest, ConformersChooseByPositionEmbeddingsType) {
  const auto conformer = [](const char* type, const char* more) {
    return Resolved(absl::StrCat(R"({"model_type": ")", type, R"(", "hidden_size": 768,
        "num_attention_heads": 12)",
                                 more, "}"))
        .encodings(0);
  };
  const auto relative = conformer("wav2vec2-conformer", "");
  EXPECT_EQ(relative.kind(), "sinusoidal");
  EXPECT_EQ(relative.spec().sinusoidal().preset(), v1::SINUSOIDAL_PRESET_CONFORMER);
  EXPECT_EQ(relative.max_position_embeddings(), 5000);
  const auto rotary = conformer("wav2vec2-conformer", R"(, "position_embeddings_type": "rotary",
                                                         "rotary_embedding_base": 20000)");
  EXPECT_EQ(rotary.kind(), "rope");
  EXPECT_EQ(rotary.spec().rope().rope_theta(), 20000);
  EXPECT_EQ(rotary.spec().rope().head_dim(), 64);
  const auto clipped = conformer("wav2vec2-bert", "");
  EXPECT_EQ(clipped.kind(), "relative_key");
  EXPECT_EQ(clipped.spec().relative_index().clipped().left(), 64);
  EXPECT_EQ(clipped.spec().relative_index().clipped().right(), 8);
  EXPECT_EQ(clipped.relative().entries(), 73);
  EXPECT_EQ(conformer("wav2vec2-bert", R"(, "position_embeddings_type": null)").kind(), "none");
  EXPECT_THAT(Refusal(R"({"model_type": "wav2vec2-bert", "position_embeddings_type": "shaw"})"),
              HasSubstr("must be relative, relative_key, rotary or null, got string \"shaw\""));
}

// Documents and images ------------------------------------------------------------------------

// LayoutLMv2: 32 buckets to 128 and 64 to 256; v3 divides the bias as it divides the scores.
TEST(FamilyRowsTest, LayoutLmHasBucketsOfPositionsAndOfBoxes) {
  const auto v2 = Resolved(R"({"model_type": "layoutlmv2", "hidden_size": 768,
      "num_attention_heads": 12, "max_position_embeddings": 512})");
  ASSERT_EQ(v2.encodings_size(), 3);
  EXPECT_EQ(v2.encodings(0).learned().rows(), 512);
  EXPECT_EQ(v2.encodings(1).spec().t5().num_buckets(), 32);
  EXPECT_EQ(v2.encodings(1).spec().t5().max_distance(), 128);
  EXPECT_EQ(v2.encodings(2).layer_type(), "spatial");
  EXPECT_EQ(v2.encodings(2).spec().t5().num_buckets(), 64);
  EXPECT_EQ(v2.encodings(2).spec().t5().max_distance(), 256);
  EXPECT_EQ(v2.encodings(2).bias_scale(), 1);
  const auto v3 = Resolved(R"({"model_type": "layoutlmv3", "hidden_size": 768,
      "num_attention_heads": 12, "max_position_embeddings": 514, "pad_token_id": 1,
      "has_spatial_attention_bias": false})");
  ASSERT_EQ(v3.encodings_size(), 2);
  EXPECT_EQ(v3.encodings(0).learned().usable(), 512);
  EXPECT_EQ(v3.encodings(1).bias_scale(), 0.125);
}

// TrOCRConfig inside a vision-encoder-decoder, as its files are.
TEST(FamilyRowsTest, TrocrIsADecoderBesideAVisionEncoder) {
  const std::string encoder = R"("encoder": {"model_type": "deit", "hidden_size": 768,
      "image_size": 384, "patch_size": 16})";
  const auto learned = Resolved(R"({"model_type": "vision-encoder-decoder", )" + encoder +
                                R"(, "decoder": {"model_type": "trocr", "d_model": 1024,
                                    "max_position_embeddings": 512}})");
  ASSERT_EQ(learned.encodings_size(), 2);
  EXPECT_EQ(learned.encodings(0).tower(), "decoder");
  EXPECT_EQ(learned.encodings(0).learned().rows(), 514);
  EXPECT_EQ(learned.encodings(0).learned().offset(), 2);
  EXPECT_EQ(learned.encodings(1).tower(), "vision");
  EXPECT_EQ(learned.encodings(1).learned().rows(), 578);
  const auto sinusoid = Resolved(R"({"model_type": "trocr", "d_model": 256, "pad_token_id": 1,
                                     "use_learned_position_embeddings": false})");
  EXPECT_EQ(sinusoid.encodings(0).kind(), "sinusoidal");
  EXPECT_EQ(sinusoid.encodings(0).spec().sinusoidal().position_offset(), 2);
}

TEST(FamilyRowsTest, KosmosHasFairseqsSinusoidAndALearnedGrid) {
  const auto kosmos = Resolved(R"({"model_type": "kosmos-2",
      "text_config": {"model_type": "kosmos_2_text_model"},
      "vision_config": {"model_type": "kosmos_2_vision_model"}})");
  ASSERT_EQ(kosmos.encodings_size(), 2);
  EXPECT_EQ(kosmos.encodings(0).spec().sinusoidal().d_model(), 2048);
  EXPECT_EQ(kosmos.encodings(0).spec().sinusoidal().padding_row(), 1);
  EXPECT_EQ(kosmos.encodings(1).learned().rows(), 257);
}

TEST(FamilyRowsTest, Pix2StructHasTheBucketsOfADecoderOnly) {
  const auto pix2struct = Resolved(R"({"model_type": "pix2struct",
      "text_config": {"model_type": "pix2struct_text_model", "num_heads": 12}})");
  ASSERT_EQ(pix2struct.encodings_size(), 1);
  EXPECT_EQ(pix2struct.encodings(0).tower(), "decoder");
  EXPECT_FALSE(pix2struct.encodings(0).spec().t5().bidirectional());
}

// MLCDVisionConfig: no merging, and a class token whose angle is a weight.
TEST(FamilyRowsTest, MlcdCountsPatchesRowByRow) {
  const auto encoding = TheEncoding(R"({"model_type": "mlcd_vision_model", "hidden_size": 1664,
                                        "num_attention_heads": 16})");
  EXPECT_EQ(encoding.spec().axial_rope().head_dim(), 104);
  EXPECT_EQ(encoding.spec().axial_rope().merge_size(), 1);
  EXPECT_EQ(encoding.variant(), "learned_class_angle");
}

// Sam2VideoConfig: 256 wide, one head, theta 10000 under its old or its new name.
TEST(FamilyRowsTest, Sam2VideoTurnsInItsMemoryAttention) {
  const auto encoding = TheEncoding(R"({"model_type": "sam2_video",
      "memory_attention_hidden_size": 256, "memory_attention_rope_theta": 5000})");
  EXPECT_EQ(encoding.tower(), "memory");
  EXPECT_EQ(encoding.spec().axial_rope().preset(), v1::AXIAL_ROPE_PRESET_SAM2);
  EXPECT_EQ(encoding.spec().axial_rope().head_dim(), 256);
  EXPECT_EQ(encoding.spec().axial_rope().rope_theta(), 5000);
  EXPECT_EQ(TheEncoding(R"({"model_type": "sam2_video", "memory_attention_hidden_size": 256,
                            "memory_attention_downsample_rate": 2})")
                .spec()
                .axial_rope()
                .head_dim(),
            128);
}

// CogVideoXTransformer3DModel: the 2B sums a sinusoid, the 5B rotates.
TEST(FamilyRowsTest, CogVideoXRotatesOrAddsASinusoid) {
  const std::string model = R"({"_class_name": "CogVideoXTransformer3DModel",
      "num_attention_heads": 30, "attention_head_dim": 64)";
  const auto rotary = TheEncoding(model + R"(, "use_rotary_positional_embeddings": true})");
  EXPECT_EQ(rotary.spec().axial_rope().preset(), v1::AXIAL_ROPE_PRESET_COGVIDEOX);
  EXPECT_THAT(rotary.axial().axis_dim(), ElementsAre(16, 24, 24));
  const auto sinusoid = TheEncoding(model + "}");
  EXPECT_EQ(sinusoid.spec().sinusoidal_grid().preset(), v1::SINUSOIDAL_GRID_PRESET_COGVIDEOX);
  EXPECT_EQ(sinusoid.spec().sinusoidal_grid().d_model(), 1920);
  EXPECT_EQ(sinusoid.spec().sinusoidal_grid().interpolation_scale(), 1.875);
}

// hf-rope 2.8: default is rewritten to axial; nothing else has a meaning there.
TEST(FamilyRowsTest, AScalingInAVisionTowerIsRefusedByName) {
  const auto tower = [](const char* type) {
    return absl::StrCat(R"({"model_type": "pixtral", "hidden_size": 1024,
        "num_attention_heads": 16, "rope_parameters": {"rope_type": ")",
                        type, R"(", "rope_theta": 10000}})");
  };
  EXPECT_EQ(TheEncoding(tower("axial")).kind(), "rope");
  EXPECT_EQ(TheEncoding(tower("default")).kind(), "rope");
  EXPECT_EQ(Refusal(tower("yarn")),
            "config_json/rope_parameters/rope_type: must be axial or default for a RoPE over a "
            "grid, got string \"yarn\"");
}

// Each kind of layer is an encoding: no file makes thousands of them.
TEST(FamilyRowsTest, LayersAreOfSoManyKindsOnly) {
  std::string thetas = "1";
  for (int i = 2; i <= 65; ++i) absl::StrAppend(&thetas, ", ", i);
  EXPECT_EQ(Refusal(absl::StrCat(R"({"model_type": "granite_swa", "head_dim": 64,
                                     "layer_rope_theta": [)",
                                 thetas, "]}")),
            "config_json/layer_rope_theta: must not tell more than 64 kinds of layers apart");
}

// What is not known is refused by its name.
TEST(FamilyRowsTest, FamiliesThatAreNotComputedAreNamed) {
  for (const char* model_type : {"videomae", "t5gemma", "dia"}) {
    EXPECT_EQ(Refusal(absl::StrCat(R"({"model_type": ")", model_type, "\"}")),
              absl::StrCat("config_json/model_type: is not a model family that is known here: \"",
                           model_type, "\""));
  }
  const auto phi = Resolve(R"({"model_type": "phi4_multimodal", "hidden_size": 3072,
      "num_attention_heads": 24, "audio_config": {"model_type": "phi4_multimodal_audio"}})");
  ASSERT_TRUE(phi.ok()) << phi.status();
  const v1::Finding* finding = testing::FindingOf(*phi, "tower-unknown");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->found(), "phi4_multimodal_audio");
}

TEST(FamilyRowsTest, MoonshineCountsTheHeadsOfItsTwoHalves) {
  const auto encoding = TheEncoding(
      R"({"model_type": "moonshine", "hidden_size": 288, "encoder_num_attention_heads": 8,
          "decoder_num_attention_heads": 8, "partial_rotary_factor": 0.9, "rope_theta": 10000.0,
          "max_position_embeddings": 512})");
  EXPECT_EQ(encoding.spec().rope().rotary_dim(), 32);
  EXPECT_EQ(encoding.spec().rope().pairing(), v1::PAIRING_INTERLEAVED);
}

TEST(FamilyRowsTest, MiniMaxRotatesItsRotaryDim) {
  const auto encoding =
      TheEncoding(ModelWith("minimax", R"("head_dim": 128, "rotary_dim": 64, "rope_theta": 1e7)"));
  EXPECT_EQ(encoding.spec().rope().rotary_dim(), 64);
}

}  // namespace
}  // namespace posenc
