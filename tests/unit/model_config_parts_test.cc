// Parts of composites that read text or hear, and what is left out of them. Sources are the
// configuration and modeling files of transformers 5 (read 2026-11).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using ::posenc::testing::CompositeWith;
using ::posenc::testing::FindingOf;
using ::posenc::testing::ModelWith;
using ::posenc::testing::Refusal;
using ::posenc::testing::Resolved;
using ::posenc::testing::TheEncoding;
using ::posenc::testing::TowerOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Text -------------------------------------------------------------------------------------------

TEST(TowersTest, CohereCompassPairedAdjacentChannels) {
  const auto encoding = TheEncoding(
      ModelWith("cohere_compass_text", R"("num_hidden_layers": 1, "layer_types": ["full_attention"],
         "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 50000}})"));
  EXPECT_EQ(encoding.spec().rope().pairing(), v1::PAIRING_HALF);
  EXPECT_EQ(encoding.mrope().scheme(), "interleaved");
}

TEST(TowersTest, CohereCompassWithoutSectionsWasRefusedForAMapThatItHasNot) {
  EXPECT_EQ(Refusal(ModelWith("cohere_compass_text", R"("num_hidden_layers": 1, "head_dim": 64)")),
            "config_json/rope_parameters: is required, with an mrope_section in it: the family's "
            "own, 24, 20, 20, does not sum to the 32 frequencies of a head");
}

TEST(TowersTest, ModernBertsDecoderWasAnEncoder) {
  EXPECT_EQ(Resolved(ModelWith("modernbert-decoder", "")).encodings(0).tower(), "text");
}

TEST(TowersTest, DeepseeksIndexerWasNotSpokenOf) {
  EXPECT_EQ(TheEncoding(ModelWith("deepseek_v32", "")).variant(), "indexer_half");
  EXPECT_THAT(TheEncoding(ModelWith("glm_moe_dsa", "")).variant(), IsEmpty());
}

TEST(TowersTest, LongT5sReachWasNotRead) {
  const std::string model = R"({"model_type": "longt5", "num_heads": 8, "d_model": 512,
                                "encoder_attention_type": ")";
  const auto local = Resolved(absl::StrCat(model, R"(local"})"));
  EXPECT_EQ(local.encodings(0).variant(), "local");
  EXPECT_EQ(local.encodings_size(), 2);
  const auto global =
      Resolved(absl::StrCat(model, R"(transient-global", "global_block_size": 32})"));
  ASSERT_EQ(global.encodings_size(), 3);
  EXPECT_EQ(global.encodings(2).tower(), "encoder");
  EXPECT_EQ(global.encodings(2).layer_type(), "global");
  EXPECT_EQ(global.encodings(2).spec().t5().global_block_size(), 32);
  EXPECT_THAT(Refusal(absl::StrCat(model, R"(full"})")), HasSubstr("local or transient-global"));
}

// Sound ------------------------------------------------------------------------------------------

TEST(TowersTest, WhispersEncodersInOtherModelsWereUnknown) {
  for (const auto& [root, type] :
       {std::pair("qwen2_5_omni", "qwen2_5_omni_audio_encoder"),
        std::pair("qwen3_omni_moe", "qwen3_omni_moe_audio_encoder"),
        std::pair("voxtral", "voxtral_encoder"), std::pair("qwen2_audio", "qwen2_audio_encoder"),
        std::pair("musicflamingo", "musicflamingo_encoder")}) {
    const auto response = Resolved(CompositeWith(
        root, "audio_config",
        absl::StrCat(R"({"model_type": ")", type, R"(", "max_source_positions": 750})")));
    ASSERT_EQ(TowerOf(response, "audio").size(), 1u) << type;
    const v1::ResolvedEncoding audio = TowerOf(response, "audio")[0];
    EXPECT_EQ(audio.spec().sinusoidal().d_model(), 1280) << type;
    EXPECT_EQ(audio.spec().sinusoidal().frequency_rule(), v1::FREQUENCY_RULE_T2T) << type;
    EXPECT_EQ(audio.max_position_embeddings(), 750) << type;
  }
}

// Speech2TextConfig: 6000 positions of sound, 1024 of text.
// MusicgenConfig: the model proper is its decoder.
TEST(TowersTest, MusicGensDecoderWasLeftOutInSilence) {
  const auto response = Resolved(R"({"model_type": "musicgen",
      "text_encoder": {"model_type": "t5", "d_model": 768, "num_heads": 12},
      "decoder": {"model_type": "musicgen_decoder", "hidden_size": 1024,
                  "max_position_embeddings": 2048}})");
  ASSERT_EQ(TowerOf(response, "text").size(), 1u);
  EXPECT_EQ(TowerOf(response, "text")[0].kind(), "sinusoidal");
  EXPECT_EQ(TowerOf(response, "encoder").size(), 1u);
}

