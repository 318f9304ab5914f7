// Which maps of a config each version of transformers reads, and where its facts then stand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/model_config/resolve.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using ::posenc::testing::FindingOf;
using ::posenc::testing::MessageOf;
using ::posenc::testing::ModelWith;
using ::posenc::testing::Refusal;
using ::posenc::testing::ResolvedAs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string CompatMessage(absl::string_view config, v1::Compat compat) {
  return MessageOf("compat-differs", ResolvedAs(config, compat));
}

// Two maps -------------------------------------------------------------------------------------

// transformers 5.16 does not compare them: rope_scaling wins.
TEST(CompatMapsTest, TwoMapsOfDifferentTypesWereRefusedWhereTransformers5ReadsOne) {
  const std::string config = ModelWith("llama", R"("rope_theta": 500000.0,
      "rope_scaling": {"rope_type": "linear", "factor": 2.0},
      "rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 500000.0})");
  const auto response = ResolvedAs(config, v1::COMPAT_V5_16);
  EXPECT_EQ(response.encodings(0).rope_type(), "linear");
  EXPECT_EQ(response.encodings(0).spec().rope().linear().factor(), 2);
  std::vector<std::string> found;
  for (const v1::Finding& finding : response.findings()) {
    if (finding.rule() != "two-rope-maps") continue;
    EXPECT_EQ(finding.severity(), v1::SEVERITY_ERROR);
    found.push_back(finding.pointer());
  }
  EXPECT_THAT(found, ElementsAre("/rope_scaling", "/rope_scaling/factor"));
  EXPECT_EQ(Refusal(config),
            "config_json/rope_scaling: contradicts rope_parameters: rope_type linear against "
            "dynamic");
}

// rope_parameters, which transformers 4 does not know ------------------------------------------

TEST(CompatMapsTest, Transformers4ReadTheMapOfTheNewForm) {
  const std::string config = ModelWith("llama", R"("rope_parameters": {"rope_type": "linear",
      "factor": 4.0, "rope_theta": 500000.0})");
  const auto v4 = ResolvedAs(config, v1::COMPAT_V4_57);
  EXPECT_EQ(v4.encodings(0).rope_type(), "default");
  EXPECT_EQ(v4.encodings(0).spec().rope().rope_theta(), 10000);
  const v1::Finding* finding = FindingOf(v4, "compat-differs");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->pointer(), "/rope_parameters");
  EXPECT_THAT(finding->message(), HasSubstr("or its defaults, as here"));
  for (v1::Compat compat : {v1::COMPAT_LATEST, v1::COMPAT_V5_16}) {
    const auto response = ResolvedAs(config, compat);
    EXPECT_EQ(response.encodings(0).rope_type(), "linear");
    EXPECT_EQ(response.encodings(0).spec().rope().rope_theta(), 500000);
  }
}

// check --compat 4.57 fails at warnings as check does.
TEST(CompatMapsTest, WhatTransformers4DropsWasOnlyANote) {
  const auto v4 = ResolvedAs(ModelWith("llama", R"("rope_parameters": {"rope_type": "linear",
      "factor": 4.0, "rope_theta": 500000.0})"),
                             v1::COMPAT_V4_57);
  EXPECT_EQ(FindingOf(v4, "theta-only-new-form")->pointer(), "/rope_parameters/rope_theta");
  EXPECT_EQ(FindingOf(v4, "scaling-only-new-form")->pointer(), "/rope_parameters");
  const auto gemma3 = ResolvedAs(ModelWith("gemma3_text", R"("num_hidden_layers": 6,
      "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0,
      "rope_theta": 1e6}, "sliding_attention": {"rope_type": "default", "rope_theta": 10000}})"),
                                 v1::COMPAT_V4_57);
  EXPECT_EQ(gemma3.encodings(0).rope_type(), "default");
  EXPECT_EQ(FindingOf(gemma3, "theta-only-new-form"), nullptr) << "the class's own";
  EXPECT_EQ(FindingOf(gemma3, "scaling-only-new-form")->pointer(),
            "/rope_parameters/full_attention");
}

TEST(CompatMapsTest, Transformers4ReadsWhatStandsBesideTheNewForm) {
  const std::string config = ModelWith("gpt_oss", R"("rope_theta": 1e5,
      "rope_parameters": {"rope_type": "default", "rope_theta": 1e5})");
  const auto v4 = ResolvedAs(config, v1::COMPAT_V4_57);
  EXPECT_EQ(v4.encodings(0).rope_type(), "yarn") << "its class's rope_scaling";
  EXPECT_EQ(v4.encodings(0).spec().rope().rope_theta(), 1e5);
  // One that version 4 does not have is read as version 5 does.
  const std::string since_v5 = ModelWith("solar_open", R"("rope_parameters":
      {"rope_type": "default", "rope_theta": 5e5})");
  EXPECT_EQ(ResolvedAs(since_v5, v1::COMPAT_V4_57).encodings(0).spec().rope().rope_theta(), 5e5);
}

TEST(CompatMapsTest, Transformers4ReadABaseInsideRopeScaling) {
  const std::string config = ModelWith("llama", R"("rope_scaling": {"rope_type": "linear",
      "factor": 2.0, "rope_theta": 500000.0})");
  const auto v4 = ResolvedAs(config, v1::COMPAT_V4_57);
  EXPECT_EQ(v4.encodings(0).spec().rope().rope_theta(), 10000);
  EXPECT_THAT(FindingOf(v4, "theta-only-new-form")->message(), HasSubstr("instead, as here."));
  EXPECT_EQ(ResolvedAs(config, v1::COMPAT_LATEST).encodings(0).spec().rope().rope_theta(), 5e5);
}

// One map, and maps by layer type, in the families that do not read them (hf-rope.md 4.3) -------

