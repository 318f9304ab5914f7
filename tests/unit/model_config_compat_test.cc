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
using ::posenc::testing::MessageOf;
using ::posenc::testing::ModelWith;
using ::posenc::testing::ReadConfig;
using ::posenc::testing::Refusal;
using ::posenc::testing::ResolvedAs;
using ::testing::HasSubstr;

std::string CompatMessage(absl::string_view config, v1::Compat compat) {
  return MessageOf("compat-differs", ResolvedAs(config, compat));
}

TEST(ModelConfigCompatTest, TypeBesideRopeType) {
  const std::string config = ModelWith(
      "llama", R"("rope_scaling": {"type": "linear", "rope_type": "dynamic", "factor": 2})");
  EXPECT_EQ(ResolvedAs(config, v1::COMPAT_V4_57).encodings(0).rope_type(), "linear");
  const auto v5 = ResolvedAs(config, v1::COMPAT_V5_16);
  EXPECT_EQ(v5.encodings(0).rope_type(), "dynamic");
  EXPECT_NE(FindingOf(v5, "compat-differs"), nullptr) << "the result names what differs";
  EXPECT_THAT(Refusal(config), HasSubstr("contradicts rope_type"));
}

TEST(ModelConfigCompatTest, PartialRotaryWithoutAScaling) {
  const std::string config = ModelWith("llama", R"("partial_rotary_factor": 0.5)");
  EXPECT_EQ(ResolvedAs(config, v1::COMPAT_V5_16).encodings(0).spec().rope().rotary_dim(), 128);
  EXPECT_EQ(ResolvedAs(config, v1::COMPAT_V4_57).encodings(0).spec().rope().rotary_dim(), 64);
  const auto latest = ResolvedAs(config, v1::COMPAT_LATEST);
  EXPECT_EQ(latest.encodings(0).spec().rope().rotary_dim(), 64);
  EXPECT_NE(FindingOf(latest, "compat-differs"), nullptr);
}

TEST(ModelConfigCompatTest, InnerAgainstOuterLength) {
  const std::string config = ModelWith(
      "llama", R"("original_max_position_embeddings": 2048, "rope_scaling": {"type": "yarn",
                  "factor": 2, "original_max_position_embeddings": 4096})");
  const auto original = [&](v1::Compat compat) {
    return ResolvedAs(config, compat)
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
    const auto response = ResolvedAs(config, compat);
    EXPECT_EQ(response.encodings(0).spec().rope().longrope().original_max_position_embeddings(),
              length);
    EXPECT_NE(FindingOf(response, "compat-differs"), nullptr);
  }
}

// 4.57: hasattr(config, "original_max_position_embeddings"), else max_position_embeddings.
TEST(ModelConfigCompatTest, Transformers4ReadALengthThatOnlyTheMapHas) {
  const std::string list = absl::StrCat("[", absl::StrJoin(std::vector<int>(64, 1), ","), "]");
  const auto config = [&](const char* type, const char* more) {
    return ModelWith(type, absl::StrCat(R"("rope_scaling": {"type": "longrope",
        "original_max_position_embeddings": 2048, "short_factor": )",
                                        list, R"(, "long_factor": )", list, more, "}"));
  };
  const auto longrope = [](const v1::ResolveModelConfigResponse& response) {
    return response.encodings(0).spec().rope().longrope();
  };
  const std::string llama = config("llama", R"(, "factor": 4.0)");
  const auto v4 = ResolvedAs(llama, v1::COMPAT_V4_57);
  EXPECT_EQ(longrope(v4).original_max_position_embeddings(), 8192);
  EXPECT_EQ(longrope(v4).factor(), 4);
  EXPECT_THAT(CompatMessage(llama, v1::COMPAT_V4_57), HasSubstr("takes 8192 without it, as here"));
  for (v1::Compat compat : {v1::COMPAT_LATEST, v1::COMPAT_V5_16}) {
    EXPECT_EQ(longrope(ResolvedAs(llama, compat)).original_max_position_embeddings(), 2048);
    EXPECT_THAT(CompatMessage(llama, compat), HasSubstr("transformers 5 uses this one, as here"));
  }
  // Phi-3's class has one of its own, and the ratio to it is the factor.
  const auto phi3 = ResolvedAs(config("phi3", R"(, "factor": 4.0)"), v1::COMPAT_V4_57);
  EXPECT_EQ(longrope(phi3).original_max_position_embeddings(), 4096);
  EXPECT_EQ(longrope(phi3).factor(), 2);
  // None < 1 is a TypeError.
  v1::ModelSource model;
  model.set_config_json(config("llama", ""));
  model.set_compat(v1::COMPAT_V4_57);
  EXPECT_THAT(std::string(ResolveModelConfig(model).status().message()),
              HasSubstr("config_json/rope_scaling/factor: is required: transformers 4 fails"));
  EXPECT_EQ(longrope(ResolvedAs(config("llama", ""), v1::COMPAT_LATEST)).factor(), 4);
}

