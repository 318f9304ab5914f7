// config.json -> encodings: the families, both forms, and what is narrowed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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
using ::testing::Contains;
using ::testing::HasSubstr;

TEST(ModelConfigTest, Llama31) {
  const v1::ResolvedEncoding encoding = TheEncoding(ReadConfig("Meta-Llama-3.1-8B.json"));
  EXPECT_EQ(encoding.tower(), "text");
  EXPECT_EQ(encoding.layer_type(), "all");
  EXPECT_EQ(encoding.kind(), "rope");
  EXPECT_EQ(encoding.rope_type(), "llama3");
  EXPECT_EQ(encoding.max_position_embeddings(), 131072);
  EXPECT_EQ(encoding.dtype(), "bf16");
  EXPECT_EQ(encoding.softmax_scale_multiplier(), 1);
  const v1::RopeSpec& rope = encoding.spec().rope();
  EXPECT_EQ(rope.head_dim(), 128);
  EXPECT_EQ(rope.rotary_dim(), 128);
  EXPECT_EQ(rope.rope_theta(), 500000);
  EXPECT_EQ(rope.pairing(), v1::PAIRING_HALF);
  EXPECT_EQ(rope.llama3().factor(), 8);
  EXPECT_EQ(rope.llama3().low_freq_factor(), 1);
  EXPECT_EQ(rope.llama3().high_freq_factor(), 4);
  EXPECT_EQ(rope.llama3().original_max_position_embeddings(), 8192);
}

TEST(ModelConfigTest, ALengthBelowOneWasTakenWhereNothingDependsOnIt) {
  for (const int64_t length : {int64_t{-1}, int64_t{0}, (int64_t{1} << 31) + 1}) {
    v1::ModelSource model;
    model.set_config_json(ModelWith("llama", ""));
    model.set_sequence_length(length);
    EXPECT_EQ(std::string(ResolveModelConfig(model).status().message()),
              absl::StrCat("sequence_length: must be in [1, 2147483648], got ", length));
  }
}

TEST(ModelConfigTest, OldAndNewFormMeanTheSame) {
  auto old_form = TheEncoding(
      ModelWith("qwen3", R"("rope_theta": 1e6, "rope_scaling": {"type": "linear", "factor": 2})"));
  auto new_form = TheEncoding(ModelWith(
      "qwen3",
      R"("rope_parameters": {"rope_theta": 1000000, "rope_type": "linear", "factor": 2.0})"));
  old_form.clear_places();  // where it stands is all that differs
  new_form.clear_places();
  EXPECT_EQ(old_form.SerializeAsString(), new_form.SerializeAsString());
  EXPECT_EQ(new_form.spec().rope().rope_theta(), 1e6);
  EXPECT_EQ(new_form.spec().rope().linear().factor(), 2);
}

TEST(ModelConfigTest, NullAndEmptyScalingsAreNone) {
  for (const char* scaling : {"null", "{}"}) {
    const auto encoding =
        TheEncoding(ModelWith("llama", absl::StrCat("\"rope_scaling\": ", scaling)));
    EXPECT_EQ(encoding.rope_type(), "default");
    EXPECT_EQ(encoding.spec().rope().scaling_case(), v1::RopeSpec::SCALING_NOT_SET);
  }
}

TEST(ModelConfigTest, PartialRotaryOfPhiAndNeox) {
  EXPECT_EQ(TheEncoding(ReadConfig("phi-shrunk.json")).spec().rope().rotary_dim(), 32);
  const v1::RopeSpec neox = TheEncoding(ReadConfig("gpt-neox-shrunk.json")).spec().rope();
  EXPECT_EQ(neox.head_dim(), 128);
  EXPECT_EQ(neox.rotary_dim(), 32);
  EXPECT_EQ(neox.rope_theta(), 10000);
  // trunc(100 * 0.29), a double product: hf-rope.md 6.1.
  EXPECT_EQ(TheEncoding(ModelWith("phi", R"("head_dim": 100, "partial_rotary_factor": 0.29)"))
                .spec()
                .rope()
                .rotary_dim(),
            28);
}

TEST(ModelConfigTest, ExplicitHeadDimIsNotHiddenOverHeads) {
  // 1024 / 16 = 64, but the file says 128.
  EXPECT_EQ(TheEncoding(ReadConfig("Qwen3-0.6B.json")).spec().rope().head_dim(), 128);
}

TEST(ModelConfigTest, AnMptWithRopeWasReadAsLearned) {
  EXPECT_THAT(Refusal(R"({"model_type": "mpt", "d_model": 512, "n_heads": 8, "max_seq_len": 2048,
                          "attn_config": {"alibi": false, "rope": true}})"),
              HasSubstr("config_json/attn_config/rope: must be false"));
}

