// Where a config says what was read of it: the places that comparisons and refusals point at.
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/model_config/resolve.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using ::posenc::testing::Resolve;

// "3:5 /rope_theta" of a fact; "" where the encoding has no place for it.
std::string PlaceOf(const v1::ResolvedEncoding& encoding, absl::string_view fact) {
  for (const v1::FactPlace& place : encoding.places()) {
    if (place.fact() == fact) {
      return absl::StrCat(place.line(), ":", place.column(), " ", place.pointer());
    }
  }
  return "";
}

TEST(ModelConfigPlacesTest, AFactIsAtTheKeyThatDecidesIt) {
  const auto response = Resolve(R"({
  "model_type": "llama",
  "hidden_size": 512, "num_attention_heads": 4,
  "rope_scaling": {"type": "linear",
                   "factor": 2, "rope_theta": 5e5},
  "partial_rotary_factor": 0.5,
  "num_hidden_layers": 2,
  "max_position_embeddings": 64
})");
  ASSERT_TRUE(response.ok()) << response.status();
  const v1::ResolvedEncoding& encoding = response->encodings(0);
  EXPECT_EQ(PlaceOf(encoding, "kind"), "2:17 /model_type");
  EXPECT_EQ(PlaceOf(encoding, "head_dim"), "3:18 /hidden_size");
  EXPECT_EQ(PlaceOf(encoding, "rotary_dim"), "6:28 /partial_rotary_factor");
  EXPECT_EQ(PlaceOf(encoding, "rope_type"), "4:28 /rope_scaling/type");
  EXPECT_EQ(PlaceOf(encoding, "scaling"), "4:19 /rope_scaling");
  EXPECT_EQ(PlaceOf(encoding, "rope_theta"), "5:47 /rope_scaling/rope_theta");
  EXPECT_EQ(PlaceOf(encoding, "layers"), "7:24 /num_hidden_layers");
  EXPECT_EQ(PlaceOf(encoding, "max_position_embeddings"), "8:30 /max_position_embeddings");
  EXPECT_EQ(PlaceOf(encoding, "mrope_section"), "") << "it has none";
}

// Facts that had the place of another key, or none.
TEST(ModelConfigPlacesTest, WhatScalesQueriesPairsChannelsOrCountsHeadsHadNoPlace) {
  const auto place = [](const std::string& config, absl::string_view fact) {
    const auto response = Resolve(config);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? PlaceOf(response->encodings(0), fact) : "";
  };
  const std::string llama4 = testing::ModelWith(
      "llama4_text",
      "\n\"attn_temperature_tuning\": 4, \"attn_scale\": 0.1,\n\"floor_scale\": 8192");
  EXPECT_EQ(place(llama4, "query_scale"), "2:28 /attn_temperature_tuning");
  EXPECT_EQ(place(llama4, "query_scale.beta"), "2:45 /attn_scale");
  EXPECT_EQ(place(llama4, "query_scale.length"), "3:16 /floor_scale");
  const std::string ministral = testing::ModelWith("ministral3", R"("rope_parameters":
    {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0,
     "llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 2048})");
  EXPECT_EQ(place(ministral, "query_scale.beta"), "3:30 /rope_parameters/llama_4_scaling_beta");
  EXPECT_EQ(place(ministral, "query_scale.length"),
            "3:71 /rope_parameters/original_max_position_embeddings");
  EXPECT_EQ(place(testing::ModelWith("deepseek_v3", "\n\"rope_interleave\": true"), "rotation"),
            "2:20 /rope_interleave");
  EXPECT_EQ(place("{\"model_type\": \"llama\", \"hidden_size\": 64,\n\"num_attention_heads\": 2}",
                  "num_attention_heads"),
            "2:24 /num_attention_heads");
  EXPECT_EQ(place("{\"model_type\": \"bloom\", \"hidden_size\": 64,\n\"n_head\": 2}", "num_heads"),
            "2:11 /n_head");
  EXPECT_EQ(place(testing::ModelWith("chatglm", "\n\"kv_channels\": 128, \"rope_ratio\": 50"),
                  "rope_theta"),
            "2:35 /rope_ratio");
}

// Nested, so that the object which lacks a key is not the file.
TEST(ModelConfigPlacesTest, AMissingKeyIsAtTheObjectThatLacksIt) {
  const auto response = Resolve(R"({"model_type": "llava",
  "text_config": {"model_type": "llama"}})");
  ASSERT_TRUE(response.ok()) << response.status();
  const v1::ResolvedEncoding& encoding = response->encodings(0);
  EXPECT_EQ(PlaceOf(encoding, "rope_theta"), "2:18 /text_config/rope_theta");
  EXPECT_EQ(PlaceOf(encoding, "scaling"), "2:18 /text_config/rope_scaling");
  EXPECT_EQ(PlaceOf(encoding, "head_dim"), "2:18 /text_config/head_dim");
  EXPECT_EQ(PlaceOf(encoding, "max_position_embeddings"),
            "2:18 /text_config/max_position_embeddings");
}

