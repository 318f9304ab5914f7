// What the process returns; scripts depend on it.
#ifndef POSENC_CLIENT_CLI_EXIT_CODE_H_
#define POSENC_CLIENT_CLI_EXIT_CODE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace posenc::cli {

enum ExitCode {
  kDone = 0,
  kRefused = 1,      // the input
  kUsage = 2,        // of the command line
  kUnreachable = 3,  // the server: not reached in time, or full
  kFile = 4,         // could not be read or written
  kInternal = 5,
};

// The command line is wrong: "--positions: must be B:E, got 5".
absl::Status UsageError(absl::string_view message);

// A file: "out.npy: Permission denied", from errno `error`.
absl::Status FileError(absl::string_view path, int error);
absl::Status FileError(absl::string_view path, absl::string_view message);

// By the two markers above, else by the status code.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_EXIT_CODE_H_
