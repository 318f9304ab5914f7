// Families whose files have several parts, each with encodings of its own. Sources are the
// classes' configuration and modeling files of transformers 5 and diffusers (read 2026-11).
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using ::posenc::testing::FindingOf;
using ::posenc::testing::Refusal;
using ::posenc::testing::Resolved;
using ::posenc::testing::TheEncoding;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "encoder/all t5" of each.
std::vector<std::string> Names(const v1::ResolveModelConfigResponse& response) {
  std::vector<std::string> names;
  for (const v1::ResolvedEncoding& encoding : response.encodings()) {
    names.push_back(
        absl::StrCat(encoding.tower(), "/", encoding.layer_type(), " ", encoding.kind()));
  }
  return names;
}

// Documents -----------------------------------------------------------------------------------

// UdopStack: the encoder sums the biases of its list, the decoder has T5's own.
TEST(CompositesTest, UdopHasBucketsOfTextAndOfBothAxes) {
  const auto udop = Resolved(R"({"model_type": "udop", "d_model": 1024, "num_heads": 16,
      "relative_attention_num_buckets": 16, "relative_attention_max_distance": 64})");
  EXPECT_THAT(Names(udop),
              ElementsAre("encoder/all t5", "encoder/horizontal t5", "encoder/vertical t5",
                          "encoder/boxes learned", "decoder/all t5"));
  const v1::T5BiasSpec& text = udop.encodings(0).spec().t5();
  EXPECT_EQ(text.num_buckets(), 32) << "the list's default, not the decoder's keys";
  EXPECT_EQ(text.max_distance(), 128);
  EXPECT_FALSE(text.has_coordinate_scale());
  for (const int axis : {1, 2}) {
    const v1::T5BiasSpec& boxes = udop.encodings(axis).spec().t5();
    EXPECT_EQ(boxes.max_distance(), 100);
    EXPECT_EQ(boxes.coordinate_scale(), 100);
    EXPECT_TRUE(boxes.bidirectional());
    EXPECT_EQ(udop.encodings(axis).variant(), "box_centers");
  }
  EXPECT_EQ(udop.encodings(3).learned().rows(), 1024);
  EXPECT_EQ(udop.encodings(3).learned().dim(), 1024);
  const v1::T5BiasSpec& decoder = udop.encodings(4).spec().t5();
  EXPECT_EQ(decoder.num_buckets(), 16);
  EXPECT_EQ(decoder.max_distance(), 64);
  EXPECT_FALSE(decoder.bidirectional());
}

TEST(CompositesTest, UdopReadsItsListOfBiases) {
  const auto with = [](const std::string& list) {
    return absl::StrCat(R"({"model_type": "udop", "num_heads": 16, "relative_bias_args": [)", list,
                        "]}");
  };
  const auto one = Resolved(with(R"({"type": "vertical", "relative_attention_num_buckets": 64,
      "scaling_factor": 50, "max_distance": 200})"));
  EXPECT_THAT(Names(one),
              ElementsAre("encoder/vertical t5", "encoder/boxes learned", "decoder/all t5"));
  EXPECT_EQ(one.encodings(0).spec().t5().num_buckets(), 64);
  EXPECT_EQ(one.encodings(0).spec().t5().coordinate_scale(), 50);
  EXPECT_EQ(one.encodings(0).spec().t5().max_distance(), 200);
  EXPECT_EQ(Refusal(with(R"({"type": "diagonal"})")),
            "config_json/relative_bias_args/0/type: must be 1d, horizontal or vertical, got string "
            "\"diagonal\"");
  EXPECT_EQ(Refusal(with(R"({"type": "1d", "prefix_bucket": true})")),
            "config_json/relative_bias_args/0/prefix_bucket: must be false: buckets of a prefix "
            "are not known here");
  EXPECT_EQ(Refusal(with(R"({"type": "1d", "scaling_factor": 2})")),
            "config_json/relative_bias_args/0/scaling_factor: must be 1 for positions in the text, "
            "got 2");
  EXPECT_EQ(Refusal(with(R"({"type": "horizontal", "scaling_factor": 1})")),
            "config_json/relative_bias_args/0/scaling_factor: must be above 1 for coordinates from "
            "0 to 1, got 1");
}

