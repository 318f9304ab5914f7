// Every fix that a finding offers, pasted: it has to end the finding, and start nothing worse.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/apply_fix.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/model_config/findings.h"
#include "lib/model_config/resolve.h"
#include "tests/unit/model_config_testing.h"

namespace posenc::cli {
namespace {

using ::posenc::testing::ModelWith;
using ::posenc::testing::ReadConfig;
using ::testing::IsSupersetOf;

std::string Ones(int count) {
  return absl::StrCat("[", absl::StrJoin(std::vector<int>(static_cast<size_t>(count), 1), ","),
                      "]");
}

// What no real config has: a file for each rule that offers a fix.
std::vector<std::string> OddConfigs() {
  const std::string lists =
      absl::StrCat(R"("short_factor": )", Ones(64), R"(, "long_factor": )", Ones(64));
  const std::string yarn = R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0)";
  const std::string length = R"(, "original_max_position_embeddings": 2048)";
  return {
      ModelWith("llama", yarn + length + R"(, "attention_factor": 2})"),
      ModelWith("llama", yarn + length + R"(, "attention_factor": 2.0, "attn_factor": 0.5})"),
      ModelWith("llama", yarn + length + R"(, "attn_factor": 0.5})"),
      ModelWith("llama", yarn + length + R"(, "beta_fast": 1, "beta_slow": 32})"),
      ModelWith("llama", yarn + length + R"(, "beta_slow": 64})"),
      ModelWith("llama", yarn + "}"),
      ModelWith("llama", yarn + R"(}, "original_max_position_embeddings": 2048)"),
      ModelWith("llama", yarn + length + R"(}, "original_max_position_embeddings": 4096)"),
      ModelWith("llama", R"("rope_scaling": {"rope_type": "yarn", "factor": null)" + length + "}"),
      ModelWith("llama", R"("rope_scaling": {"type": "linear", "rope_type": "dynamic",
                            "factor": 2.0})"),
      ModelWith("llama",
                absl::StrCat(R"("rope_scaling": {"type": "longrope")", length, ", ", lists, "}")),
      ModelWith("llama", absl::StrCat(R"("rope_scaling": {"type": "longrope", "factor": 2.0, )",
                                      lists, "}")),
      ModelWith("llama",
                absl::StrCat(R"("rope_scaling": {"type": "longrope", "factor": 4.0, )", lists,
                             length, R"(}, "original_max_position_embeddings": 4096)")),
      ModelWith("phi3", absl::StrCat(R"("rope_scaling": {"type": "longrope", )", lists,
                                     R"(}, "original_max_position_embeddings": 4096)")),
      ModelWith("stablelm", R"("rope_theta": 1e4, "partial_rotary_factor": 0.5,
                   "rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.25})"),
      ModelWith("bamba", R"("partial_rotary_factor": 0.25, "rope_theta": 1e4,
                            "num_hidden_layers": 2, "attn_layer_indices": [0])"),
      ModelWith("llama", R"("rope_parameters": {"rope_type": "proportional", "rope_theta": 1e4})"),
      ModelWith("llama", R"("rope_theta": null)"),
      ModelWith("cohere", ""),
      ModelWith("dbrx", ""),
      ModelWith("dbrx", R"("attn_config": {"clip_qkv": 8})"),
      ModelWith("llama", R"("rope_theta": 1e4, "rope_parameters": {"rope_theta": 5e5})"),
      ModelWith("llama", R"("rotary_base": 1e4, "rope_parameters": {"rope_theta": 5e5})"),
      ModelWith("llama", R"("rope_parameters": {"rope_theta": 5e5, "rope_type": "linear",
                            "factor": 2.0})"),
      ModelWith("gpt_neox", R"("rope_parameters": {"rope_theta": 5e5})"),
      ModelWith("llama", R"("rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters":
                            {"rope_theta": 5e5, "rope_type": "default"})"),
      ModelWith("gemma3_text", R"("num_hidden_layers": 6, "rope_parameters": {
                   "full_attention": {"rope_type": "default", "rope_theta": 2e6},
                   "sliding_attention": {"rope_type": "default", "rope_theta": 2e4}})"),
      ModelWith("llama", R"("num_hidden_layers": 2,
                   "layer_types": ["full_attention", "sliding_attention"], "rope_parameters": {
                   "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 2e6},
                   "sliding_attention": {"rope_type": "default", "rope_theta": 2e4}})"),
      ModelWith("modernbert", R"("num_hidden_layers": 6, "rope_parameters": {
                   "full_attention": {"rope_type": "default", "rope_theta": 2e6},
                   "sliding_attention": {"rope_type": "default", "rope_theta": 2e4}})"),
      R"({"model_type": "llava", "text_config": {"model_type": "llama"}})",
      R"({"model_type": "roberta", "hidden_size": 8, "num_attention_heads": 2,
          "max_position_embeddings": 512})",
      R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
          "num_hidden_layers": 32, "max_position_embeddings": 131072, "rope_theta": 5e5})",
      R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
          "num_hidden_layers": 32, "max_position_embeddings": 131072,
          "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}})",
  };
}