TEST(CompatMapsTest, Transformers5ReadOneMapInFamiliesWithMapsByLayerType) {
  const std::string config = ModelWith("gemma3_text", R"("num_hidden_layers": 6, "rope_theta": 5e5,
      "rope_parameters": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6})");
  const auto v5 = ResolvedAs(config, v1::COMPAT_V5_16);
  EXPECT_EQ(v5.encodings(0).layer_type(), "full_attention");
  EXPECT_EQ(v5.encodings(0).rope_type(), "default") << "the factor is silently lost";
  EXPECT_EQ(v5.encodings(0).spec().rope().rope_theta(), 5e5);
  EXPECT_EQ(v5.encodings(1).spec().rope().rope_theta(), 1e4);
  EXPECT_EQ(FindingOf(v5, "compat-differs")->pointer(), "/rope_parameters");
  EXPECT_THAT(CompatMessage(config, v1::COMPAT_V5_16), HasSubstr("a single one is ignored"));
  const auto latest = ResolvedAs(config, v1::COMPAT_LATEST);
  EXPECT_EQ(latest.encodings(0).rope_type(), "linear");
  EXPECT_NE(FindingOf(latest, "compat-differs"), nullptr);
  const std::string old_form = ModelWith("gemma3_text", R"("num_hidden_layers": 6,
      "rope_scaling": {"rope_type": "linear", "factor": 8.0})");
  EXPECT_EQ(ResolvedAs(old_form, v1::COMPAT_V5_16).encodings(0).rope_type(), "linear");
}

TEST(CompatMapsTest, Transformers5ReadOneMapWhereItsClassFails) {
  const std::string config = ModelWith("gemma4_text", R"("num_hidden_layers": 6,
      "rope_parameters": {"rope_type": "default", "rope_theta": 1e6})");
  v1::ModelSource model;
  model.set_config_json(config);
  model.set_compat(v1::COMPAT_V5_16);
  EXPECT_THAT(std::string(ResolveModelConfig(model).status().message()),
              HasSubstr("config_json/rope_parameters: must hold a map for each type of layers"));
  EXPECT_NE(FindingOf(ResolvedAs(config, v1::COMPAT_LATEST), "compat-differs"), nullptr);
}

TEST(CompatMapsTest, Transformers5ReadMapsByLayerTypeInEveryFamily) {
  const std::string config = ModelWith("llama", R"("num_hidden_layers": 2, "rope_theta": 2e4,
      "layer_types": ["full_attention", "sliding_attention"], "rope_parameters": {
      "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e6},
      "sliding_attention": {"rope_type": "default", "rope_theta": 1e5}})");
  const auto v5 = ResolvedAs(config, v1::COMPAT_V5_16);
  ASSERT_EQ(v5.encodings_size(), 1);
  EXPECT_EQ(v5.encodings(0).rope_type(), "default");
  EXPECT_EQ(v5.encodings(0).spec().rope().rope_theta(), 2e4);
  EXPECT_THAT(CompatMessage(config, v1::COMPAT_V5_16),
              HasSubstr("5.16 knows no maps by layer type in this family"));
  const auto latest = ResolvedAs(config, v1::COMPAT_LATEST);
  EXPECT_EQ(latest.encodings_size(), 2);
  EXPECT_NE(FindingOf(latest, "compat-differs"), nullptr);
}

// configuration_olmo3.py of 5.16 pops the key for the full layers first (hf-rope.md 4.3).
TEST(CompatMapsTest, Transformers5ReadOlmo3sBaseForSlidingLayers) {
  const std::string config = ModelWith("olmo3", R"("num_hidden_layers": 4, "rope_theta": 1e6)");
  const auto v5 = ResolvedAs(config, v1::COMPAT_V5_16);
  EXPECT_EQ(v5.encodings(0).spec().rope().rope_theta(), 1e6);
  EXPECT_EQ(v5.encodings(1).layer_type(), "sliding_attention");
  EXPECT_EQ(v5.encodings(1).spec().rope().rope_theta(), 5e5);
  EXPECT_THAT(CompatMessage(config, v1::COMPAT_V5_16), HasSubstr("500000, as here."));
  for (v1::Compat compat : {v1::COMPAT_LATEST, v1::COMPAT_V4_57}) {
    EXPECT_EQ(ResolvedAs(config, compat).encodings(1).spec().rope().rope_theta(), 1e6);
  }
}

// Facts are where they were read, in every mode -------------------------------------------------

std::string PlaceOf(absl::string_view fact, absl::string_view config, v1::Compat compat) {
  const auto response = ResolvedAs(config, compat);
  for (const v1::FactPlace& place : response.encodings(0).places()) {
    if (place.fact() == fact) return place.pointer();
  }
  return "";
}

TEST(CompatMapsTest, FactsWereSaidToStandInMapsThatWereNotRead) {
  const std::string config = ModelWith("glm4", R"("rope_scaling": {"rope_type": "linear",
      "factor": 2.0, "rope_theta": 1e5, "partial_rotary_factor": 0.25})");
  EXPECT_EQ(PlaceOf("rope_theta", config, v1::COMPAT_LATEST), "/rope_scaling/rope_theta");
  EXPECT_EQ(PlaceOf("rope_theta", config, v1::COMPAT_V4_57), "/rope_theta");
  EXPECT_EQ(PlaceOf("rotary_dim", config, v1::COMPAT_LATEST),
            "/rope_scaling/partial_rotary_factor");
  for (v1::Compat compat : {v1::COMPAT_V4_57, v1::COMPAT_V5_16}) {
    EXPECT_EQ(PlaceOf("rotary_dim", config, compat), "/hidden_size");
  }
}

}  // namespace
}  // namespace posenc
