// The findings of many models, as people and CI systems read them.
#ifndef POSENC_CLIENT_CLI_REPORT_H_
#define POSENC_CLIENT_CLI_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc::cli {

// A model that was checked.
struct CheckedModel {
  std::string path;        // as it was given, or found in a folder
  std::string model_type;  // empty when it was refused
  std::vector<v1::Finding> findings;
  std::vector<int> columns;  // of each finding, 1-based, in characters; 0 without a line
};

// Sets the columns: a finding's own are in bytes of the config's text.
void SetColumns(absl::string_view config_json, CheckedModel* model);

enum class ReportFormat { kText, kJson, kGithub, kSarif };

// UsageError for a name that is none of text, json, github, sarif.
absl::StatusOr<ReportFormat> ParseReportFormat(absl::string_view name);

// All of it, ending with a newline, in the order of `models`:
//   text    path:line:column: severity: message [rule]   and a fix below
//   json    {"models": [{"model", "model_type", "findings": [...]}], "errors", "warnings"}
//   github  workflow commands, which annotate the files of a change
//   sarif   SARIF 2.1.0, for code scanning
std::string Report(ReportFormat format, const std::vector<CheckedModel>& models);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_REPORT_H_
