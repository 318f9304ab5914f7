// A file that appears at its place whole, or not at all.
//
// It is written beside its place and renamed when it is complete: a reader never
// sees half of it, and an old file of that name stays as it was until then.
#ifndef POSENC_CLIENT_CLI_OUTPUT_FILE_H_
#define POSENC_CLIENT_CLI_OUTPUT_FILE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace posenc::cli {

// Writes all of `bytes` to `fd`; `name` stands in the FileError.
absl::Status WriteFully(int fd, std::span<const std::byte> bytes, const std::string& name);

class OutputFile {
 public:
  // Creates the file beside `path`. FileError when that cannot be done, or when
  // something that is no regular file stands there. A symbolic link is followed.
  // At most one at a time in a process: signals remove it.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path);

  // Removes what was not committed.
  ~OutputFile();

  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  absl::Status Append(std::span<const std::byte> bytes);

  // Writes over the first bytes; the place of the next Append stays.
  absl::Status OverwriteStart(std::span<const std::byte> bytes);

  // Brings it to the disk and to its place.
  absl::Status Commit();

 private:
  OutputFile(int fd, std::string temporary_path, std::string path);

  int fd_;
  const std::string temporary_path_;
  const std::string path_;
};

// From here on SIGINT, SIGTERM and SIGHUP first remove an uncommitted file, then
// end the process as they would without this. Call it before other threads start:
// a thread of its own waits for the signals, so that none arrives between the
// creation of a file and the note of its name.
void RemoveOutputOnSignals();

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_OUTPUT_FILE_H_