// Speech ----------------------------------------------------------------------------------------

// ClvpRotaryPositionalEmbedding: max(projection_dim // (2 heads), 32) channels of a head.
TEST(CompositesTest, ClvpRotatesHalfOfAHeadInTwoEncodersAndCountsRowsInTheDecoder) {
  const auto clvp = Resolved(R"({"model_type": "clvp",
      "text_config": {"model_type": "clvp_encoder"},
      "speech_config": {"model_type": "clvp_encoder", "projection_dim": 1024, "hidden_size": 1024,
                        "num_attention_heads": 8},
      "decoder_config": {"model_type": "clvp_decoder"}})");
  EXPECT_THAT(Names(clvp), ElementsAre("text/all rope", "speech/all rope", "decoder/all learned"));
  const v1::RopeSpec& text = clvp.encodings(0).spec().rope();
  EXPECT_EQ(text.head_dim(), 64);
  EXPECT_EQ(text.rotary_dim(), 32);
  EXPECT_EQ(text.rope_theta(), 10000);
  EXPECT_EQ(text.pairing(), v1::PAIRING_HALF);
  EXPECT_EQ(clvp.encodings(0).variant(), "rotates_values");
  EXPECT_EQ(clvp.encodings(1).spec().rope().rotary_dim(), 64);
  EXPECT_EQ(clvp.encodings(2).learned().rows(), 608);
  EXPECT_EQ(clvp.encodings(2).learned().dim(), 1024);
  EXPECT_EQ(TheEncoding(R"({"model_type": "clvp_encoder", "hidden_size": 768,
      "num_attention_heads": 12, "projection_dim": 1200})")
                .spec()
                .rope()
                .rotary_dim(),
            50);
  EXPECT_EQ(Resolved(R"({"model_type": "clvp_encoder", "hidden_size": 768,
      "num_attention_heads": 12, "use_rotary_embedding": false})")
                .encodings(0)
                .kind(),
            "none");
  EXPECT_EQ(Refusal(R"({"model_type": "clvp_encoder", "hidden_size": 256,
      "num_attention_heads": 12, "projection_dim": 768})"),
            "config_json/projection_dim: gives 32 rotary channels, must be even, at least 2 and at "
            "most the head's 21");
}

// SpeechT5RelativePositionalEncoding: query - key from -160 to 159. The four prenets share sizes;
// a model has one for its encoder and one for its decoder.
TEST(CompositesTest, SpeechT5HasClippedDistancesAndASinusoidInEachPrenet) {
  const auto speecht5 = Resolved(R"({"model_type": "speecht5", "hidden_size": 768,
      "encoder_attention_heads": 12, "max_speech_positions": 1876, "max_text_positions": 600})");
  EXPECT_THAT(
      Names(speecht5),
      ElementsAre("encoder/all relative_key", "speech_encoder_prenet/all conv_positional",
                  "speech_encoder_prenet/all sinusoidal", "text_encoder_prenet/all sinusoidal",
                  "speech_decoder_prenet/all sinusoidal", "text_decoder_prenet/all sinusoidal"));
  const v1::ClippedScheme& clipped = speecht5.encodings(0).spec().relative_index().clipped();
  EXPECT_EQ(clipped.left(), 160);
  EXPECT_EQ(clipped.right(), 159);
  EXPECT_EQ(clipped.direction(), v1::DISTANCE_DIRECTION_QUERY_MINUS_KEY);
  EXPECT_EQ(speecht5.encodings(0).relative().entries(), 320);
  EXPECT_FALSE(speecht5.encodings(0).relative().per_layer()) << "one table for all layers";
  EXPECT_EQ(speecht5.encodings(1).relative().kernel(), 128);
  const v1::SinusoidalSpec& fairseq = speecht5.encodings(2).spec().sinusoidal();
  EXPECT_EQ(fairseq.preset(), v1::SINUSOIDAL_PRESET_FAIRSEQ);
  EXPECT_EQ(fairseq.position_offset(), 2);
  EXPECT_EQ(fairseq.padding_row(), 1);
  EXPECT_EQ(speecht5.encodings(2).max_position_embeddings(), 1876);
  EXPECT_EQ(speecht5.encodings(3).variant(), "learned_scale");
  EXPECT_EQ(speecht5.encodings(3).max_position_embeddings(), 600);
  EXPECT_EQ(speecht5.encodings(3).spec().sinusoidal().preset(), v1::SINUSOIDAL_PRESET_TUTORIAL);
}

