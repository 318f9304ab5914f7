#include "client/cli/report.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "client/cli/compare.h"
#include "client/cli/exit_code.h"
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

std::string Text(const std::vector<CheckedModel>& models) {
  std::string text;
  for (const CheckedModel& model : models) {
    if (model.findings.empty()) absl::StrAppend(&text, model.path, ": ok\n");
    for (const v1::Finding& finding : model.findings) {
      absl::StrAppend(&text, model.path);
      if (finding.line() > 0) absl::StrAppend(&text, ":", finding.line(), ":", finding.column());
      absl::StrAppend(&text, ": ", SeverityName(finding.severity()), ": ", finding.message(), " [",
                      finding.rule(), "]\n");
      if (!finding.fix().empty()) absl::StrAppend(&text, "    fix: ", finding.fix(), "\n");
    }
  }
  return absl::StrCat(text, models.size(), " models, ", Count(models, v1::SEVERITY_ERROR),
                      " errors, ", Count(models, v1::SEVERITY_WARNING), " warnings\n");
}

void Member(const char* key, const std::string& value, Writer* writer) {
  writer->Key(key);
  writer->String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
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

// Where a message is all that is shown.
std::string MessageWithFix(const v1::Finding& finding) {
  return finding.fix().empty() ? finding.message()
                               : absl::StrCat(finding.message(), "\nfix: ", finding.fix());
}

// The escapes of workflow commands: in a message, and stricter in a property.
std::string GithubMessage(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"%", "%25"}, {"\r", "%0D"}, {"\n", "%0A"}});
}
std::string GithubProperty(absl::string_view text) {
  return absl::StrReplaceAll(GithubMessage(text), {{":", "%3A"}, {",", "%2C"}});
}

std::string Github(const std::vector<CheckedModel>& models) {
  std::string text;
  for (const CheckedModel& model : models) {
    for (const v1::Finding& finding : model.findings) {
      const std::string severity = SeverityName(finding.severity());
      absl::StrAppend(&text, "::", severity == "note" ? "notice" : severity,
                      " file=", GithubProperty(model.path));
      if (finding.line() > 0) {
        absl::StrAppend(&text, ",line=", finding.line(), ",col=", finding.column());
      }
      absl::StrAppend(&text, ",title=", GithubProperty(finding.rule()),
                      "::", GithubMessage(MessageWithFix(finding)), "\n");
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

void SarifResult(const CheckedModel& model, const v1::Finding& finding, Writer* writer) {
  writer->StartObject();
  Member("ruleId", finding.rule(), writer);
  Member("level", SeverityName(finding.severity()), writer);
  writer->Key("message");
  writer->StartObject();
  Member("text", MessageWithFix(finding), writer);
  writer->EndObject();
  writer->Key("properties");
  writer->StartObject();
  Member("pointer", finding.pointer(), writer);
  Member("found", finding.found(), writer);
  Member("expected", finding.expected(), writer);
  Member("fix", finding.fix(), writer);
  writer->EndObject();
  writer->Key("locations");
  writer->StartArray();
  writer->StartObject();
  writer->Key("physicalLocation");
  writer->StartObject();
  writer->Key("artifactLocation");
  writer->StartObject();
  Member("uri", UriOf(model.path), writer);
  writer->EndObject();
  if (finding.line() > 0) {
    writer->Key("region");
    writer->StartObject();
    Member("startLine", finding.line(), writer);
    Member("startColumn", finding.column(), writer);
    writer->EndObject();
  }
  writer->EndObject();
  writer->EndObject();
  writer->EndArray();
  writer->EndObject();
}

std::string Sarif(const std::vector<CheckedModel>& models) {
  std::map<std::string, bool> rules;
  for (const CheckedModel& model : models) {
    for (const v1::Finding& finding : model.findings) rules[finding.rule()] = true;
  }
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
  for (const auto& [rule, used] : rules) {
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
    for (const v1::Finding& finding : model.findings) SarifResult(model, finding, &writer);
  }
  writer.EndArray();
  writer.EndObject();
  writer.EndArray();
  writer.EndObject();
  return absl::StrCat(buffer.GetString(), "\n");
}

}  // namespace

absl::StatusOr<ReportFormat> ParseReportFormat(absl::string_view name) {
  if (name == "text") return ReportFormat::kText;
  if (name == "json") return ReportFormat::kJson;
  if (name == "github") return ReportFormat::kGithub;
  if (name == "sarif") return ReportFormat::kSarif;
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