TEST(ModelConfigCompatTest, Transformers4SawALengthBesideAYarn) {
  const std::string config = ModelWith("llama", R"("original_max_position_embeddings": 2048,
      "rope_scaling": {"type": "yarn", "factor": 4.0})");
  for (const auto& [compat, length] :
       {std::pair{v1::COMPAT_LATEST, 2048}, {v1::COMPAT_V4_57, 8192}, {v1::COMPAT_V5_16, 2048}}) {
    const auto response = ResolvedAs(config, compat);
    EXPECT_EQ(response.encodings(0).spec().rope().yarn().original_max_position_embeddings(),
              length);
    EXPECT_NE(FindingOf(response, "compat-differs"), nullptr);
  }
}

TEST(ModelConfigCompatTest, DefaultsThatChanged) {
  const std::string config = ModelWith("cohere", "");
  EXPECT_EQ(ResolvedAs(config, v1::COMPAT_LATEST).encodings(0).spec().rope().rope_theta(), 5e5);
  EXPECT_EQ(ResolvedAs(config, v1::COMPAT_V4_57).encodings(0).spec().rope().rope_theta(), 1e4);
  EXPECT_NE(FindingOf(ResolvedAs(config, v1::COMPAT_LATEST), "compat-differs"), nullptr);
}

TEST(ModelConfigCompatTest, TheSoftmaxPartOfDeepseekV2) {
  // transformers 4.57 has no mscale in that class.
  const std::string config = ReadConfig("DeepSeek-V2-Lite.json");
  EXPECT_EQ(ResolvedAs(config, v1::COMPAT_V4_57).encodings(0).softmax_scale_multiplier(), 1);
  EXPECT_GT(ResolvedAs(config, v1::COMPAT_LATEST).encodings(0).softmax_scale_multiplier(), 1.5);
}

// How much of a head turns, of the families whose class has a default of it -------------------

int64_t RotaryDimOf(absl::string_view config, v1::Compat compat) {
  return ResolvedAs(config, compat).encodings(0).spec().rope().rotary_dim();
}

// configuration_glm4.py of 5.16 sets 0.5 as if it stood beside the map, and what stands there
// overwrites the map when a scaled type is standardized again (hf-rope.md 4.3).
TEST(ModelConfigCompatTest, AClassDefaultBeatsTheMapOfAScaledType) {
  for (const char* type : {"glm", "glm4", "glm4_moe", "phi", "nemotron", "persimmon"}) {
    const auto config = [&](const char* rope_type) {
      return ModelWith(type, absl::StrCat(R"("rope_parameters": {"rope_type": ")", rope_type,
                                          R"(", "rope_theta": 10000.0, "factor": 2.0,
                                              "partial_rotary_factor": 0.25})"));
    };
    EXPECT_EQ(RotaryDimOf(config("linear"), v1::COMPAT_LATEST), 32) << type;
    EXPECT_EQ(RotaryDimOf(config("linear"), v1::COMPAT_V5_16), 64) << type;
    EXPECT_EQ(RotaryDimOf(config("linear"), v1::COMPAT_V4_57), 64) << type << ": no such key";
    EXPECT_EQ(RotaryDimOf(config("default"), v1::COMPAT_V5_16), 32) << type;
    EXPECT_THAT(CompatMessage(config("linear"), v1::COMPAT_V5_16),
                HasSubstr("4 and 5.16 take the class's default, 0.5, whatever the map says, as "
                          "here."))
        << type;
  }
  // Its class passes rotary_pct, and that default, to the map alone.
  EXPECT_EQ(RotaryDimOf(ModelWith("gpt_neox", R"("rope_parameters": {"rope_type": "linear",
                            "factor": 2.0, "partial_rotary_factor": 0.5})"),
                        v1::COMPAT_V5_16),
            64);
}

TEST(ModelConfigCompatTest, WithoutAFactorTheClassDefaultHoldsInEveryVersion) {
  for (v1::Compat compat : {v1::COMPAT_LATEST, v1::COMPAT_V4_57, v1::COMPAT_V5_16}) {
    for (const char* type : {"glm", "glm4", "glm4_moe", "glm4v_moe_text", "phi"}) {
      EXPECT_EQ(RotaryDimOf(ModelWith(type, ""), compat), 64) << type;
    }
    EXPECT_EQ(RotaryDimOf(R"({"model_type": "moonshine_streaming", "hidden_size": 320,
                              "num_attention_heads": 8})",
                          compat),
              32)
        << "0.8 of 40, in the map that its class makes";
  }
}

// No version of their classes has a default: the sections of a whole head are another list.
TEST(ModelConfigCompatTest, AGlmThatSeesWasGivenHalfOfAHead) {
  EXPECT_THAT(Refusal(ModelWith("glm4v_text", "")), HasSubstr("does not sum to the 64"));
  const std::string ocr = ModelWith(
      "glm_ocr_text", R"("rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                         "mrope_section": [16, 24, 24]})");
  EXPECT_EQ(RotaryDimOf(ocr, v1::COMPAT_LATEST), 128);
}

