#include "client/cli/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/cli/hub_cache.h"

namespace posenc::cli {
namespace {

// All that `fd` has; `name` stands in errors.
absl::StatusOr<std::string> ReadToEnd(int fd, const std::string& name) {
  std::string content;
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(name, errno);
    if (count == 0) return content;
    content.append(buffer, static_cast<size_t>(count));
    if (content.size() > kMaxInputBytes) {
      // It could be read: what it is, is refused.
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": must be at most ", kMaxInputBytes, " bytes, is larger"));
    }
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError(path, errno);
  absl::StatusOr<std::string> content = ReadToEnd(fd, path);
  close(fd);
  return content;
}

absl::StatusOr<FilePart> ReadPartOf(int fd, const std::string& path, uint64_t offset,
                                    uint64_t bytes) {
  struct stat info;
  if (fstat(fd, &info) != 0) return FileError(path, errno);
  if (!S_ISREG(info.st_mode)) return FileError(path, "is no file");
  FilePart part;
  part.file_bytes = static_cast<uint64_t>(info.st_size);
  if (offset >= part.file_bytes) return part;
  part.content.resize(std::min(bytes, part.file_bytes - offset));
  size_t done = 0;
  while (done < part.content.size()) {
    const ssize_t count = pread(fd, part.content.data() + done, part.content.size() - done,
                                static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(path, errno);
    if (count == 0) break;  // it was cut meanwhile
    done += static_cast<size_t>(count);
  }
  part.content.resize(done);
  return part;
}

}  // namespace

absl::StatusOr<FilePart> ReadPart(const std::string& path, uint64_t offset, uint64_t bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError(path, errno);
  absl::StatusOr<FilePart> part = ReadPartOf(fd, path, offset, bytes);
  close(fd);
  return part;
}

absl::StatusOr<std::string> ReadModel(const std::string& model) {
  if (model == "-") return ReadToEnd(STDIN_FILENO, "stdin");
  struct stat info;
  const bool exists = stat(model.c_str(), &info) == 0;
  if (!exists && IsHubName(model)) {
    const absl::StatusOr<std::string> cached = FindInHubCache(model);
    if (!cached.ok()) return cached.status();
    return ReadFile(*cached);
  }
  const bool is_folder = exists && S_ISDIR(info.st_mode);
  return ReadFile(is_folder ? absl::StrCat(model, "/config.json") : model);
}

absl::StatusOr<std::string> ReadSpec(const std::string& spec) {
  if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(spec), "{")) return spec;
  return ReadFile(spec);
}

}  // namespace posenc::cli
