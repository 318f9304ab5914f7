// Files that the tool reads, with a cap on their size.
#ifndef POSENC_CLIENT_CLI_INPUT_H_
#define POSENC_CLIENT_CLI_INPUT_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace posenc::cli {

// Configs have kilobytes; this keeps a wrong path (/dev/zero) from filling memory.
inline constexpr size_t kMaxInputBytes = size_t{16} << 20;

// The config.json of a MODEL: a folder, a file, - for stdin, or org/name when there
// is no such path (hub_cache.h). FileError when it cannot be read or is too large.
absl::StatusOr<std::string> ReadModel(const std::string& model);

// The JSON of --spec: the text itself when it begins with {, else a file's.
absl::StatusOr<std::string> ReadSpec(const std::string& spec);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_INPUT_H_
