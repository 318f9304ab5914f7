// Families that are not known: what their files say in any of the words and lists of those that
// are. Sources are the configuration files of transformers 5 and vLLM's
// transformers_utils/config.py (read 2026-11).
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
using ::posenc::testing::TheEncoding;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A model of a family that nobody knows, with a base so that the generic rules read it.
std::string Unknown(absl::string_view more) {
  return ModelWith("nobody_knows", absl::StrCat(R"("rope_theta": 10000, )", more));
}

TEST(UnknownFamilyTest, LatentAttentionHadTheWidthOfAnOrdinaryHead) {
  const auto response = Resolved(Unknown(
      R"("kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
         "rope_scaling": {"rope_type": "yarn", "factor": 40, "mscale": 1, "mscale_all_dim": 1,
                          "original_max_position_embeddings": 4096})"));
  const v1::ResolvedEncoding& encoding = response.encodings(0);
  EXPECT_EQ(encoding.spec().rope().head_dim(), 64);
  EXPECT_EQ(encoding.spec().rope().rotary_dim(), 64);
  EXPECT_TRUE(encoding.rotary_channels_last());
  EXPECT_EQ(encoding.rotation(), "interleaved_to_half");
  EXPECT_NEAR(encoding.softmax_scale_multiplier(), 1.8738542070926265, 1e-12);
  ASSERT_NE(FindingOf(response, "model-type-unknown"), nullptr);
  EXPECT_THAT(FindingOf(response, "model-type-unknown")->message(), HasSubstr("DeepSeek-V3"));
}

TEST(UnknownFamilyTest, ARopePartWithoutALatentRankWasIgnored) {
  EXPECT_THAT(Refusal(Unknown(R"("qk_rope_head_dim": 64, "head_dim": 512)")),
              HasSubstr("config_json/qk_rope_head_dim: stands without kv_lora_rank"));
  EXPECT_EQ(
      TheEncoding(Unknown(R"("qk_rope_head_dim": 64, "head_dim": 64)")).spec().rope().rotary_dim(),
      64)
      << "the whole head, whatever its attention";
}

TEST(UnknownFamilyTest, TheRotatedPartOfAHeadWasIgnoredUnderItsOtherNames) {
  for (const char* part : {R"("rotary_dim": 32)", R"("rotary_pct": 0.25)", R"("rope_pct": 0.25)",
                           R"("rotary_emb_fraction": 0.25)", R"("partial_rotary_factor": 0.25)"}) {
    const auto response = Resolved(Unknown(part));
    EXPECT_EQ(response.encodings(0).spec().rope().head_dim(), 128) << part;
    EXPECT_EQ(response.encodings(0).spec().rope().rotary_dim(), 32) << part;
    EXPECT_EQ(FindingOf(response, "rope-key-ignored"), nullptr) << part;
    EXPECT_EQ(FindingOf(response, "compat-differs"), nullptr) << "its code is not transformers'";
  }
  EXPECT_THAT(Refusal(Unknown(R"("rotary_dim": 32, "rotary_pct": 0.5)")),
              HasSubstr("contradicts config_json/rotary_pct"));
  EXPECT_THAT(Refusal(Unknown(R"("rotary_pct": 0.25, "rope_pct": 0.5)")),
              HasSubstr("contradicts config_json/rotary_pct"));
}

TEST(UnknownFamilyTest, KvChannelsWasIgnored) {
  EXPECT_EQ(TheEncoding(Unknown(R"("kv_channels": 64)")).spec().rope().head_dim(), 64);
  EXPECT_THAT(Refusal(Unknown(R"("kv_channels": 64, "head_dim": 96)")),
              HasSubstr("contradicts config_json/head_dim"));
}

TEST(UnknownFamilyTest, TheBaseWasIgnoredUnderItsOtherNames) {
  const auto encoding = TheEncoding(
      ModelWith("nobody_knows",
                R"("rotary_emb_base": 1e6, "rope_scaling": {"type": "linear", "factor": 2})"));
  EXPECT_EQ(encoding.spec().rope().rope_theta(), 1e6);
}

TEST(UnknownFamilyTest, LayersWithoutRopeWereReportedAsAll) {
  const auto by_list =
      TheEncoding(Unknown(R"("num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0])"));
  EXPECT_THAT(by_list.layers(), ElementsAre(0, 1, 2));
  EXPECT_THAT(by_list.nope_layers(), ElementsAre(3));
  const auto by_layout =
      TheEncoding(Unknown(R"("num_hidden_layers": 4, "rope_layout": [0, 1, 1, 1])"));
  EXPECT_THAT(by_layout.nope_layers(), ElementsAre(0));
  const auto by_interval =
      TheEncoding(Unknown(R"("num_hidden_layers": 4, "no_rope_layer_interval": 2)"));
  EXPECT_THAT(by_interval.layers(), ElementsAre(0, 2));
  EXPECT_THAT(by_interval.nope_layers(), ElementsAre(1, 3));
  const auto all = TheEncoding(Unknown(R"("num_hidden_layers": 4)"));
  EXPECT_THAT(all.nope_layers(), IsEmpty());
}

// A list of numbers of layers would be another thing under the same name.
TEST(UnknownFamilyTest, AListOfLayerNumbersWasTakenForFlags) {
  EXPECT_THAT(Refusal(Unknown(R"("num_hidden_layers": 4, "no_rope_layers": [0, 1, 2, 3])")),
              HasSubstr("config_json/no_rope_layers/2: must be 1 for a layer with RoPE or 0"));
}

TEST(UnknownFamilyTest, LayersWithoutAttentionWereReportedAsRotating) {
  const auto hybrid = TheEncoding(Unknown(
      R"("num_hidden_layers": 4, "layer_types": ["linear_attention", "linear_attention",
         "linear_attention", "full_attention"])"));
  EXPECT_EQ(hybrid.layer_type(), "full_attention");
  EXPECT_THAT(hybrid.layers(), ElementsAre(3));
  EXPECT_THAT(hybrid.nope_layers(), ElementsAre(0, 1, 2));
  const auto three = TheEncoding(Unknown(
      R"("num_hidden_layers": 3, "layer_types": ["mamba", "sliding_attention", "full_attention"])"));
  EXPECT_EQ(three.layer_type(), "all");
  EXPECT_THAT(three.layers(), ElementsAre(1, 2));
  EXPECT_THAT(three.nope_layers(), ElementsAre(0));
  const auto experts = TheEncoding(
      Unknown(R"("num_hidden_layers": 3, "layers_block_type": ["mamba", "moe", "attention"])"));
  EXPECT_THAT(experts.layers(), ElementsAre(2));
  const auto mlps =
      TheEncoding(Unknown(R"("num_hidden_layers": 2, "layer_types": ["dense", "moe"])"));
  EXPECT_THAT(mlps.nope_layers(), IsEmpty()) << "these are no types of attention";
  const auto by_numbers =
      TheEncoding(Unknown(R"("num_hidden_layers": 3, "attn_layer_indices": [1])"));
  EXPECT_THAT(by_numbers.layers(), ElementsAre(1));
  const auto by_interval =
      TheEncoding(Unknown(R"("num_hidden_layers": 4, "full_attention_interval": 2)"));
  EXPECT_THAT(by_interval.layers(), ElementsAre(1, 3));
  const auto none = Resolved(
      Unknown(R"("num_hidden_layers": 2, "layers_block_type": ["mamba", "linear_attention"])"));
  EXPECT_EQ(none.encodings(0).kind(), "none");
}

// Kimi's count from 1, others from 0: the two lists together say it.
TEST(UnknownFamilyTest, NumbersOfLayersWereTakenToCountFromZero) {
  const auto layers = [](const char* full, const char* kda) {
    return absl::StrCat(R"("num_hidden_layers": 4, "linear_attn_config": {"full_attn_layers": )",
                        full, R"(, "kda_layers": )", kda, "}");
  };
  EXPECT_THAT(TheEncoding(Unknown(layers("[4]", "[1, 2, 3]"))).layers(), ElementsAre(3));
  EXPECT_THAT(TheEncoding(Unknown(layers("[3]", "[0, 1, 2]"))).layers(), ElementsAre(3));
  EXPECT_THAT(Refusal(Unknown(layers("[3]", "null"))),
              HasSubstr("config_json/linear_attn_config/full_attn_layers: does not say whether"));
}

TEST(UnknownFamilyTest, TheBaseOfSlidingLayersWasIgnored) {
  const auto gemma = Resolved(Unknown(
      R"("num_hidden_layers": 3, "rope_local_base_freq": 5000, "sliding_window_pattern": 3,
         "rope_scaling": {"rope_type": "linear", "factor": 8})"));
  ASSERT_EQ(gemma.encodings_size(), 2);
  EXPECT_THAT(gemma.encodings(0).layers(), ElementsAre(2));
  EXPECT_EQ(gemma.encodings(0).rope_type(), "linear");
  EXPECT_EQ(gemma.encodings(0).spec().rope().rope_theta(), 10000);
  EXPECT_THAT(gemma.encodings(1).layers(), ElementsAre(0, 1));
  EXPECT_EQ(gemma.encodings(1).rope_type(), "default");
  EXPECT_EQ(gemma.encodings(1).spec().rope().rope_theta(), 5000);
  const auto bert = Resolved(Unknown(
      R"("num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"],
         "local_rope_theta": 5000)"));
  EXPECT_EQ(bert.encodings(0).spec().rope().rope_theta(), 10000);
  EXPECT_EQ(bert.encodings(1).spec().rope().rope_theta(), 5000);
  EXPECT_THAT(Refusal(Unknown(R"("num_hidden_layers": 3, "rope_local_base_freq": 5000)")),
              HasSubstr("config_json/rope_local_base_freq: needs layer_types beside it"));
  EXPECT_THAT(Refusal(Unknown(
                  R"("num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"],
                     "global_rope_theta": 10000)")),
              HasSubstr("config_json/local_rope_theta: is required beside global_rope_theta"));
}

TEST(UnknownFamilyTest, WhatSomeLayersHaveOfTheirOwnWasIgnored) {
  for (const char* key : {"global_head_dim", "swa_head_dim", "swa_rope_theta"}) {
    EXPECT_THAT(Refusal(Unknown(absl::StrCat("\"", key, "\": 256"))),
                HasSubstr(absl::StrCat("config_json/", key, ": is for some layers alone")));
  }
}

TEST(UnknownFamilyTest, OtherPositionsWereReadAsRopeForALeftoverBase) {
  for (const char* other : {R"("position_embedding_type": "alibi")",
                            R"("position_embedding_type": "nope")", R"("alibi": true)"}) {
    EXPECT_THAT(Refusal(Unknown(other)), HasSubstr("has other positions than RoPE")) << other;
  }
  for (const char* same : {R"("position_embedding_type": "rope")",
                           R"("position_embedding_type": "absolute")", R"("alibi": false)"}) {
    EXPECT_EQ(TheEncoding(Unknown(same)).kind(), "rope") << same;
  }
}

}  // namespace
}  // namespace posenc