TEST(ModelConfigCompatTest, Transformers4ReadAPartInsideTheMap) {
  const std::string config = ModelWith("llama", R"("rope_scaling": {"rope_type": "linear",
      "factor": 2.0, "partial_rotary_factor": 0.5})");
  EXPECT_EQ(RotaryDimOf(config, v1::COMPAT_LATEST), 64);
  EXPECT_EQ(RotaryDimOf(config, v1::COMPAT_V5_16), 64);
  EXPECT_EQ(RotaryDimOf(config, v1::COMPAT_V4_57), 128);
  EXPECT_THAT(CompatMessage(config, v1::COMPAT_V4_57),
              HasSubstr("transformers 4 takes the class's default, 1, whatever"));
}

// MiniMaxM2Config of 5.16 has no such field (#48241); earlier and later ones make the factor of it.
TEST(ModelConfigCompatTest, Transformers5ReadTheWidthOfMiniMaxM2) {
  const std::string config = ModelWith("minimax_m2", R"("head_dim": 128, "rotary_dim": 64)");
  EXPECT_EQ(RotaryDimOf(config, v1::COMPAT_V5_16), 128);
  EXPECT_THAT(CompatMessage(config, v1::COMPAT_V5_16), HasSubstr("the whole head, as here;"));
  EXPECT_EQ(RotaryDimOf(config, v1::COMPAT_LATEST), 64);
  EXPECT_THAT(CompatMessage(config, v1::COMPAT_LATEST), HasSubstr("read it, as here."));
  const std::string both =
      ModelWith("minimax_m2", R"("head_dim": 128, "rotary_dim": 64, "partial_rotary_factor": 0.5)");
  EXPECT_EQ(RotaryDimOf(both, v1::COMPAT_V5_16), 64);
  EXPECT_EQ(CompatMessage(both, v1::COMPAT_LATEST), "");
}

// What a finding says was done is what was done, in every mode ------------------------------

TEST(ModelConfigCompatTest, AnOldDefaultWasUsedAndTheNewOneNamed) {
  for (const auto& [type, old, now] :
       {std::tuple{"cohere", "10000", "500000"}, {"qwen3_vl_text", "5000000", "500000"}}) {
    const std::string config = ModelWith(type, "");
    const auto v4 = ResolvedAs(config, v1::COMPAT_V4_57);
    EXPECT_EQ(
        MessageOf("theta-defaulted", v4),
        absl::StrCat(
            "The base (rope_theta) is not given; the default of the family in transformers 4, ",
            old, ", is used."));
    EXPECT_EQ(FindingOf(v4, "theta-defaulted")->fix(), "") << "a default is a guess";
    EXPECT_EQ(MessageOf("theta-defaulted", ResolvedAs(config, v1::COMPAT_LATEST)),
              absl::StrCat("The base (rope_theta) is not given; the default of the family, ", now,
                           ", is used."));
  }
}

TEST(ModelConfigCompatTest, APartThatWasNotHonouredWasSaidToBe) {
  const std::string config = ModelWith("llama", R"("partial_rotary_factor": 0.5)");
  EXPECT_THAT(MessageOf("compat-differs", ResolvedAs(config, v1::COMPAT_V5_16)),
              HasSubstr("the whole head, as here; transformers 4 honours it."));
  EXPECT_THAT(MessageOf("compat-differs", ResolvedAs(config, v1::COMPAT_V4_57)),
              HasSubstr("transformers 4 honours it, as here."));
}

TEST(ModelConfigCompatTest, ThePartThatWasNotUsedWasSaidToBe) {
  const auto said = [](const char* type, v1::Compat compat) {
    const auto response = ResolvedAs(
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
  EXPECT_THAT(MessageOf("compat-differs", ResolvedAs(config, v1::COMPAT_V4_57)),
              HasSubstr("transformers 4 leaves that out in this family, as here."));
  EXPECT_THAT(MessageOf("compat-differs", ResolvedAs(config, v1::COMPAT_LATEST)),
              HasSubstr("as here and in transformers 5"));
}

TEST(ModelConfigCompatTest, AFactorThatWasNotUsedWasSaidToBe) {
  const std::string list = absl::StrCat("[", absl::StrJoin(std::vector<int>(64, 1), ","), "]");
  const std::string config = ModelWith(
      "phi3", absl::StrCat(R"("original_max_position_embeddings": 256, "rope_scaling": {"type":
                  "longrope", "factor": 16.0, "short_factor": )",
                           list, R"(, "long_factor": )", list, "}"));
  const auto v4 = ResolvedAs(config, v1::COMPAT_V4_57);
  EXPECT_EQ(v4.encodings(0).spec().rope().longrope().factor(), 32);
  EXPECT_THAT(MessageOf("factor-mismatch", v4), HasSubstr("is 32; the ratio is used"));
  const auto latest = ResolvedAs(config, v1::COMPAT_LATEST);
  EXPECT_EQ(latest.encodings(0).spec().rope().longrope().factor(), 16);
  EXPECT_THAT(MessageOf("factor-mismatch", latest), HasSubstr("is 32; factor is used"));
}

}  // namespace
}  // namespace posenc
