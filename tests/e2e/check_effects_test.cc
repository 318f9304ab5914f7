// What a difference from the base does, in numbers: each test is named after what had none.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/check_run.h"

namespace posenc::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What check says of `model` against `base`.
std::string Difference(const std::string& model, const std::string& base) {
  const CheckResult result =
      Check({Write("model.json", model), "--base", Write("base.json", base)});
  EXPECT_EQ(result.exit_code, 1) << result.out << result.errors;
  return result.out;
}

std::string Llama(const std::string& more) {
  return absl::StrCat(R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 4,
 "max_position_embeddings": 32768, )",
                      more, "}");
}

// The ladder of 16 frequencies an axis: 100^(15/16) is the largest ratio.
TEST(CheckEffectsTest, TheBaseOfAVisionTower) {
  const auto dinov3 = [](const char* theta) {
    return absl::StrCat(R"({"model_type": "dinov3_vit", "hidden_size": 384,
 "num_attention_heads": 6, "rope_theta": )",
                        theta, "}");
  };
  EXPECT_THAT(Difference(dinov3("10000.0"), dinov3("100.0")),
              AllOf(HasSubstr("model.json:2:42: error: "),
                    HasSubstr("rope_theta 10000 (base 100); 30 of 32 frequencies differ, from pair "
                              "1, by up to 75x [")));
}

// Of the 24 patches of two rows four stand where they stood.
TEST(CheckEffectsTest, TheMergeSizeOfAVisionTower) {
  const auto qwen = [](const char* merge) {
    return absl::StrCat(R"({"model_type": "qwen2_vl", "hidden_size": 512,
 "num_attention_heads": 4, "rope_theta": 1e6, "rope_scaling": {"mrope_section": [16, 24, 24]},
 "vision_config": {"model_type": "qwen2_vl", "embed_dim": 1280, "num_heads": 16,
 "spatial_merge_size": )",
                        merge, "}}");
  };
  EXPECT_THAT(Difference(qwen("1"), qwen("2")),
              AllOf(HasSubstr("model.json:4:24: error: vision/all: merge_size"),
                    HasSubstr("120 of the 144 rows of a 12x12 grid differ")));
}

TEST(CheckEffectsTest, TheDistanceAndTheBucketsOfT5) {
  const auto t5 = [](int buckets, int distance) {
    return absl::StrCat(R"({"model_type": "t5", "d_model": 512, "num_heads": 8,
 "relative_attention_num_buckets": )",
                        buckets, R"(, "relative_attention_max_distance": )", distance, "}");
  };
  EXPECT_THAT(Difference(t5(32, 256), t5(32, 128)),
              AllOf(HasSubstr("encoder/all: max_distance 256 (base 128); 146 of 256 distances have "
                              "another bucket, from distance 12"),
                    HasSubstr("decoder/all: max_distance 256 (base 128); 195 of 256 distances have "
                              "another bucket, from distance 19")));
  EXPECT_THAT(Difference(t5(64, 128), t5(32, 128)),
              AllOf(HasSubstr("encoder/all: num_buckets 64 (base 32); 119 of 128 distances have "
                              "another bucket, from distance 9"),
                    HasSubstr("decoder/all: num_buckets 64 (base 32); 111 of 128 distances have "
                              "another bucket, from distance 17")));
}

// t is longer by 8 frequencies, h by 4 less: pairs 16 to 23 and 40 to 43, two channels each.
TEST(CheckEffectsTest, TheSectionsOfMrope) {
  const auto qwen = [](const char* sections) {
    return absl::StrCat(R"({"model_type": "qwen2_vl", "hidden_size": 512,
 "num_attention_heads": 4, "rope_theta": 1e6, "rope_scaling": {"mrope_section": )",
                        sections, "}}");
  };
  EXPECT_THAT(Difference(qwen("[24, 20, 20]"), qwen("[16, 24, 24]")),
              AllOf(HasSubstr("24 of 128 channels turn by another axis, from channel 16"),
                    HasSubstr("[base-mrope-differs]")));
}

