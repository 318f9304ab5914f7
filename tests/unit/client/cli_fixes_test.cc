// Every fix that a finding offers, pasted: it has to end the finding, and start nothing worse.
#include <algorithm>
#include <cstdint>
#include <filesystem>
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
#include "tests/support/config_mutator.h"
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
      ModelWith("llama", yarn + length + R"(, "truncate": null})"),
      ModelWith("llama",
                R"("rope_scaling": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor":
                   1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 2048.0})"),
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
      ModelWith("llama", R"("rope_tetha": 5e5)"),
      ModelWith("llama", R"("rope_theta": 1e4, "ropeScaling": {"type": "linear", "factor": 2.0})"),
      ModelWith("llama", yarn + length + R"(, "beta_fats": 16}, "rope_theta": 1e4)"),
      ModelWith("qwen3_vl_text", R"("rope_theta": 5e6, "rope_scaling": {"rope_type": "default",
                                    "mrope_section": [24, 20, 20]})"),
      R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
          "num_hidden_layers": 32, "max_position_embeddings": 131072, "rope_theta": 10000.0,
          "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})",
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
    // In a map of the new form a scaling is read by the same readers as what is there.
    if (finding.rule() == "theta-only-new-form" || finding.pointer() == "/rope_parameters") {
      rules.insert("scaling-only-new-form");
    }
    // A base that is no longer the default is one that other readers do not find.
    if (finding.rule() == "theta-unlike-model") rules.insert("theta-only-new-form");
    // By its base a Llama is known, once it is read.
    if (finding.rule() == "theta-only-new-form") rules.insert("scaling-lost");
  }
  return rules;
}

// The rules of the findings whose fix was pasted.
std::set<std::string> PasteFixes(const std::string& name, const std::string& config,
                                 v1::Compat compat) {
  std::set<std::string> rules;
  const auto before = Resolve(config, compat);
  if (!before.ok()) return rules;
  for (const v1::Finding& finding : before->findings()) {
    if (finding.fix().empty()) continue;
    const auto where = absl::StrCat(name, "\n", finding.rule(), " ", finding.pointer(), "\nfix in ",
                                    finding.fix_pointer(), ": ", finding.fix());
    rules.insert(finding.rule());
    EXPECT_NE(finding.expected(), "") << where;
    const auto fixed = WithFix(config, finding.fix_pointer(), finding.fix());
    EXPECT_TRUE(fixed.has_value()) << where;
    if (!fixed.has_value()) continue;
    const auto after = Resolve(*fixed, compat);
    // What is lost may be wrong itself, and so may another key that is read only now.
    const std::string key = finding.fix().substr(1, finding.fix().find('"', 1) - 1);
    const std::string pasted = absl::StrCat("config_json", finding.fix_pointer(), "/", key);
    const bool lost = finding.rule() == "two-rope-maps" || finding.rule() == "key-misspelt";
    EXPECT_TRUE(after.ok() || lost || !absl::StartsWith(after.status().message(), pasted))
        << where << "\n"
        << after.status();
    if (!after.ok()) continue;
    EXPECT_FALSE(HasFinding(*after, finding)) << where << config;
    if (lost) continue;
    EXPECT_THAT(Rules(*before), IsSupersetOf(Rules(*after))) << where;
  }
  return rules;
}

TEST(FixesTest, EveryFixPastedEndsItsFindingAndStartsNoOther) {
  std::set<std::string> rules;
  for (const auto& [name, config] : AllConfigs()) {
    for (const v1::Compat compat : {v1::COMPAT_LATEST, v1::COMPAT_V5_16, v1::COMPAT_V4_57}) {
      rules.merge(PasteFixes(name, config, compat));
    }
  }
  std::set<std::string> documented;
  for (const RuleInfo& info : RuleTable()) {
    if (!absl::StartsWith(info.fix, "None: ")) documented.insert(std::string(info.id));
  }
  EXPECT_EQ(rules, documented);
}

TEST(FixesTest, FixesOfMutatedConfigsAreNoWorse) {
  const auto configs = AllConfigs();
  std::set<std::string> rules;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    const auto& [name, config] = configs[seed % configs.size()];
    const std::string mutated = testing::MutateConfig(config, seed);
    rules.merge(PasteFixes(absl::StrCat(name, " seed ", seed), mutated, v1::COMPAT_LATEST));
  }
  EXPECT_GE(rules.size(), 8u);
}

}  // namespace
}  // namespace posenc::cli