// hf-rope 5.2: the conformer of SeamlessM4T was left out, and version 2 whole. Its padding is
// token 0, where fairseq's is 1.
TEST(CompositesTest, SeamlessHasAConformerForSpeech) {
  const auto first = Resolved(R"({"model_type": "seamless_m4t", "hidden_size": 1024,
      "encoder_attention_heads": 16, "max_source_positions": 4096})");
  EXPECT_THAT(Names(first), ElementsAre("encoder/all sinusoidal", "decoder/all sinusoidal",
                                        "speech/all sinusoidal"));
  EXPECT_EQ(first.encodings(0).spec().sinusoidal().padding_row(), 0);
  EXPECT_EQ(first.encodings(0).spec().sinusoidal().position_offset(), 1);
  EXPECT_EQ(first.encodings(2).spec().sinusoidal().preset(), v1::SINUSOIDAL_PRESET_CONFORMER);
  const auto second = Resolved(R"({"model_type": "seamless_m4t_v2", "hidden_size": 1024,
      "encoder_attention_heads": 16, "position_embeddings_type": "relative_key"})");
  EXPECT_EQ(second.encodings(0).max_position_embeddings(), 4096);
  EXPECT_EQ(second.encodings(2).spec().relative_index().clipped().left(), 64);
  const auto rotary = Resolved(R"({"model_type": "seamless_m4t", "hidden_size": 1024,
      "encoder_attention_heads": 16, "position_embeddings_type": "rotary"})");
  EXPECT_EQ(rotary.encodings(2).spec().rope().head_dim(), 64);
}

// Gemma4AudioRelPositionalEncoding counts 12, 11, ... 0 whatever the config says; Gemma 3n's
// counts from the context on the left to that on the right.
TEST(CompositesTest, GemmasAudioHasTheDistancesInAChunk) {
  const auto gemma4 = Resolved(R"({"model_type": "gemma4", "text_config": {"model_type":
      "gemma4_text"}, "audio_config": {"model_type": "gemma4_audio"}})");
  const v1::ResolvedEncoding& audio = gemma4.encodings(gemma4.encodings_size() - 1);
  EXPECT_EQ(audio.tower(), "audio");
  EXPECT_EQ(audio.kind(), "sinusoidal");
  EXPECT_EQ(audio.variant(), "relative_distances");
  EXPECT_EQ(audio.max_position_embeddings(), 13);
  EXPECT_EQ(audio.spec().sinusoidal().d_model(), 1024);
  EXPECT_EQ(audio.spec().sinusoidal().row_order(), v1::ROW_ORDER_DESCENDING);
  EXPECT_THAT(Refusal(R"({"model_type": "gemma4_audio", "attention_context_left": 20})"),
              HasSubstr("attention_context_left: must be 13: this family's code has the distances "
                        "from 12 down to 0"));
  const auto gemma3n = TheEncoding(R"({"model_type": "gemma3n_audio", "hidden_size": 1536,
                                       "conf_attention_context_left": 20})");
  EXPECT_EQ(gemma3n.max_position_embeddings(), 20);
}

// Encoder-decoders
// ---------------------------------------------------------------------------------