// Short sequences are as before; the long list is not what DescribeTable has by default.
TEST(CheckEffectsTest, TheLongListOfALongRope) {
  const auto longrope = [](int last) {
    std::vector<int> factors(64, 2);
    const std::string ones = absl::StrJoin(std::vector<int>(64, 1), ",");
    factors.back() = last;
    return Llama(absl::StrCat(R"("rope_theta": 1e4, "rope_scaling": {"type": "longrope",
 "original_max_position_embeddings": 4096, "factor": 8.0, "short_factor": [)",
                              ones, R"(],
 "long_factor": [)",
                              absl::StrJoin(factors, ","), "]}"));
  };
  EXPECT_THAT(Difference(longrope(8), longrope(2)),
              AllOf(HasSubstr("model.json:4:17: error: "),
                    HasSubstr("long_factor differs; at 4097 positions 1 of 64 frequencies differ, "
                              "from pair 63, by up to 4x")));
}

// At twice the length the base is multiplied by 3^(d/(d-2)) or 5^(d/(d-2)): 5/3 in the last pair.
TEST(CheckEffectsTest, TheFactorOfADynamicScaling) {
  const auto dynamic = [](const char* factor) {
    return Llama(absl::StrCat(R"("rope_theta": 1e4,
 "rope_scaling": {"type": "dynamic", "factor": )",
                              factor, "}"));
  };
  EXPECT_THAT(Difference(dynamic("4.0"), dynamic("2.0")),
              AllOf(HasSubstr("model.json:3:48: error: "),
                    HasSubstr("factor 4 (base 2); at 65536 positions 63 of 64 frequencies differ, "
                              "from pair 1, by up to 1.67x")));
}

// Its base would leave float32 at twice the length: that is no reason to end the check.
TEST(CheckEffectsTest, ALengthThatASpecRefuses) {
  const auto dynamic = [](const char* factor) {
    return Llama(absl::StrCat(R"("rope_theta": 1.5e38, "rope_scaling": {"type": "dynamic",
 "factor": )",
                              factor, "}"));
  };
  EXPECT_THAT(Difference(dynamic("4.0"), dynamic("2.0")),
              HasSubstr("text/all: factor 4 (base 2) [base-scaling-differs]"));
}

// A loop over distances would not end.
TEST(CheckEffectsTest, ADistanceAsLargeAsAFileCanHave) {
  const auto t5 = [](const char* distance) {
    return absl::StrCat(R"({"model_type": "t5", "d_model": 512, "num_heads": 8,
 "relative_attention_max_distance": )",
                        distance, "}");
  };
  EXPECT_THAT(Difference(t5("2147483647"), t5("128")),
              HasSubstr(" of 2147483647 distances have another bucket, from distance "));
}

TEST(CheckEffectsTest, ARatioThatIsNearlyOne) {
  EXPECT_THAT(Difference(Llama(R"("rope_theta": 10000.01)"), Llama(R"("rope_theta": 10000.0)")),
              HasSubstr("62 of 64 frequencies differ, from pair 1, by up to 1.00000098x"));
}

// A refusal is a finding like the others: with what is there, and what ought to be.
TEST(CheckEffectsTest, ARefusalOfTheSpecHasNeitherPlaceNorValue) {
  const std::string model = Write("refused.json", Llama(R"("rope_theta": 1e4,
 "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": -1.0,
                  "original_max_position_embeddings": 8192})"));
  const std::string out = Check({model, "--format", "json"}).out;
  EXPECT_THAT(out,
              AllOf(HasSubstr("\"rule\": \"config-refused\""),
                    HasSubstr("\"pointer\": \"/rope_scaling/beta_fast\""), HasSubstr("\"line\": 3"),
                    HasSubstr("\"column\": 68"), HasSubstr("\"found\": \"-1.0\""),
                    HasSubstr("\"expected\": \"positive and within the range of float32\"")));
  const std::string two = Write("two.json", Llama(R"("rope_theta": 1e4, "rope_base": 5e5)"));
  EXPECT_THAT(Check({two, "--format", "json"}).out,
              AllOf(HasSubstr("\"pointer\": \"/rope_base\""), HasSubstr("\"found\": \"5e5\""),
                    HasSubstr("\"expected\": \"1e4\"")));
}

TEST(CheckEffectsTest, CompatReachesModelAndBase) {
  const std::string model = Write("cohere.json", R"({"model_type": "cohere", "hidden_size": 512,
 "num_attention_heads": 4})");
  const std::string base = Write("explicit.json", R"({"model_type": "cohere", "hidden_size": 512,
 "num_attention_heads": 4, "rope_theta": 10000.0})");
  EXPECT_EQ(Check({model, "--base", base}).exit_code, 1) << "transformers 5 takes 500000";
  EXPECT_EQ(Check({model, "--base", base, "--compat", "4.57"}).exit_code, 0);
}

}  // namespace
}  // namespace posenc::testing