TEST(ModelConfigPlacesTest, EachLayerTypeHasPlacesOfItsOwn) {
  const auto response = Resolve(R"({"model_type": "llama", "head_dim": 64,
"layer_types": ["full_attention", "sliding_attention"], "rope_parameters": {
"full_attention": {"rope_type": "default", "rope_theta": 5e5},
"sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}})");
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->encodings_size(), 2);
  EXPECT_EQ(PlaceOf(response->encodings(0), "rope_theta"),
            "3:58 /rope_parameters/full_attention/rope_theta");
  EXPECT_EQ(PlaceOf(response->encodings(1), "rope_theta"),
            "4:61 /rope_parameters/sliding_attention/rope_theta");
  EXPECT_EQ(PlaceOf(response->encodings(1), "layers"), "2:16 /layer_types");
}

// An override stands in no file: it has a pointer, and no line.
TEST(ModelConfigPlacesTest, WhatIsOverriddenHasNoLine) {
  v1::ModelSource model;
  model.set_config_json(R"({"model_type": "llama", "head_dim": 64, "rope_theta": 1e4})");
  model.set_overrides_json(R"({"rope_theta": 5e5})");
  const auto response = ResolveModelConfig(model);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(PlaceOf(response->encodings(0), "rope_theta"), "0:0 /rope_theta");
}

std::string RefusedAt(const std::string& config) {
  v1::FactPlace place;
  const absl::Status status = Resolve(config).status();
  const auto payload = status.GetPayload("type.googleapis.com/posenc.v1.FactPlace");
  if (!payload || !place.ParseFromString(std::string(*payload))) return "";
  return absl::StrCat(place.line(), ":", place.column(), " ", place.pointer());
}

TEST(ModelConfigPlacesTest, ARefusalCarriesThePlaceOfTheValueOrOfWhatLacksIt) {
  EXPECT_EQ(RefusedAt(R"({"model_type": "llama", "head_dim": 64,
 "rope_scaling": {"rope_type": "linear", "factor": "8"}})"),
            "2:52 /rope_scaling/factor");
  EXPECT_EQ(RefusedAt(R"({"model_type": "llama", "head_dim": 64,
 "rope_scaling": {"rope_type": "linear"}})"),
            "2:18 /rope_scaling/factor");
  EXPECT_EQ(RefusedAt(R"({"model_type": "phi3", "head_dim": 4, "rope_scaling": {
 "type": "longrope", "short_factor": [1, "a"], "long_factor": [1, 1]}})"),
            "2:42 /rope_scaling/short_factor/1");
  EXPECT_EQ(RefusedAt("{\"a\": 1,\n \"b\": ?}"), "2:7 ") << "no JSON";
  EXPECT_EQ(RefusedAt("[1, 2]"), "") << "no object, no place";
}

// Lines are counted from marks every 4096 bytes: far into a long file too.
TEST(ModelConfigPlacesTest, LinesAreRightInALongFile) {
  std::string config = "{\"model_type\": \"llama\",\n";
  for (int i = 0; i < 2000; ++i) absl::StrAppend(&config, "\"key_", i, "\": [1,\n2],\n");
  absl::StrAppend(&config, "  \"head_dim\": 64}");
  const auto response = Resolve(config);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(PlaceOf(response->encodings(0), "head_dim"), "4002:15 /head_dim");
}

}  // namespace
}  // namespace posenc
