// Files that the tool reads, with a cap on their size.
#ifndef POSENC_CLIENT_CLI_INPUT_H_
#define POSENC_CLIENT_CLI_INPUT_H_

#include <cstddef>
#include <cstdint>
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

struct FilePart {
  std::string content;      // shorter than was asked for where the file ends
  uint64_t file_bytes = 0;  // of all of it
};

// Up to `bytes` bytes from `offset` on. FileError.
absl::StatusOr<FilePart> ReadPart(const std::string& path, uint64_t offset, uint64_t bytes);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_INPUT_H_