// A pair of Gemma 3 parts: the encoder's text stands one deeper.
TEST(CompositesTest, T5Gemma2HasAnEncoderAndADecoder) {
  const auto t5gemma = Resolved(R"({"model_type": "t5gemma2",
      "encoder": {"model_type": "t5gemma2_encoder",
                  "text_config": {"model_type": "t5gemma2_text", "num_hidden_layers": 6},
                  "vision_config": {"model_type": "siglip_vision_model"}},
      "decoder": {"model_type": "t5gemma2_decoder", "num_hidden_layers": 12}})");
  EXPECT_THAT(Names(t5gemma),
              ElementsAre("encoder/full_attention rope", "encoder/sliding_attention rope",
                          "decoder/full_attention rope", "decoder/sliding_attention rope",
                          "vision/all learned_2d"));
  EXPECT_THAT(t5gemma.encodings(0).layers(), ElementsAre(5));
  EXPECT_THAT(t5gemma.encodings(2).layers(), ElementsAre(5, 11));
  EXPECT_EQ(Refusal(R"({"model_type": "t5gemma2", "hidden_size": 640})"),
            "config_json/encoder: is required for model_type t5gemma2");
}

// Classes whose sizes were taken for those of a kin
// -------------------------------------------------

// Gemma3nTextConfig: 35 layers, every fifth full, 32768 positions; Gemma 3 has 26, sixth, 131072.
TEST(CompositesTest, Gemma3nHadTheLayersOfGemma3) {
  const auto gemma3n =
      Resolved(R"({"model_type": "gemma3n", "text_config": {"model_type": "gemma3n_text"}})");
  EXPECT_THAT(gemma3n.encodings(0).layers(), ElementsAre(4, 9, 14, 19, 24, 29, 34));
  EXPECT_EQ(gemma3n.encodings(0).max_position_embeddings(), 32768);
}

// Phi4MultimodalConfig: 131072 positions; Phi3Config has 4096.
TEST(CompositesTest, Phi4MultimodalHadTheLengthOfPhi3) {
  EXPECT_EQ(TheEncoding(R"({"model_type": "phi4_multimodal", "hidden_size": 3072,
                            "num_attention_heads": 24})")
                .max_position_embeddings(),
            131072);
}

// InternVisionConfig 224 and 14, InternVLVisionConfig 448 and 14; ViTConfig has 224 and 16.
TEST(CompositesTest, InternVitHadThePatchesOfVit) {
  const auto rows = [](const char* model_type) {
    return Resolved(absl::StrCat(R"({"model_type": ")", model_type, R"(", "hidden_size": 64})"))
        .encodings(0)
        .learned()
        .rows();
  };
  EXPECT_EQ(rows("intern_vit_6b"), 1 + 16 * 16);
  EXPECT_EQ(rows("internvl_vision"), 1 + 32 * 32);
  EXPECT_EQ(rows("vit"), 1 + 14 * 14);
}

// Gemma4VisionConfig: 64 channels a head, whatever hidden_size / num_attention_heads is.
// Sam3VideoModel builds its tracker with remove_vision_encoder; types that are not said are sam3
// and sam3_tracker_video.
TEST(CompositesTest, Sam3VideosPartsWereUnknown) {
  const auto response = Resolved(R"({"model_type": "sam3_video",
      "detector_config": {
        "text_config": {"model_type": "clip_text_model", "hidden_size": 1024,
                        "num_attention_heads": 16, "max_position_embeddings": 32},
        "vision_config": {"model_type": "sam3_vision_model", "fpn_hidden_size": 256,
          "backbone_config": {"model_type": "sam3_vit_model", "hidden_size": 1024,
            "num_attention_heads": 16, "num_hidden_layers": 4, "image_size": 1008,
            "patch_size": 14, "pretrain_image_size": 336, "window_size": 24,
            "global_attn_indexes": [3], "rope_theta": 10000.0}}},
      "tracker_config": {"memory_attention_hidden_size": 256,
                         "vision_config": {"model_type": "sam3_vision_model"}}})");
  EXPECT_THAT(Names(response), ElementsAre("text/all learned", "vision/window_attention rope",
                                           "vision/global_attention rope", "vision/all learned_2d",
                                           "neck/all sine_2d", "memory/all rope"));
  EXPECT_EQ(Refusal(R"({"model_type": "sam3_video", "tracker_config": {"image_size": 1008}})"),
            "config_json/detector_config: is required for model_type sam3_video");
}

