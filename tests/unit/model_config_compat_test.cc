// What versions of transformers read differently: the values of each compat mode, and that the
// findings say what was done in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "lib/model_config/resolve.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

using ::posenc::testing::FindingOf;
using ::posenc::testing::ModelWith;
using ::posenc::testing::ReadConfig;
using ::posenc::testing::Refusal;
using ::testing::HasSubstr;

v1::ResolveModelConfigResponse ResolveWith(absl::string_view config, v1::Compat compat) {
  v1::ModelSource model;
  model.set_config_json(std::string(config));
  model.set_compat(compat);
  const auto response = ResolveModelConfig(model);
  EXPECT_TRUE(response.ok()) << response.status();
  return response.ok() ? *response : v1::ResolveModelConfigResponse();
}

TEST(ModelConfigCompatTest, TypeBesideRopeType) {
  const std::string config = ModelWith(
      "llama", R"("rope_scaling": {"type": "linear", "rope_type": "dynamic", "factor": 2})");
  EXPECT_EQ(ResolveWith(config, v1::COMPAT_V4_57).encodings(0).rope_type(), "linear");
  const auto v5 = ResolveWith(config, v1::COMPAT_V5_16);
  EXPECT_EQ(v5.encodings(0).rope_type(), "dynamic");
  EXPECT_NE(FindingOf(v5, "compat-differs"), nullptr) << "the result names what differs";
  EXPECT_THAT(Refusal(config), HasSubstr("contradicts rope_type"));
}

TEST(ModelConfigCompatTest, PartialRotaryWithoutAScaling) {
  const std::string config = ModelWith("llama", R"("partial_rotary_factor": 0.5)");
  EXPECT_EQ(ResolveWith(config, v1::COMPAT_V5_16).encodings(0).spec().rope().rotary_dim(), 128);
  EXPECT_EQ(ResolveWith(config, v1::COMPAT_V4_57).encodings(0).spec().rope().rotary_dim(), 64);
  const auto latest = ResolveWith(config, v1::COMPAT_LATEST);
  EXPECT_EQ(latest.encodings(0).spec().rope().rotary_dim(), 64);
  EXPECT_NE(FindingOf(latest, "compat-differs"), nullptr);
}

TEST(ModelConfigCompatTest, InnerAgainstOuterLength) {
  const std::string config = ModelWith(
      "llama", R"("original_max_position_embeddings": 2048, "rope_scaling": {"type": "yarn",
                  "factor": 2, "original_max_position_embeddings": 4096})");
  const auto original = [&](v1::Compat compat) {
    return ResolveWith(config, compat)
        .encodings(0)
        .spec()
        .rope()
        .yarn()
        .original_max_position_embeddings();
  };
  EXPECT_EQ(original(v1::COMPAT_LATEST), 4096);
  EXPECT_EQ(original(v1::COMPAT_V5_16), 2048);
}

TEST(ModelConfigCompatTest, Transformers4ReadTheLengthOfALongRopeInsideTheMap) {
  const std::string list = absl::StrCat("[", absl::StrJoin(std::vector<int>(64, 1), ","), "]");
  const std::string config = ModelWith(
      "phi3", absl::StrCat(R"("original_max_position_embeddings": 4096, "rope_scaling": {"type":
                  "longrope", "original_max_position_embeddings": 2048, "short_factor": )",
                           list, R"(, "long_factor": )", list, "}"));
  for (const auto& [compat, length] :
       {std::pair{v1::COMPAT_LATEST, 2048}, {v1::COMPAT_V4_57, 4096}, {v1::COMPAT_V5_16, 4096}}) {
    const auto response = ResolveWith(config, compat);
    EXPECT_EQ(response.encodings(0).spec().rope().longrope().original_max_position_embeddings(),
              length);
    EXPECT_NE(FindingOf(response, "compat-differs"), nullptr);
  }
}

TEST(ModelConfigCompatTest, Transformers4SawALengthBesideAYarn) {
  const std::string config = ModelWith("llama", R"("original_max_position_embeddings": 2048,
      "rope_scaling": {"type": "yarn", "factor": 4.0})");
  for (const auto& [compat, length] :
       {std::pair{v1::COMPAT_LATEST, 2048}, {v1::COMPAT_V4_57, 8192}, {v1::COMPAT_V5_16, 2048}}) {
    const auto response = ResolveWith(config, compat);
    EXPECT_EQ(response.encodings(0).spec().rope().yarn().original_max_position_embeddings(),
              length);
    EXPECT_NE(FindingOf(response, "compat-differs"), nullptr);
  }
}

TEST(ModelConfigCompatTest, DefaultsThatChanged) {
  const std::string config = ModelWith("cohere", "");
  EXPECT_EQ(ResolveWith(config, v1::COMPAT_LATEST).encodings(0).spec().rope().rope_theta(), 5e5);
  EXPECT_EQ(ResolveWith(config, v1::COMPAT_V4_57).encodings(0).spec().rope().rope_theta(), 1e4);
  EXPECT_NE(FindingOf(ResolveWith(config, v1::COMPAT_LATEST), "compat-differs"), nullptr);
}