TEST(ModelConfigTest, AlibiOfBloomAndMpt) {
  const v1::ResolvedEncoding bloom = TheEncoding(ReadConfig("bloomz-560m.json"));
  EXPECT_EQ(bloom.kind(), "alibi");
  EXPECT_EQ(bloom.max_position_embeddings(), 0) << "seq_length is what it was trained on";
  EXPECT_EQ(bloom.spec().alibi().num_heads(), 16);
  EXPECT_EQ(bloom.spec().alibi().slope_rounding(), v1::SLOPE_ROUNDING_BLOOM);
  const v1::ResolvedEncoding mpt = TheEncoding(ReadConfig("frag-flax-mpt7b.json"));
  EXPECT_EQ(mpt.spec().alibi().num_heads(), 32);
  EXPECT_EQ(mpt.spec().alibi().alibi_bias_max(), 8);
  EXPECT_EQ(mpt.spec().alibi().slope_rounding(), v1::SLOPE_ROUNDING_MPT);
}

TEST(ModelConfigTest, T5HasTwoTowers) {
  const auto response = Resolve(ReadConfig("t5-small.json"));
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->encodings_size(), 2);
  EXPECT_EQ(response->encodings(0).tower(), "encoder");
  EXPECT_TRUE(response->encodings(0).spec().t5().bidirectional());
  EXPECT_EQ(response->encodings(1).tower(), "decoder");
  EXPECT_FALSE(response->encodings(1).spec().t5().bidirectional());
  EXPECT_EQ(OneEncoding(*response).status().message(),
            "tower: this model has several encodings, name one by tower and layer_type: "
            "encoder/all, decoder/all");
}

TEST(ModelConfigTest, TowerAndLayerTypeNarrow) {
  v1::ModelSource model;
  model.set_config_json(ReadConfig("t5-small.json"));
  model.set_tower("decoder");
  const auto response = ResolveModelConfig(model);
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->encodings_size(), 1);
  EXPECT_EQ(response->encodings(0).tower(), "decoder");
  model.set_tower("vision");
  EXPECT_EQ(ResolveModelConfig(model).status().message(),
            "tower: must be one of encoder, decoder for this model, got \"vision\"");
  model.set_tower("decoder");
  model.set_layer_type("sliding_attention");
  EXPECT_EQ(ResolveModelConfig(model).status().message(),
            "layer_type: must be one of all for this model, got \"sliding_attention\"");
}

TEST(ModelConfigTest, ArithmeticGoesIntoTheSpec) {
  v1::ModelSource model;
  model.set_config_json(ReadConfig("Meta-Llama-3.1-8B.json"));
  model.set_arithmetic(v1::ARITHMETIC_EXACT);
  EXPECT_EQ(ResolveModelConfig(model)->encodings(0).spec().rope().arithmetic(),
            v1::ARITHMETIC_EXACT);
}

TEST(ModelConfigTest, OverridesReplaceAScalingWhole) {
  v1::ModelSource model;
  model.set_config_json(ReadConfig("Meta-Llama-3.1-8B.json"));
  model.set_overrides_json(
      R"({"rope_scaling": {"rope_type": "linear", "factor": 2}, "rope_theta": 7})");
  const v1::ResolvedEncoding encoding = ResolveModelConfig(model)->encodings(0);
  EXPECT_EQ(encoding.rope_type(), "linear");
  EXPECT_EQ(encoding.spec().rope().rope_theta(), 7);
  EXPECT_EQ(encoding.spec().rope().linear().factor(), 2);
  EXPECT_EQ(encoding.dtype(), "bf16") << "what is not overridden stays";
}

TEST(ModelConfigTest, FindingsPointIntoTheFile) {
  const auto response = Resolve(
      "{\"model_type\": \"llama\", \"hidden_size\": 64,\n"
      " \"num_attention_heads\": 1, \"max_position_embeddings\": 64,\n"
      " \"rope_scaling\": {\"type\": \"linear\",\n"
      "   \"factor\": 0.50}}");
  ASSERT_TRUE(response.ok()) << response.status();
  const v1::Finding* finding = FindingOf(*response, "factor-below-one");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity(), v1::SEVERITY_WARNING);
  EXPECT_EQ(finding->pointer(), "/rope_scaling/factor");
  EXPECT_EQ(finding->line(), 4);
  EXPECT_EQ(finding->column(), 14);
  EXPECT_EQ(finding->found(), "0.50");
  EXPECT_EQ(finding->expected(), "1 or more");
}

TEST(ModelConfigTest, KnownModelTypesAreSorted) {
  const std::vector<std::string> types = KnownModelTypes();
  EXPECT_TRUE(std::is_sorted(types.begin(), types.end()));
  EXPECT_THAT(types, Contains("llama"));
  EXPECT_THAT(types, Contains("t5"));
}

}  // namespace
}  // namespace posenc