// configuration_blt.py: four classes, no sizes in the file's own object.
TEST(CompositesTest, BltsSizesWereLookedForOutsideItsParts) {
  const auto response = Resolved(R"({"model_type": "blt", "max_position_embeddings": 4096,
      "rope_theta": 500000.0,
      "encoder_config": {"hidden_size": 1024, "num_attention_heads": 16, "num_hidden_layers": 1,
                         "max_position_embeddings": 24576, "rope_theta": 500000.0},
      "global_config": {"hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
                        "max_position_embeddings": 4096, "rope_theta": 500000.0},
      "decoder_config": {"rope_theta": 500000.0},
      "patcher_config": {"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 14,
                         "max_position_embeddings": 8192, "rope_theta": 10000.0}})");
  ASSERT_EQ(response.encodings_size(), 4);
  std::vector<std::string> parts;
  for (const v1::ResolvedEncoding& encoding : response.encodings()) {
    const v1::RopeSpec& rope = encoding.spec().rope();
    EXPECT_EQ(rope.pairing(), v1::PAIRING_INTERLEAVED);
    parts.push_back(absl::StrCat(encoding.tower(), " ", rope.head_dim(), " ", rope.rope_theta(),
                                 " ", encoding.max_position_embeddings()));
  }
  EXPECT_THAT(parts, ElementsAre("encoder 64 500000 24576", "global 128 500000 4096",
                                 "decoder 64 500000 24576", "patcher 64 10000 8192"));
  EXPECT_EQ(FindingOf(response, "rope-key-ignored"), nullptr);
  EXPECT_EQ(Refusal(R"({"model_type": "blt", "hidden_size": 1024, "num_attention_heads": 16})"),
            "config_json/encoder_config: is required for model_type blt");
}

TEST(CompositesTest, ABaseBesideBltsPartsWasTheirs) {
  const auto response = Resolved(R"({"model_type": "blt", "rope_theta": 1e6, "encoder_config":
      {"hidden_size": 64, "num_attention_heads": 1}, "global_config": {"hidden_size": 64,
      "num_attention_heads": 1}, "decoder_config": {"hidden_size": 64, "num_attention_heads": 1}})");
  EXPECT_EQ(response.encodings_size(), 3);
  EXPECT_EQ(response.encodings(0).spec().rope().rope_theta(), 500000);
  EXPECT_EQ(FindingOf(response, "rope-key-ignored")->pointer(), "/rope_theta");
}

TEST(CompositesTest, Gemma4VisionHadNoHead) {
  EXPECT_EQ(TheEncoding(R"({"model_type": "gemma4_vision", "hidden_size": 1152,
                            "num_attention_heads": 16})")
                .axial()
                .head_dim(),
            64);
}

// CogVideoX-5B-I2V adds stored rows beside its rotation: 226 of text, 13 frames of 30 x 45.
TEST(CompositesTest, CogVideoXOfImagesHasStoredRowsToo) {
  const std::string model = R"({"_class_name": "CogVideoXTransformer3DModel",
      "num_attention_heads": 48, "attention_head_dim": 64,
      "use_learned_positional_embeddings": true)";
  const auto video = Resolved(model + R"(, "use_rotary_positional_embeddings": true})");
  EXPECT_THAT(Names(video), ElementsAre("transformer/all rope", "transformer/tokens learned"));
  EXPECT_EQ(video.encodings(1).learned().rows(), 226 + 13 * 30 * 45);
  EXPECT_EQ(video.encodings(1).learned().dim(), 3072);
  EXPECT_EQ(Refusal(model + "}"),
            "config_json/use_learned_positional_embeddings: must be false without "
            "use_rotary_positional_embeddings, got true");
}

}  // namespace
}  // namespace posenc
