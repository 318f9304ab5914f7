#include "client/cli/check.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/compare.h"
#include "client/cli/exit_code.h"
#include "client/cli/input.h"
#include "client/cli/names.h"
#include "client/cli/output_file.h"
#include "client/cli/report.h"
#include "posenc/v1/error_details.pb.h"

namespace posenc::cli {
namespace {

constexpr char kBadRequest[] = "type.googleapis.com/google.rpc.BadRequest";
constexpr char kFactPlace[] = "type.googleapis.com/posenc.v1.FactPlace";

// The models that an argument names: itself, or every config.json below a folder.
absl::StatusOr<std::vector<std::string>> ModelsOf(const std::string& argument) {
  std::error_code error;
  if (!std::filesystem::is_directory(argument, error)) return std::vector<std::string>{argument};
  std::vector<std::string> found;
  using Walk = std::filesystem::recursive_directory_iterator;
  for (Walk walk(argument, error); !error && walk != Walk(); walk.increment(error)) {
    if (walk->path().filename() == "config.json") found.push_back(walk->path().string());
  }
  if (error) return FileError(argument, error.message());
  if (found.empty()) return FileError(argument, "has no config.json in it or below");
  std::sort(found.begin(), found.end());
  return found;
}

absl::StatusOr<v1::ResolveModelConfigResponse> ResolveFile(const Client& client, v1::Compat compat,
                                                           const std::string& model) {
  absl::StatusOr<std::string> config_json = ReadModel(model);
  if (!config_json.ok()) return config_json.status();
  v1::ResolveModelConfigRequest request;
  request.mutable_model()->set_config_json(*std::move(config_json));
  request.mutable_model()->set_compat(compat);
  return client.ResolveModelConfig(request);
}

// Where in the file a refusal is: the library says, unless the file is no JSON.
std::optional<v1::FactPlace> RefusedPlace(const absl::Status& status) {
  const auto payload = status.GetPayload(kFactPlace);
  v1::FactPlace place;
  if (!payload || !place.ParseFromString(std::string(*payload))) return std::nullopt;
  return place;
}

// What a refusal asks for, of its sentence: "must be a number, got true" expects "a number",
// "contradicts ...: 8 against 4" the 4 that was there first.
std::string ExpectedOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kBadRequest);
  v1::BadRequest detail;
  if (!payload || !detail.ParseFromString(std::string(*payload)) ||
      detail.field_violations().empty()) {
    return "";
  }
  const absl::string_view rule = detail.field_violations(0).description();
  const auto after = [&](absl::string_view words) {
    const size_t at = rule.rfind(words);
    return at == absl::string_view::npos ? "" : rule.substr(at + words.size());
  };
  if (rule.find("contradicts ") == 0) return std::string(after(" against "));
  absl::string_view wanted = after("must ");
  absl::ConsumePrefix(&wanted, "be ");
  return std::string(wanted.substr(0, wanted.rfind(", got ")));
}

v1::Finding RefusedFinding(const absl::Status& status) {
  v1::Finding finding;
  finding.set_severity(v1::SEVERITY_ERROR);
  finding.set_rule("config-refused");
  if (const std::optional<v1::FactPlace> place = RefusedPlace(status)) {
    finding.set_pointer(place->pointer());
    finding.set_line(place->line());
    finding.set_column(place->column());
    finding.set_found(place->found());
  }
  finding.set_expected(ExpectedOf(status));
  finding.set_message(std::string(status.message()));
  return finding;
}

// A config that is wrong is a finding; a status is what kept us from reading it.
absl::StatusOr<CheckedModel> Check(const Client& client, v1::Compat compat,
                                   const v1::ResolveModelConfigResponse* base,
                                   const std::string& path) {
  CheckedModel checked{path, "", {}};
  const absl::StatusOr<v1::ResolveModelConfigResponse> model = ResolveFile(client, compat, path);
  if (!model.ok()) {
    if (ExitCodeOf(model.status()) != kRefused) return model.status();
    checked.findings.push_back(RefusedFinding(model.status()));
    return checked;
  }
  checked.model_type = model->model_type();
  checked.findings.assign(model->findings().begin(), model->findings().end());
  if (base != nullptr) {
    absl::StatusOr<std::vector<v1::Finding>> differences = CompareWithBase(client, *base, *model);
    if (!differences.ok()) return differences.status();
    checked.findings.insert(checked.findings.end(), differences->begin(), differences->end());
  }
  return checked;
}

// The least severity that fails; none for "never".
absl::StatusOr<std::optional<v1::Severity>> ParseFailOn(const std::string& name) {
  if (name == "error") return v1::SEVERITY_ERROR;
  if (name == "warning") return v1::SEVERITY_WARNING;
  if (name == "never") return std::nullopt;
  return UsageError(absl::StrCat("--fail-on: must be error, warning or never, got ", name));
}

int CountFailing(const std::vector<CheckedModel>& models, v1::Severity least) {
  int failing = 0;
  for (const CheckedModel& model : models) {
    for (const v1::Finding& finding : model.findings) failing += finding.severity() >= least;
  }
  return failing;
}

}  // namespace

absl::Status RunCheck(const Arguments& arguments, const Client& client) {
  const absl::StatusOr<ReportFormat> format = ParseReportFormat(arguments.report_format);
  if (!format.ok()) return format.status();
  const absl::StatusOr<std::optional<v1::Severity>> fail_on = ParseFailOn(arguments.fail_on);
  if (!fail_on.ok()) return fail_on.status();
  const absl::StatusOr<v1::Compat> compat = ParseCompat(arguments.compat);
  if (!compat.ok()) return compat.status();
  std::optional<v1::ResolveModelConfigResponse> base;
  if (arguments.base) {
    absl::StatusOr<v1::ResolveModelConfigResponse> resolved =
        ResolveFile(client, *compat, *arguments.base);
    if (!resolved.ok()) return resolved.status();
    base = *std::move(resolved);
  }

  std::vector<CheckedModel> checked;
  // The worst of what kept models from being read, which is returned; the others are printed.
  absl::Status problem;
  const auto keep = [&](absl::Status status) {
    if (problem.ok()) {
      problem = std::move(status);
      return;
    }
    if (ExitCodeOf(status) == kFile && ExitCodeOf(problem) != kFile) std::swap(problem, status);
    std::fprintf(stderr, "posenc: %s\n", std::string(status.message()).c_str());
  };
  for (const std::string& argument : arguments.models) {
    const absl::StatusOr<std::vector<std::string>> models = ModelsOf(argument);
    if (!models.ok()) {
      keep(models.status());
      continue;
    }
    for (const std::string& model : *models) {
      absl::StatusOr<CheckedModel> result = Check(client, *compat, base ? &*base : nullptr, model);
      if (result.ok()) {
        checked.push_back(*std::move(result));
      } else {
        keep(result.status());
      }
    }
  }

  const std::string report = Report(*format, checked);
  const absl::Status written =
      WriteFully(STDOUT_FILENO, std::as_bytes(std::span<const char>(report)), "stdout");
  if (!written.ok()) return written;
  if (!problem.ok()) return problem;
  const int failing = fail_on->has_value() ? CountFailing(checked, **fail_on) : 0;
  if (failing == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(failing, failing == 1 ? " finding" : " findings",
                                                 " at level ", arguments.fail_on, " or above"));
}

}  // namespace posenc::cli
