// Reports about files whose author is hostile: each format is what its readers take it for,
// whatever the strings in it are.
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/printable.h"
#include "client/cli/report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapidjson/document.h"

namespace posenc::cli {
namespace {

// Bytes that mean something to a terminal, a CI system, JSON, UTF-8 or a URI.
constexpr absl::string_view kHostile[] = {"%",
                                          "\r",
                                          "\n",
                                          "::error::",
                                          ",",
                                          ":",
                                          "\"",
                                          "\\",
                                          "\x1b[2J",
                                          "\x80",
                                          "\xC3",
                                          "\xED\xA0\x80",
                                          "\xF4\x90\x80\x80",
                                          "é",
                                          "漢",
                                          "/",
                                          "~1",
                                          "<b>",
                                          "%0A",
                                          " ",
                                          "\t",
                                          "\x7f",
                                          "\xC2\x9b",
                                          "a",
                                          "]]>",
                                          "#",
                                          "?",
                                          "\xEF\xBB\xBF"};

class Strings {
 public:
  std::string Next() {
    std::string text;
    const size_t parts = random_() % 6;
    for (size_t i = 0; i < parts; ++i) {
      absl::StrAppend(&text, kHostile[random_() % std::size(kHostile)]);
    }
    return text;
  }
  int Number(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }

