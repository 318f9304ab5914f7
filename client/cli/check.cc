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

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "client/cli/apply_fix.h"
#include "client/cli/compare.h"
#include "client/cli/compare_fixes.h"
#include "client/cli/exit_code.h"
#include "client/cli/input.h"
#include "client/cli/names.h"
#include "client/cli/output_file.h"
#include "client/cli/report.h"
#include "lib/model_config/fact_place.h"

namespace posenc::cli {
namespace {

// The models that an argument names: itself, or every config.json below a folder, but for what
// lies in folders whose names begin with a dot (.git, .cache): nobody's own models.
absl::StatusOr<std::vector<std::string>> ModelsOf(const std::string& argument) {
  std::error_code error;
  if (!std::filesystem::is_directory(argument, error)) return std::vector<std::string>{argument};
  std::vector<std::string> found;
  using Walk = std::filesystem::recursive_directory_iterator;
  for (Walk walk(argument, error); !error && walk != Walk(); walk.increment(error)) {
    if (walk->path().filename().native().front() == '.') {
      walk.disable_recursion_pending();
      continue;
    }
    if (walk->path().filename() == "config.json") found.push_back(walk->path().string());
  }
  if (error) return FileError(argument, error.message());
  if (found.empty()) return FileError(argument, "has no config.json in it or below");
  std::sort(found.begin(), found.end());
  return found;
}

// How the models are read; the base is read without the overrides.
struct Reading {
  const Client& client;
  v1::Compat compat;
  std::string overrides;
};

absl::StatusOr<v1::ResolveModelConfigResponse> Resolve(const Reading& reading,
                                                       const std::string& config_json) {
  v1::ResolveModelConfigRequest request;
  request.mutable_model()->set_config_json(config_json);
  request.mutable_model()->set_compat(reading.compat);
  request.mutable_model()->set_overrides_json(reading.overrides);
  return reading.client.ResolveModelConfig(request);
}

absl::StatusOr<ResolvedFile> ResolveFile(const Reading& reading, std::string config_json) {
  absl::StatusOr<v1::ResolveModelConfigResponse> response = Resolve(reading, config_json);
  if (!response.ok()) return response.status();
  return ResolvedFile{std::move(config_json), *std::move(response)};
}

// A refusal without the name that requests have for the file; which it is, its place says.
std::string MessageOf(const absl::Status& status) {
  absl::string_view message = status.message();
  for (absl::string_view document : {"config_json", "overrides_json"}) {
    if (!absl::ConsumePrefix(&message, document)) continue;
    if (!absl::ConsumePrefix(&message, "/")) absl::ConsumePrefix(&message, ": ");
    break;
  }
  return absl::StrReplaceAll(message, {{"contradicts config_json/", "contradicts "}});
}

// Where a refusal is, what is there and what is asked for: the library says.
v1::Finding RefusedFinding(const absl::Status& status) {
  v1::Finding finding;
  finding.set_severity(v1::SEVERITY_ERROR);
  finding.set_rule("config-refused");
  finding.set_message(MessageOf(status));
  const auto payload = status.GetPayload(kFactPlaceUrl);
  v1::FactPlace place;
  if (!payload || !place.ParseFromString(std::string(*payload))) return finding;
  PointAt(place, &finding);
  finding.set_found(place.found());
  finding.set_expected(place.expected());
  return finding;
}

// Adds what is to say of a config; a status is what kept us from saying it.
absl::Status AddFindings(const Reading& reading, const ResolvedFile* base,
                         const std::string& config_json, CheckedModel* checked) {
  const absl::StatusOr<ResolvedFile> model = ResolveFile(reading, config_json);
  if (!model.ok()) return model.status();
  const v1::ResolveModelConfigResponse& response = model->response;
  checked->model_type = response.model_type();
  checked->findings.assign(response.findings().begin(), response.findings().end());
  if (base == nullptr) return absl::OkStatus();
  absl::StatusOr<std::vector<Difference>> differences =
      CompareWithBase(reading.client, base->response, response);
  if (!differences.ok()) return differences.status();
  const absl::Status offered = OfferFixes(
      reading.client, *base, *model,
      [&](const std::string& fixed) { return Resolve(reading, fixed); }, &*differences);
  if (!offered.ok()) return offered;
  for (const Difference& difference : *differences) {
    const v1::Finding finding = FindingOf(difference);
    // Two that contradict each other are no help; the base knows better than a rule.
    for (int i = 0; i < response.findings_size() && !finding.fix().empty(); ++i) {
      v1::Finding& own = checked->findings[static_cast<size_t>(i)];
      if (!own.fix().empty() && FixesContradict(config_json, own, finding)) {
        own.clear_fix();
        own.clear_fix_pointer();
      }
    }
    checked->findings.push_back(finding);
  }
  return absl::OkStatus();
}

// A config that is wrong is a finding; a status is what kept us from reading it.
absl::StatusOr<CheckedModel> Check(const Reading& reading, const ResolvedFile* base,
                                   const std::string& path) {
  CheckedModel checked{path, "", {}, {}};
  const absl::StatusOr<std::string> config_json = ReadModel(path);
  const absl::Status status =
      config_json.ok() ? AddFindings(reading, base, *config_json, &checked) : config_json.status();
  if (!status.ok() && ExitCodeOf(status) != kRefused) return status;
  if (!status.ok()) checked.findings.push_back(RefusedFinding(status));
  SetColumns(config_json.ok() ? *config_json : "", &checked);
  return checked;
}

// The least severity that fails; none for "never".
absl::StatusOr<std::optional<v1::Severity>> ParseFailOn(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  if (lower == "error") return v1::SEVERITY_ERROR;
  if (lower == "warning") return v1::SEVERITY_WARNING;
  if (lower == "never") return std::nullopt;
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
  std::optional<ResolvedFile> base;
  if (arguments.base) {
    absl::StatusOr<std::string> config_json = ReadModel(*arguments.base);
    if (!config_json.ok()) return config_json.status();
    absl::StatusOr<ResolvedFile> resolved =
        ResolveFile({client, *compat, ""}, *std::move(config_json));
    if (!resolved.ok()) return resolved.status();
    base = *std::move(resolved);
  }

  const Reading reading = {client, *compat, arguments.hf_overrides};
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
      absl::StatusOr<CheckedModel> result = Check(reading, base ? &*base : nullptr, model);
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