TEST(ModelConfigCompatTest, TheSoftmaxPartOfDeepseekV2) {
  // transformers 4.57 has no mscale in that class.
  const std::string config = ReadConfig("DeepSeek-V2-Lite.json");
  EXPECT_EQ(ResolveWith(config, v1::COMPAT_V4_57).encodings(0).softmax_scale_multiplier(), 1);
  EXPECT_GT(ResolveWith(config, v1::COMPAT_LATEST).encodings(0).softmax_scale_multiplier(), 1.5);
}

// What a finding says was done is what was done, in every mode ------------------------------

std::string MessageOf(absl::string_view rule, const v1::ResolveModelConfigResponse& response) {
  const v1::Finding* finding = FindingOf(response, rule);
  return finding == nullptr ? "" : finding->message();
}

TEST(ModelConfigCompatTest, AnOldDefaultWasUsedAndTheNewOneNamed) {
  for (const auto& [type, old, now] :
       {std::tuple{"cohere", "10000", "500000"}, {"qwen3_vl_text", "5000000", "500000"}}) {
    const std::string config = ModelWith(type, "");
    const auto v4 = ResolveWith(config, v1::COMPAT_V4_57);
    EXPECT_EQ(
        MessageOf("theta-defaulted", v4),
        absl::StrCat(
            "The base (rope_theta) is not given; the default of the family in transformers 4, ",
            old, ", is used."));
    EXPECT_EQ(FindingOf(v4, "theta-defaulted")->fix(), absl::StrCat("\"rope_theta\": ", old));
    EXPECT_EQ(MessageOf("theta-defaulted", ResolveWith(config, v1::COMPAT_LATEST)),
              absl::StrCat("The base (rope_theta) is not given; the default of the family, ", now,
                           ", is used."));
  }
}

TEST(ModelConfigCompatTest, APartThatWasNotHonouredWasSaidToBe) {
  const std::string config = ModelWith("llama", R"("partial_rotary_factor": 0.5)");
  EXPECT_THAT(MessageOf("compat-differs", ResolveWith(config, v1::COMPAT_V5_16)),
              HasSubstr("the whole head, as here; transformers 4 honours it."));
  EXPECT_THAT(MessageOf("compat-differs", ResolveWith(config, v1::COMPAT_V4_57)),
              HasSubstr("transformers 4 honours it, as here."));
}

TEST(ModelConfigCompatTest, ThePartThatWasNotUsedWasSaidToBe) {
  const auto said = [](const char* type, v1::Compat compat) {
    const auto response = ResolveWith(
        ModelWith("llama", absl::StrCat(R"("partial_rotary_factor": 0.5, "rope_parameters":
            {"rope_type": ")",
                                        type, R"(", "factor": 2, "rope_theta": 1e4,
             "partial_rotary_factor": 0.25})")),
        compat);
    const std::string message = MessageOf("partial-mismatch", response);
    return absl::StrCat(response.encodings(0).spec().rope().rotary_dim(), " ",
                        message.substr(message.find("; ") + 2).substr(0, 11));
  };
  EXPECT_EQ(said("linear", v1::COMPAT_LATEST), "32 the latter ");
  EXPECT_EQ(said("linear", v1::COMPAT_V5_16), "64 the former ");
  EXPECT_EQ(said("default", v1::COMPAT_LATEST), "32 the latter ");
  EXPECT_EQ(said("default", v1::COMPAT_V5_16), "128 neither is ");
}

TEST(ModelConfigCompatTest, ASoftmaxPartThatWasLeftOutWasSaidToBeThere) {
  const std::string config = ReadConfig("DeepSeek-V2-Lite.json");
  EXPECT_THAT(MessageOf("compat-differs", ResolveWith(config, v1::COMPAT_V4_57)),
              HasSubstr("transformers 4 leaves that out in this family, as here."));
  EXPECT_THAT(MessageOf("compat-differs", ResolveWith(config, v1::COMPAT_LATEST)),
              HasSubstr("as here and in transformers 5"));
}

TEST(ModelConfigCompatTest, AFactorThatWasNotUsedWasSaidToBe) {
  const std::string list = absl::StrCat("[", absl::StrJoin(std::vector<int>(64, 1), ","), "]");
  const std::string config = ModelWith(
      "phi3", absl::StrCat(R"("original_max_position_embeddings": 256, "rope_scaling": {"type":
                  "longrope", "factor": 16.0, "short_factor": )",
                           list, R"(, "long_factor": )", list, "}"));
  const auto v4 = ResolveWith(config, v1::COMPAT_V4_57);
  EXPECT_EQ(v4.encodings(0).spec().rope().longrope().factor(), 32);
  EXPECT_THAT(MessageOf("factor-mismatch", v4), HasSubstr("is 32; the ratio is used"));
  const auto latest = ResolveWith(config, v1::COMPAT_LATEST);
  EXPECT_EQ(latest.encodings(0).spec().rope().longrope().factor(), 16);
  EXPECT_THAT(MessageOf("factor-mismatch", latest), HasSubstr("is 32; factor is used"));
}

}  // namespace
}  // namespace posenc
