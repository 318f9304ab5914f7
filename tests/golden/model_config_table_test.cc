// What every config of tests/golden/configs means, as a table that is kept in the
// repository: a change of meaning is seen in review.
//
// When it is meant to change: copy the file that the failing test names over
// tests/golden/configs.tsv, and say in the commit why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/families/family.h"
#include "lib/model_config/resolve.h"
#include "tests/unit/model_config_testing.h"

namespace posenc {
namespace {

constexpr char kHeader[] =
    "file\tmodel_type\ttower\tlayer_type\tkind\trope_type\trotary_dim\trope_theta\tfindings\n";

std::vector<std::string> ConfigNames() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(absl::StrCat(POSENC_TEST_DATA, "/golden/configs"))) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string OrDash(absl::string_view text) { return std::string(text.empty() ? "-" : text); }

// rule@pointer, of the first encoding's line only: findings are about the file.
std::string FindingsOf(const v1::ResolveModelConfigResponse& response) {
  std::vector<std::string> findings;
  for (const v1::Finding& finding : response.findings()) {
    findings.push_back(absl::StrCat(finding.rule(), "@", finding.pointer()));
  }
  return OrDash(absl::StrJoin(findings, " "));
}

std::string Line(const std::string& name, const v1::ResolveModelConfigResponse& response,
                 const v1::ResolvedEncoding& encoding, const std::string& findings) {
  const bool axial = encoding.has_axial();
  const v1::RopeSpec& rope = encoding.spec().rope();
  const int64_t rotary_dim = axial ? encoding.axial().rotary_dim() : rope.rotary_dim();
  const double theta = axial ? encoding.axial().rope_theta() : rope.rope_theta();
  const bool is_rope = encoding.kind() == "rope";
  return absl::StrCat(
      absl::StrJoin(
          {name, OrDash(response.model_type()), encoding.tower(), encoding.layer_type(),
           encoding.kind(), OrDash(encoding.rope_type()), is_rope ? absl::StrCat(rotary_dim) : "-",
           is_rope ? absl::StrFormat("%.17g", theta) : "-", findings},
          "\t"),
      "\n");
}

std::string LinesOf(const std::string& name) {
  const auto response = testing::Resolve(testing::ReadConfig(name));
  if (!response.ok()) {
    return absl::StrCat(name, "\t-\t-\t-\trefused\t-\t-\t-\t", response.status().message(), "\n");
  }
  std::string lines;
  for (const v1::ResolvedEncoding& encoding : response->encodings()) {
    absl::StrAppend(&lines,
                    Line(name, *response, encoding, lines.empty() ? FindingsOf(*response) : "-"));
  }
  return lines;
}

std::string ReadTable() {
  std::ifstream file(absl::StrCat(POSENC_TEST_DATA, "/golden/configs.tsv"));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ModelConfigTableTest, TheTableOfAllConfigsIsTheCommittedOne) {
  std::string table = kHeader;
  for (const std::string& name : ConfigNames()) table += LinesOf(name);
  std::cout << table;
  const std::string path = absl::StrCat(::testing::TempDir(), "configs.tsv");
  std::ofstream(path) << table;
  const std::vector<std::string> actual = absl::StrSplit(table, '\n');
  const std::vector<std::string> expected = absl::StrSplit(ReadTable(), '\n');
  EXPECT_THAT(actual, ::testing::ElementsAreArray(expected)) << "the new table is " << path;
}

// A spec that does not canonicalize would be a table that nobody can ask for.
TEST(ModelConfigTableTest, EverySpecOfARealConfigCanonicalizes) {
  int specs = 0;
  for (const std::string& name : ConfigNames()) {
    const auto response = testing::Resolve(testing::ReadConfig(name));
    if (!response.ok()) continue;
    for (const v1::ResolvedEncoding& encoding : response->encodings()) {
      if (!encoding.has_spec()) continue;
      EXPECT_TRUE(Canonicalize(encoding.spec()).ok())
          << name << ": " << Canonicalize(encoding.spec()).status();
      ++specs;
    }
  }
  EXPECT_GE(specs, 150);
}

}  // namespace
}  // namespace posenc