std::vector<std::pair<std::string, std::string>> AllConfigs() {
  std::vector<std::pair<std::string, std::string>> configs;
  for (const auto& entry :
       std::filesystem::directory_iterator(POSENC_TEST_DATA "/golden/configs")) {
    const std::string name = entry.path().filename();
    configs.emplace_back(name, ReadConfig(name));
  }
  for (const std::string& config : OddConfigs()) configs.emplace_back(config, config);
  return configs;
}

absl::StatusOr<v1::ResolveModelConfigResponse> Resolve(const std::string& config,
                                                       v1::Compat compat) {
  v1::ModelSource model;
  model.set_config_json(config);
  model.set_compat(compat);
  return ResolveModelConfig(model);
}

bool HasFinding(const v1::ResolveModelConfigResponse& response, const v1::Finding& wanted) {
  return std::any_of(
      response.findings().begin(), response.findings().end(), [&](const v1::Finding& finding) {
        return finding.rule() == wanted.rule() && finding.pointer() == wanted.pointer();
      });
}

// The rules of its warnings and errors.
std::set<std::string> Rules(const v1::ResolveModelConfigResponse& response) {
  std::set<std::string> rules;
  for (const v1::Finding& finding : response.findings()) {
    if (finding.severity() > v1::SEVERITY_NOTE) rules.insert(finding.rule());
  }
  // A scaling in a map of the new form is read by the same readers as the base there.
  if (rules.count("theta-only-new-form") > 0) rules.insert("scaling-only-new-form");
  return rules;
}

TEST(FixesTest, EveryFixPastedEndsItsFindingAndStartsNoOther) {
  std::set<std::string> rules;
  int fixes = 0;
  for (const auto& [name, config] : AllConfigs()) {
    for (const v1::Compat compat : {v1::COMPAT_LATEST, v1::COMPAT_V5_16, v1::COMPAT_V4_57}) {
      const auto before = Resolve(config, compat);
      if (!before.ok()) continue;
      for (const v1::Finding& finding : before->findings()) {
        if (finding.fix().empty()) continue;
        const auto where = absl::StrCat(name, "\n", finding.rule(), " ", finding.pointer(),
                                        "\nfix in ", finding.fix_pointer(), ": ", finding.fix());
        ++fixes;
        rules.insert(finding.rule());
        EXPECT_NE(finding.expected(), "") << where;
        const auto fixed = WithFix(config, finding.fix_pointer(), finding.fix());
        ASSERT_TRUE(fixed.has_value()) << where;
        const auto after = Resolve(*fixed, compat);
        ASSERT_TRUE(after.ok()) << where << "\n" << after.status();
        EXPECT_FALSE(HasFinding(*after, finding)) << where;
        EXPECT_THAT(Rules(*before), IsSupersetOf(Rules(*after))) << where;
      }
    }
  }
  EXPECT_GE(fixes, 200);
  std::set<std::string> documented;
  for (const RuleInfo& info : RuleTable()) {
    if (!absl::StartsWith(info.fix, "None: ")) documented.insert(std::string(info.id));
  }
  EXPECT_EQ(rules, documented);
}

}  // namespace
}  // namespace posenc::cli