// T5EncoderModel: the decoder of that T5 is not in the model.
TEST(TowersTest, MusicGensTextEncoderWasSaidToHaveADecoder) {
  const auto response = Resolved(R"({"model_type": "musicgen",
      "text_encoder": {"model_type": "t5", "d_model": 768, "num_heads": 12},
      "decoder": {"model_type": "musicgen_decoder", "hidden_size": 1024}})");
  ASSERT_EQ(response.encodings_size(), 2);
  EXPECT_EQ(response.encodings(0).tower(), "encoder");
  EXPECT_EQ(response.encodings(0).kind(), "t5");
  EXPECT_EQ(response.encodings(1).tower(), "text");
}

// get_text_config finds text_encoder, decoder, generator and text_config.
TEST(TowersTest, TheDecoderOfAnUnknownFamilyWasNotFound) {
  const std::string decoder = R"("decoder": {"hidden_size": 512, "num_attention_heads": 8,
                                             "rope_theta": 500000.0})";
  const auto response = Resolved(R"({"model_type": "nobody_knows", )" + decoder +
                                 R"(, "encoder": {"model_type": "nobody_hears"}})");
  ASSERT_EQ(response.encodings_size(), 1);
  EXPECT_EQ(response.encodings(0).tower(), "text");
  EXPECT_EQ(response.encodings(0).spec().rope().rope_theta(), 5e5);
  EXPECT_NE(FindingOf(response, "model-type-unknown"), nullptr);
  ASSERT_NE(FindingOf(response, "tower-unknown"), nullptr);
  EXPECT_EQ(FindingOf(response, "tower-unknown")->pointer(), "/encoder");
  const auto pair = Resolved(R"({"model_type": "encoder-decoder", "encoder": {"model_type": "bert"},
      "decoder": {"model_type": "bert", "hidden_size": 512, "max_position_embeddings": 512}})");
  ASSERT_EQ(pair.encodings_size(), 1);
  ASSERT_NE(FindingOf(pair, "tower-unknown"), nullptr);
  EXPECT_EQ(FindingOf(pair, "tower-unknown")->message(),
            "The decoder beside it is read as the text part; this encoder is left out.");
  EXPECT_EQ(Refusal(R"({"model_type": "nobody_knows", "text_config": {"rope_theta": 1e4}, )" +
                    decoder + "}"),
            "config_json/decoder: stands beside text_config: which of them is the text part of "
            "model_type \"nobody_knows\", which is not known here, is not said");
}

TEST(TowersTest, SpeechToTextsEncoderHadTheLengthOfItsDecoder) {
  const auto by_class = Resolved(R"({"model_type": "speech_to_text", "d_model": 256})");
  EXPECT_EQ(by_class.encodings(0).max_position_embeddings(), 6000);
  EXPECT_EQ(by_class.encodings(1).max_position_embeddings(), 1024);
  const auto by_file = Resolved(R"({"model_type": "speech_to_text", "d_model": 256,
      "max_source_positions": 3000, "max_target_positions": 512})");
  EXPECT_EQ(by_file.encodings(0).max_position_embeddings(), 3000);
  EXPECT_EQ(by_file.encodings(1).max_position_embeddings(), 512);
}

// What is left out
// ---------------------------------------------------------------------------------

TEST(TowersTest, TalkersAndVocodersWereLeftOutInSilence) {
  const auto response = Resolved(R"({"model_type": "qwen3_omni_moe",
      "thinker_config": {"text_config": {"model_type": "qwen3_omni_moe_text", "hidden_size": 2048,
                                         "num_attention_heads": 32, "rope_theta": 1000000}},
      "talker_config": {"text_config": {"hidden_size": 1024, "rope_theta": 1000000},
                        "code_predictor_config": {"hidden_size": 1024, "rope_theta": 1000000}},
      "code2wav_config": {"hidden_size": 1024, "rope_theta": 10000}})");
  ASSERT_EQ(response.encodings_size(), 1);
  std::vector<std::string> pointers;
  for (const v1::Finding& finding : response.findings()) {
    if (finding.rule() == "tower-unknown") pointers.push_back(finding.pointer());
  }
  EXPECT_THAT(pointers, ElementsAre("/talker_config/text_config",
                                    "/talker_config/code_predictor_config", "/code2wav_config"));
}

TEST(TowersTest, AMapOfTheModelsOwnIsNoPartOfIt) {
  const auto response = Resolved(
      ModelWith("llama", R"("rope_parameters": {"rope_type": "default", "rope_theta": 10000})"));
  EXPECT_EQ(FindingOf(response, "tower-unknown"), nullptr);
}

// Its rope_parameters turn the features of the sound by their times.
TEST(TowersTest, MusicFlamingosRopeOfTimesWasSaidToBeIgnored) {
  const auto response = Resolved(R"({"model_type": "musicflamingo",
      "text_config": {"model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28,
                      "rope_theta": 1000000},
      "rope_parameters": {"rope_type": "default", "rope_theta": 1200,
                          "partial_rotary_factor": 0.2}})");
  EXPECT_EQ(FindingOf(response, "rope-key-ignored"), nullptr);
  ASSERT_NE(FindingOf(response, "tower-unknown"), nullptr);
  EXPECT_EQ(FindingOf(response, "tower-unknown")->pointer(), "/rope_parameters");
}

}  // namespace
}  // namespace posenc
