// check --base over real configs that somebody has edited: a fix pasted ends its difference, and
// each of the rules that can has one.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/apply_fix.h"
#include "client/cli/compare.h"
#include "client/cli/compare_fixes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "posenc/embedded_connection.h"
#include "tests/unit/model_config_testing.h"

namespace posenc::cli {
namespace {

using ::testing::IsSupersetOf;

// What is put into each config, and into its text_config.
constexpr const char* kEdits[] = {
    R"("rope_theta": 12345.0)",
    R"("rope_scaling": null, "rope_parameters": null)",
    R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0,
        "original_max_position_embeddings": 4096})",
    R"("head_dim": 48)",
    R"("num_attention_heads": 4, "n_head": 4)",
    R"("max_position_embeddings": 1000)",
    R"("partial_rotary_factor": 0.25, "rotary_pct": 0.125)",
    R"("sliding_window_pattern": 2, "no_rope_layers": null, "no_rope_layer_interval": 2)",
    R"("attn_scale": 0.25)",
    R"("relative_attention_num_buckets": 16)",
};
// What is put into the map of a scaling.
constexpr const char* kMapEdits[] = {
    R"("factor": 3.0)",
    R"("attention_factor": 1.5)",
    R"("mscale": 0.7)",
    R"("mrope_section": [20, 22, 22])",
    R"("llama_4_scaling_beta": 0.3)",
};

class BaseFixesTest : public ::testing::Test {
 protected:
  absl::StatusOr<ResolvedFile> Read(const std::string& config_json) {
    v1::ResolveModelConfigRequest request;
    request.mutable_model()->set_config_json(config_json);
    const auto response = client_.ResolveModelConfig(request);
    if (!response.ok()) return response.status();
    return ResolvedFile{config_json, *response};
  }

  std::vector<Difference> Compare(const ResolvedFile& base, const ResolvedFile& model) {
    auto differences = CompareWithBase(client_, base.response, model.response);
    EXPECT_TRUE(differences.ok()) << differences.status();
    const absl::Status offered = OfferFixes(
        client_, base, model,
        [&](const std::string& fixed) -> absl::StatusOr<v1::ResolveModelConfigResponse> {
          const auto file = Read(fixed);
          if (!file.ok()) return file.status();
          return file->response;
        },
        &*differences);
    EXPECT_TRUE(offered.ok()) << offered;
    return *differences;
  }

  // The rules with a fix, of the edited config against what it was.
  void TryFixes(const std::string& name, const ResolvedFile& base, const std::string& edited) {
    const auto model = Read(edited);
    if (!model.ok()) return;  // a contradiction
    for (const Difference& difference : Compare(base, *model)) {
      const v1::Finding& finding = difference.finding;
      if (finding.fix().empty()) continue;
      const std::string where =
          absl::StrCat(name, ": ", FindingOf(difference).message(), "\nfix in ",
                       finding.fix_pointer(), ": ", finding.fix());
      rules_.insert(finding.rule());
      const auto fixed = WithFix(edited, finding.fix_pointer(), finding.fix());
      ASSERT_TRUE(fixed.has_value()) << where;
      const auto after = Read(*fixed);
      ASSERT_TRUE(after.ok()) << where << after.status();
      for (const Difference& left : Compare(base, *after)) {
        EXPECT_FALSE(left.finding.rule() == finding.rule() && left.parts == difference.parts)
            << where << "\nleft: " << FindingOf(left).message();
      }
    }
  }

  Client client_{MakeEmbeddedConnection(EmbeddedOptions{.page_cache_bytes = 0})};
  std::set<std::string> rules_;
};

TEST_F(BaseFixesTest, EveryFixPastedEndsItsDifference) {
  for (const auto& entry :
       std::filesystem::directory_iterator(POSENC_TEST_DATA "/golden/configs")) {
    const std::string name = entry.path().filename();
    const auto base = Read(testing::ReadConfig(name));
    if (!base.ok()) continue;
    EXPECT_TRUE(Compare(*base, *base).empty()) << name;
    for (const char* at : {"", "/text_config"}) {
      for (const char* edit : kEdits) {
        if (const auto edited = WithFix(base->config_json, at, edit))
          TryFixes(name, *base, *edited);
      }
      for (const char* map : {"/rope_scaling", "/rope_parameters"}) {
        for (const char* edit : kMapEdits) {
          const auto edited = WithFix(base->config_json, absl::StrCat(at, map), edit);
          if (edited.has_value()) TryFixes(name, *base, *edited);
        }
      }
    }
  }
  const std::vector<std::string> with_fixes = {
      "base-attention-differs", "base-layers-differ",      "base-length-differs",
      "base-mrope-differs",     "base-rotary-dim-differs", "base-scaling-differs",
      "base-scheme-differs",    "base-spec-differs",       "base-theta-differs"};
  EXPECT_THAT(rules_, IsSupersetOf(with_fixes));
}

}  // namespace
}  // namespace posenc::cli
