#include "client/cli/exit_code.h"

#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace posenc::cli {
namespace {

// Payloads tell our own errors from a server's with the same code.
constexpr char kUsageUrl[] = "posenc.cli/usage";
constexpr char kFileUrl[] = "posenc.cli/file";

absl::Status Marked(absl::string_view url, const std::string& message) {
  absl::Status status(absl::StatusCode::kFailedPrecondition, message);
  status.SetPayload(url, absl::Cord("1"));
  return status;
}

}  // namespace

absl::Status UsageError(absl::string_view message) {
  return Marked(kUsageUrl, std::string(message));
}

absl::Status FileError(absl::string_view path, absl::string_view message) {
  return Marked(kFileUrl, absl::StrCat(path, ": ", message));
}

absl::Status FileError(absl::string_view path, int error) {
  return FileError(path, absl::string_view(std::strerror(error)));
}

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.GetPayload(kUsageUrl).has_value()) return kUsage;
  if (status.GetPayload(kFileUrl).has_value()) return kFile;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kResourceExhausted:  // larger than the server allows
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return kRefused;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
      return kUnreachable;
    default:
      return kInternal;
  }
}

}  // namespace posenc::cli
