#include "tests/unit/model_config_testing.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "lib/families/family.h"
#include "lib/model_config/resolve.h"

namespace posenc::testing {

absl::StatusOr<v1::ResolveModelConfigResponse> Resolve(absl::string_view config_json) {
  v1::ModelSource model;
  model.set_config_json(std::string(config_json));
  return ResolveModelConfig(model);
}

std::string Refusal(absl::string_view config_json) {
  return std::string(Resolve(config_json).status().message());
}

v1::ResolveModelConfigResponse Resolved(absl::string_view config_json) {
  const auto response = Resolve(config_json);
  EXPECT_TRUE(response.ok()) << response.status();
  if (!response.ok()) return {};
  for (const v1::ResolvedEncoding& encoding : response->encodings()) {
    if (!encoding.has_spec()) continue;
    const auto spec = Canonicalize(encoding.spec());
    EXPECT_TRUE(spec.ok()) << spec.status();
  }
  return *response;
}

v1::ResolveModelConfigResponse ResolvedAs(absl::string_view config_json, v1::Compat compat) {
  v1::ModelSource model;
  model.set_config_json(std::string(config_json));
  model.set_compat(compat);
  const auto response = ResolveModelConfig(model);
  EXPECT_TRUE(response.ok()) << response.status();
  return response.ok() ? *response : v1::ResolveModelConfigResponse();
}

v1::ResolvedEncoding TheEncoding(absl::string_view config_json) {
  const auto response = Resolve(config_json);
  EXPECT_TRUE(response.ok()) << response.status();
  if (!response.ok()) return {};
  const auto encoding = OneEncoding(*response);
  EXPECT_TRUE(encoding.ok()) << encoding.status();
  return encoding.ok() ? *encoding : v1::ResolvedEncoding();
}

std::string ModelWith(absl::string_view model_type, absl::string_view more) {
  return absl::StrCat(R"({"model_type": ")", model_type,
                      R"(", "hidden_size": 4096, "num_attention_heads": 32, )",
                      R"("max_position_embeddings": 8192)", more.empty() ? "" : ", ", more, "}");
}

std::string CompositeWith(absl::string_view model_type, absl::string_view part,
                          absl::string_view config) {
  return absl::StrCat(R"({"model_type": ")", model_type,
                      R"(", "text_config": {"model_type": "llama",
      "hidden_size": 2048, "num_attention_heads": 16, "rope_theta": 10000}, ")",
                      part, R"(": )", config, "}");
}

std::string ReadConfig(absl::string_view name) {
  std::ifstream file(absl::StrCat(POSENC_TEST_DATA, "/golden/configs/", name));
  EXPECT_TRUE(file.good()) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<v1::ResolvedEncoding> TowerOf(const v1::ResolveModelConfigResponse& response,
                                          absl::string_view tower) {
  std::vector<v1::ResolvedEncoding> encodings;
  for (const v1::ResolvedEncoding& encoding : response.encodings()) {
    if (encoding.tower() == tower) encodings.push_back(encoding);
  }
  return encodings;
}

const v1::Finding* FindingOf(const v1::ResolveModelConfigResponse& response,
                             absl::string_view rule) {
  for (const v1::Finding& finding : response.findings()) {
    if (finding.rule() == rule) return &finding;
  }
  return nullptr;
}

std::string MessageOf(absl::string_view rule, const v1::ResolveModelConfigResponse& response) {
  const v1::Finding* finding = FindingOf(response, rule);
  return finding == nullptr ? "" : finding->message();
}

}  // namespace posenc::testing
