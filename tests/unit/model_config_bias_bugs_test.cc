// Faults that somebody reported in public of what is not RoPE, biases and learned tables,
// each with its right value: a test named after what went wrong. Ids are those of
// reference/known-bugs.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "lib/model_config/resolve.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using ::posenc::testing::FindingOf;
using ::posenc::testing::ModelWith;
using ::posenc::testing::ReadConfig;
using ::posenc::testing::Refusal;
using ::posenc::testing::Resolve;
using ::posenc::testing::TheEncoding;
using ::testing::ElementsAre;

TEST(KnownBugsTest, B116_WhichBaichuanHasAlibi) {
  EXPECT_EQ(TheEncoding(ReadConfig("Baichuan2-7B.json")).kind(), "rope");
  const auto encoding = TheEncoding(
      R"({"model_type": "baichuan", "hidden_size": 5120, "num_attention_heads": 40,
          "num_hidden_layers": 40})");
  EXPECT_EQ(encoding.kind(), "alibi");
  EXPECT_EQ(encoding.spec().alibi().alibi_bias_max(), 8);
}

TEST(KnownBugsTest, B117_FalconAddsBeforeItScales) {
  EXPECT_EQ(TheEncoding(ReadConfig("falcon-rw-1b.json")).bias_scale(), 0.125);
  EXPECT_EQ(TheEncoding(ReadConfig("bloomz-560m.json")).bias_scale(), 1);
}

TEST(KnownBugsTest, B127_B128_TheDecoderHadTheEncodersBuckets) {
  const auto response = Resolve(ReadConfig("t5-small.json"));
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->encodings_size(), 2) << "none for cross attention";
  EXPECT_TRUE(response->encodings(0).spec().t5().bidirectional());
  EXPECT_FALSE(response->encodings(1).spec().t5().bidirectional());
}

TEST(KnownBugsTest, B129_MoreBucketsThanDistances) {
  EXPECT_EQ(Refusal(R"({"model_type": "t5", "num_heads": 8, "relative_attention_num_buckets": 64,
                        "relative_attention_max_distance": 16})"),
            "config_json/relative_attention_max_distance: max_distance must be above the 32 "
            "distances that have a bucket of their own, got 16");
}

TEST(KnownBugsTest, B137_B139_TheRowsOfRobertaAreTwoMoreThanItsTokens) {
  const v1::LearnedTable table = Resolve(ReadConfig("EUBERT-roberta.json"))->encodings(0).learned();
  EXPECT_EQ(table.rows(), 514);
  EXPECT_EQ(table.usable(), 512);
  // The padding id decides: rinna's 3 leaves 510.
  EXPECT_EQ(Resolve(ModelWith("roberta", R"("pad_token_id": 3)"))->encodings(0).learned().offset(),
            4);
  const auto short_table = Resolve(ReadConfig("frag-bce-embedding-base_v1-512.json"));
  ASSERT_TRUE(short_table.ok()) << short_table.status();
  ASSERT_NE(FindingOf(*short_table, "rows-without-offset"), nullptr);
  EXPECT_EQ(FindingOf(*short_table, "rows-without-offset")->expected(), "514");
}

TEST(KnownBugsTest, B140_TheOffsetOfOptAndBartIsNoError) {
  for (const char* model_type : {"opt", "bart"}) {
    const auto response = Resolve(
        absl::StrCat(R"({"model_type": ")", model_type, R"(", "max_position_embeddings": 2048})"));
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->encodings(0).learned().rows(), 2050);
    EXPECT_EQ(response->encodings(0).learned().offset(), 2);
    EXPECT_EQ(response->encodings(0).max_position_embeddings(), 2048);
  }
}

TEST(KnownBugsTest, B141_BlenderbotHasNoExtraRows) {
  EXPECT_EQ(Resolve(R"({"model_type": "blenderbot", "max_position_embeddings": 128})")
                ->encodings(0)
                .learned()
                .rows(),
            128);
}

TEST(KnownBugsTest, B143_AGridWasTakenForASquare) {
  const auto response = Resolve(
      R"({"model_type": "dinov2", "hidden_size": 64, "image_size": [224, 448], "patch_size": 14})");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(response->encodings(0).learned().grid(), ElementsAre(16, 32));
  EXPECT_EQ(response->encodings(0).learned().rows(), 513);
}

TEST(ModelConfigTest, EsmCountsItsRowsFromThePaddingAsRobertaDoes) {
  const v1::LearnedTable table =
      Resolve(ModelWith("esm", R"("position_embedding_type": "absolute", "pad_token_id": 1)"))
          ->encodings(0)
          .learned();
  EXPECT_EQ(table.offset(), 2);
  EXPECT_EQ(table.usable(), table.rows() - 2);
}

TEST(ModelConfigTest, TheBaseOfJinaV3IsRotaryEmbBase) {
  const auto encoding = TheEncoding(ModelWith("xlm-roberta", R"("position_embedding_type": "rotary",
                                              "rotary_emb_base": 20000.0)"));
  EXPECT_EQ(encoding.kind(), "rope");
  EXPECT_EQ(encoding.spec().rope().rope_theta(), 20000);
}

}  // namespace
}  // namespace posenc
