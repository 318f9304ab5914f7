#include "client/cli/report.h"

#include <algorithm>
#include <map>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/compare.h"
#include "client/cli/exit_code.h"
#include "client/cli/printable.h"
#include "lib/model_config/findings.h"
#include "rapidjson/prettywriter.h"
#include "rapidjson/stringbuffer.h"

namespace posenc::cli {
namespace {

using Writer = rapidjson::PrettyWriter<rapidjson::StringBuffer>;

// error, warning, note.
std::string SeverityName(v1::Severity severity) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::Severity_Name(severity), "SEVERITY_"));
}

int Count(const std::vector<CheckedModel>& models, v1::Severity severity) {
  int count = 0;
  for (const CheckedModel& model : models) {
    for (const v1::Finding& finding : model.findings) count += finding.severity() == severity;
  }
  return count;
}

// "1 error, 2 warnings".
std::string Counted(size_t count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

// Where a finding is that stands in no line of the file.
std::string Elsewhere(const v1::Finding& finding) {
  if (!finding.in_overrides()) return "";
  return absl::StrCat(" (in --hf-overrides", finding.pointer().empty() ? "" : ": ",
                      finding.pointer(), ")");
}

// "fix: ..." or "fix in /rope_scaling: ..."; empty where there is none.
std::string FixText(const v1::Finding& finding) {
  if (finding.fix().empty()) return "";
  return absl::StrCat("fix", finding.fix_pointer().empty() ? "" : " in ", finding.fix_pointer(),
                      ": ", finding.fix());
}

std::string Text(const std::vector<CheckedModel>& models) {
  std::string text;
  for (const CheckedModel& model : models) {
    const std::string path = OneLine(model.path);
    if (model.findings.empty()) absl::StrAppend(&text, path, ": ok\n");
    for (const v1::Finding& finding : model.findings) {
      absl::StrAppend(&text, path);
      if (finding.line() > 0) absl::StrAppend(&text, ":", finding.line(), ":", finding.column());
      absl::StrAppend(&text, ": ", SeverityName(finding.severity()), ": ",
                      OneLine(absl::StrCat(finding.message(), Elsewhere(finding))), " [",
                      OneLine(finding.rule()), "]\n");
      const std::string fix = FixText(finding);
      if (!fix.empty()) absl::StrAppend(&text, "    ", OneLine(fix), "\n");
    }
  }
  return absl::StrCat(
      text, Counted(models.size(), "model"), ", ",
      Counted(static_cast<size_t>(Count(models, v1::SEVERITY_ERROR)), "error"), ", ",
      Counted(static_cast<size_t>(Count(models, v1::SEVERITY_WARNING)), "warning"), "\n");
}

void Member(const char* key, const std::string& value, Writer* writer) {
  const std::string valid = ValidUtf8(value);
  writer->Key(key);
  writer->String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}

void BoolMember(const char* key, bool value, Writer* writer) {
  writer->Key(key);
  writer->Bool(value);
}

void Member(const char* key, int value, Writer* writer) {
  writer->Key(key);
  writer->Int(value);
}

std::string Json(const std::vector<CheckedModel>& models) {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  writer.SetIndent(' ', 1);
  writer.StartObject();
  writer.Key("models");
  writer.StartArray();
  for (const CheckedModel& model : models) {
    writer.StartObject();
    Member("model", model.path, &writer);
    Member("model_type", model.model_type, &writer);
    writer.Key("findings");
    writer.StartArray();
    for (const v1::Finding& finding : model.findings) {
      writer.StartObject();
      Member("severity", SeverityName(finding.severity()), &writer);
      Member("rule", finding.rule(), &writer);
      Member("pointer", finding.pointer(), &writer);
      Member("line", finding.line(), &writer);
      Member("column", finding.column(), &writer);
      Member("message", finding.message(), &writer);
      Member("found", finding.found(), &writer);
      Member("expected", finding.expected(), &writer);
      Member("fix", finding.fix(), &writer);
      Member("fix_pointer", finding.fix_pointer(), &writer);
      BoolMember("in_overrides", finding.in_overrides(), &writer);
      writer.EndObject();
    }
    writer.EndArray();
    writer.EndObject();
  }
  writer.EndArray();
  Member("errors", Count(models, v1::SEVERITY_ERROR), &writer);
  Member("warnings", Count(models, v1::SEVERITY_WARNING), &writer);
  writer.EndObject();
  return absl::StrCat(buffer.GetString(), "\n");
}

// Where a message is all that is shown: a line, and one of the fix.
std::string WholeMessage(const v1::Finding& finding) {
  const std::string fix = OneLine(FixText(finding));
  return absl::StrCat(OneLine(absl::StrCat(finding.message(), Elsewhere(finding))),
                      fix.empty() ? "" : "\n", fix);
}

// The escapes of workflow commands: in a message, and stricter in a property.
std::string GithubMessage(absl::string_view text) {
  return absl::StrReplaceAll(ValidUtf8(text), {{"%", "%25"}, {"\r", "%0D"}, {"\n", "%0A"}});
}
std::string GithubProperty(absl::string_view text) {
  return absl::StrReplaceAll(GithubMessage(text), {{":", "%3A"}, {",", "%2C"}});
}

// As the forge that shows the report names a file of the working directory: without the ./ of
// `check .`.
absl::string_view InRepository(absl::string_view path) {
  while (absl::ConsumePrefix(&path, "./")) {
    while (absl::ConsumePrefix(&path, "/")) {
    }
  }
  return path;
}

std::string Github(const std::vector<CheckedModel>& models) {
  std::string text;
  for (const CheckedModel& model : models) {
    for (const v1::Finding& finding : model.findings) {
      const std::string severity = SeverityName(finding.severity());
      absl::StrAppend(&text, "::", severity == "note" ? "notice" : severity,
                      " file=", GithubProperty(InRepository(model.path)));
      if (finding.line() > 0) {
        absl::StrAppend(&text, ",line=", finding.line(), ",col=", finding.column());
      }
      absl::StrAppend(&text, ",title=", GithubProperty(OneLine(finding.rule())),
                      "::", GithubMessage(WholeMessage(finding)), "\n");
    }
  }
  return text;
}

// A path as a URI reference: what is not plain is percent-encoded.
std::string UriOf(absl::string_view path) {
  constexpr absl::string_view kPlain = "-._~/";
  std::string uri;
  for (const char c : path) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
        kPlain.find(c) != absl::string_view::npos) {
      uri.push_back(c);
    } else {
      absl::StrAppend(&uri, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return uri;
}

// Empty for a rule that this program does not know: a newer server's.
absl::string_view MeaningOf(absl::string_view rule) {
  for (const RuleInfo& info : RuleTable()) {
    if (info.id == rule) return info.meaning;
  }
  for (const BaseRule& info : kBaseRules) {
    if (info.id == rule) return info.meaning;
  }
  return rule == "config-refused" ? "The file is no config or contradicts itself." : "";
}

// The rules that were found, with their place among the driver's.
using RuleIndexes = std::map<std::string, int>;

// `column`: in characters.
void SarifResult(const CheckedModel& model, const v1::Finding& finding, int column,
                 const RuleIndexes& rules, Writer* writer) {
  writer->StartObject();
  Member("ruleId", finding.rule(), writer);
  Member("ruleIndex", rules.at(finding.rule()), writer);
  Member("level", SeverityName(finding.severity()), writer);
  writer->Key("message");
  writer->StartObject();
  Member("text", WholeMessage(finding), writer);
  writer->EndObject();
  writer->Key("properties");
  writer->StartObject();
  Member("pointer", finding.pointer(), writer);
  Member("found", finding.found(), writer);
  Member("expected", finding.expected(), writer);
  Member("fix", finding.fix(), writer);
  Member("fix_pointer", finding.fix_pointer(), writer);
  BoolMember("in_overrides", finding.in_overrides(), writer);
  writer->EndObject();
  writer->Key("locations");
  writer->StartArray();
  writer->StartObject();
  writer->Key("physicalLocation");
  writer->StartObject();
  writer->Key("artifactLocation");
  writer->StartObject();
  Member("uri", UriOf(InRepository(model.path)), writer);
  writer->EndObject();
  if (finding.line() > 0) {
    writer->Key("region");
    writer->StartObject();
    Member("startLine", finding.line(), writer);
    Member("startColumn", column, writer);
    writer->EndObject();
  }
  writer->EndObject();
  writer->EndObject();
  writer->EndArray();
  writer->EndObject();
}

std::string Sarif(const std::vector<CheckedModel>& models) {
  RuleIndexes rules;
  for (const CheckedModel& model : models) {
    for (const v1::Finding& finding : model.findings) rules[finding.rule()] = 0;
  }
  int next = 0;
  for (auto& [rule, index] : rules) index = next++;
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  writer.SetIndent(' ', 1);
  writer.StartObject();
  Member("$schema", "https://json.schemastore.org/sarif-2.1.0.json", &writer);
  Member("version", "2.1.0", &writer);
  writer.Key("runs");
  writer.StartArray();
  writer.StartObject();
  writer.Key("tool");
  writer.StartObject();
  writer.Key("driver");
  writer.StartObject();
  Member("name", "posenc", &writer);
  Member("version", POSENC_VERSION, &writer);
  writer.Key("rules");
  writer.StartArray();
  for (const auto& [rule, index] : rules) {
    writer.StartObject();
    Member("id", rule, &writer);
    if (const absl::string_view meaning = MeaningOf(rule); !meaning.empty()) {
      writer.Key("shortDescription");
      writer.StartObject();
      Member("text", std::string(meaning), &writer);
      writer.EndObject();
    }
    writer.EndObject();
  }
  writer.EndArray();
  writer.EndObject();
  writer.EndObject();
  writer.Key("results");
  writer.StartArray();
  for (const CheckedModel& model : models) {
    for (size_t i = 0; i < model.findings.size(); ++i) {
      SarifResult(model, model.findings[i], model.columns[i], rules, &writer);
    }
  }
  writer.EndArray();
  Member("columnKind", "unicodeCodePoints", &writer);
  writer.EndObject();
  writer.EndArray();
  writer.EndObject();
  return absl::StrCat(buffer.GetString(), "\n");
}

}  // namespace

void SetColumns(absl::string_view config_json, CheckedModel* model) {
  const std::vector<absl::string_view> lines = absl::StrSplit(config_json, '\n');
  model->columns.clear();
  for (const v1::Finding& finding : model->findings) {
    const size_t line = static_cast<size_t>(finding.line());
    int column = finding.line() > 0 ? finding.column() : 0;
    if (line > 0 && line <= lines.size() && column > 0) {
      const absl::string_view before = lines[line - 1].substr(0, static_cast<size_t>(column - 1));
      // The bytes of a character but its first.
      column -= static_cast<int>(absl::c_count_if(
          before, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }));
    }
    model->columns.push_back(column);
  }
}

absl::StatusOr<ReportFormat> ParseReportFormat(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  if (lower == "text") return ReportFormat::kText;
  if (lower == "json") return ReportFormat::kJson;
  if (lower == "github") return ReportFormat::kGithub;
  if (lower == "sarif") return ReportFormat::kSarif;
  return UsageError(absl::StrCat("--format: must be text, json, github or sarif, got ", name));
}

std::string Report(ReportFormat format, const std::vector<CheckedModel>& models) {
  switch (format) {
    case ReportFormat::kText:
      return Text(models);
    case ReportFormat::kJson:
      return Json(models);
    case ReportFormat::kGithub:
      return Github(models);
    case ReportFormat::kSarif:
      return Sarif(models);
  }
  return "";
}

}  // namespace posenc::cli