 private:
  std::mt19937 random_{12345};
};

std::vector<CheckedModel> HostileModels(Strings* strings) {
  std::vector<CheckedModel> models;
  for (int i = 0; i < 3; ++i) {
    CheckedModel& model = models.emplace_back();
    model.path = absl::StrCat("m", strings->Next(), ".json");
    model.model_type = strings->Next();
    for (int j = strings->Number(4); j > 0; --j) {
      v1::Finding& finding = model.findings.emplace_back();
      finding.set_severity(static_cast<v1::Severity>(1 + strings->Number(3)));
      finding.set_rule(j == 1 ? "theta-null" : absl::StrCat("rule", strings->Next()));
      finding.set_pointer(strings->Next());
      finding.set_line(strings->Number(3));
      finding.set_column(finding.line() > 0 ? 1 + strings->Number(9) : 0);
      finding.set_message(absl::StrCat("message ", strings->Next()));
      finding.set_found(strings->Next());
      finding.set_expected(strings->Next());
      finding.set_fix(strings->Next());
      finding.set_fix_pointer(strings->Next());
      finding.set_in_overrides(finding.line() == 0);
    }
    SetColumns(strings->Next(), &model);
  }
  return models;
}

template <typename Claim>
void ForHostileModels(const Claim& claim) {
  Strings strings;
  for (int i = 0; i < 300; ++i) {
    const std::vector<CheckedModel> models = HostileModels(&strings);
    claim(models);
    if (::testing::Test::HasFailure()) return;
  }
}

bool HasControl(absl::string_view line) {
  for (const char c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  }
  return false;
}

size_t FindingsOf(const std::vector<CheckedModel>& models) {
  size_t count = 0;
  for (const CheckedModel& model : models) count += model.findings.size();
  return count;
}

rapidjson::Document Parsed(const std::string& json) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseValidateEncodingFlag>(json.c_str());
  EXPECT_FALSE(document.HasParseError()) << json;
  return document;
}

TEST(ReportTest, NoStringOfAConfigMakesALineOrATerminalsCommand) {
  ForHostileModels([](const std::vector<CheckedModel>& models) {
    const std::string text = Report(ReportFormat::kText, models);
    size_t expected = 1;  // the summary
    for (const CheckedModel& model : models) {
      if (model.findings.empty()) ++expected;
      for (const v1::Finding& finding : model.findings) expected += finding.fix().empty() ? 1U : 2U;
    }
    const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
    EXPECT_EQ(lines.size(), expected) << text;
    for (const std::string& line : lines) {
      EXPECT_FALSE(HasControl(line)) << line;
      EXPECT_FALSE(absl::StartsWith(line, "::")) << line;
      EXPECT_EQ(ValidUtf8(line), line);
    }
  });
}

// As the runner undoes the escapes.
std::string Unescaped(absl::string_view text, bool property) {
  std::string plain = absl::StrReplaceAll(text, {{"%0D", "\r"}, {"%0A", "\n"}});
  if (property) plain = absl::StrReplaceAll(plain, {{"%3A", ":"}, {"%2C", ","}});
  return absl::StrReplaceAll(plain, {{"%25", "%"}});
}

TEST(ReportTest, AnAnnotationOfGithubHasTheStringsThatItWasGiven) {
  ForHostileModels([](const std::vector<CheckedModel>& models) {
    const std::string text = Report(ReportFormat::kGithub, models);
    const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
    ASSERT_EQ(lines.size(), FindingsOf(models));
    size_t next = 0;
    for (const CheckedModel& model : models) {
      for (const v1::Finding& finding : model.findings) {
        const std::string& line = lines[next++];
        EXPECT_EQ(line.find('\r'), std::string::npos);
        EXPECT_FALSE(HasControl(line.substr(line.find("::", 2))));
        // ::command property=value,...::message
        const size_t space = line.find(' ');
        const size_t end = line.find("::", 2);
        ASSERT_NE(end, std::string::npos);
        const std::string command = line.substr(2, space - 2);
        EXPECT_TRUE(command == "error" || command == "warning" || command == "notice") << line;
        const std::vector<std::string> properties =
            absl::StrSplit(line.substr(space + 1, end - space - 1), ',');
        ASSERT_EQ(properties.size(), finding.line() > 0 ? 4u : 2u) << line;
        EXPECT_EQ(Unescaped(properties.front(), true), "file=" + ValidUtf8(model.path));
        EXPECT_EQ(Unescaped(properties.back(), true), "title=" + OneLine(finding.rule()));
        EXPECT_TRUE(
            absl::StartsWith(Unescaped(line.substr(end + 2), false), OneLine(finding.message())))
            << line;
      }
    }
  });
}

TEST(ReportTest, JsonHasTheStringsThatItWasGiven) {
  ForHostileModels([](const std::vector<CheckedModel>& models) {
    const rapidjson::Document report = Parsed(Report(ReportFormat::kJson, models));
    for (rapidjson::SizeType i = 0; i < models.size(); ++i) {
      const auto& model = report["models"][i];
      EXPECT_EQ(model["model"].GetString(), ValidUtf8(models[i].path));
      for (rapidjson::SizeType j = 0; j < models[i].findings.size(); ++j) {
        const v1::Finding& finding = models[i].findings[j];
        const auto& written = model["findings"][j];
        EXPECT_EQ(written["message"].GetString(), ValidUtf8(finding.message()));
        EXPECT_EQ(written["pointer"].GetString(), ValidUtf8(finding.pointer()));
        EXPECT_EQ(written["fix"].GetString(), ValidUtf8(finding.fix()));
        EXPECT_EQ(written["fix_pointer"].GetString(), ValidUtf8(finding.fix_pointer()));
        EXPECT_EQ(written["in_overrides"].GetBool(), finding.in_overrides());
      }
    }
  });
}

// A relative reference (RFC 3986) whose first segment has no colon.
bool IsUriReference(absl::string_view uri) {
  for (size_t i = 0; i < uri.size(); ++i) {
    if (uri[i] == '%') {
      const auto hex = [&](size_t at) {
        return at < uri.size() && isxdigit(static_cast<unsigned char>(uri[at])) != 0;
      };
      if (!hex(i + 1) || !hex(i + 2)) return false;
    } else if (isalnum(static_cast<unsigned char>(uri[i])) == 0 &&
               absl::string_view("-._~/").find(uri[i]) == absl::string_view::npos) {
      return false;
    }
  }
  return !uri.empty();
}

// What SARIF 2.1.0 requires of the properties that are here (sections 3.13 to 3.52).
void CheckSarif(const rapidjson::Document& log) {
  ASSERT_TRUE(log.IsObject());
  EXPECT_STREQ(log["version"].GetString(), "2.1.0");
  ASSERT_EQ(log["runs"].Size(), 1u);
  const auto& run = log["runs"][0];
  const auto& driver = run["tool"]["driver"];
  EXPECT_STREQ(driver["name"].GetString(), "posenc");
  EXPECT_STREQ(run["columnKind"].GetString(), "unicodeCodePoints");
  std::vector<std::string> rules;
  for (const auto& rule : driver["rules"].GetArray()) {
    rules.emplace_back(rule["id"].GetString());
    EXPECT_EQ(std::count(rules.begin(), rules.end(), rules.back()), 1) << "ids are unique";
    if (rule.HasMember("shortDescription")) {
      EXPECT_GT(rule["shortDescription"]["text"].GetStringLength(), 0u);
    }
  }
  for (const auto& result : run["results"].GetArray()) {
    const int index = result["ruleIndex"].GetInt();
    ASSERT_TRUE(index >= 0 && static_cast<size_t>(index) < rules.size());
    EXPECT_EQ(result["ruleId"].GetString(), rules[static_cast<size_t>(index)]);
    const std::string level = result["level"].GetString();
    EXPECT_TRUE(level == "error" || level == "warning" || level == "note") << level;
    EXPECT_GT(result["message"]["text"].GetStringLength(), 0u);
    EXPECT_TRUE(result["properties"].IsObject());
    EXPECT_FALSE(result.HasMember("fixes")) << "would need artifactChanges with replacements";
    ASSERT_EQ(result["locations"].Size(), 1u);
    const auto& location = result["locations"][0]["physicalLocation"];
    EXPECT_TRUE(IsUriReference(location["artifactLocation"]["uri"].GetString()));
    if (!location.HasMember("region")) continue;
    EXPECT_GE(location["region"]["startLine"].GetInt(), 1);
    EXPECT_GE(location["region"]["startColumn"].GetInt(), 1);
  }
}

TEST(ReportTest, SarifIsWhatItsSchemaRequires) {
  ForHostileModels([](const std::vector<CheckedModel>& models) {
    const rapidjson::Document log = Parsed(Report(ReportFormat::kSarif, models));
    CheckSarif(log);
    EXPECT_EQ(log["runs"][0]["results"].Size(), FindingsOf(models));
  });
  CheckSarif(Parsed(Report(ReportFormat::kSarif, {})));
}

// Ours are in bytes, SARIF's in characters: "é" and "漢" before the key moved the mark.
TEST(ReportTest, AColumnOfSarifCountedBytes) {
  CheckedModel model;
  model.findings.emplace_back().set_line(2);
  model.findings.back().set_column(13);
  SetColumns("{\n\"é漢\": [\"x\", 1]}", &model);
  EXPECT_EQ(model.columns.front(), 10);
}

TEST(ReportTest, OneErrorWasCalledErrors) {
  CheckedModel model;
  model.path = "a.json";
  model.findings.emplace_back().set_severity(v1::SEVERITY_ERROR);
  EXPECT_TRUE(
      absl::EndsWith(Report(ReportFormat::kText, {model}), "1 model, 1 error, 0 warnings\n"));
}

}  // namespace
}  // namespace posenc::cli
