#include "client/cli/output_file.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"

namespace posenc::cli {
namespace {

// Whenever `mutex` is free, `uncommitted` names the file beside its place if there
// is one, and is null if there is none. The signal thread waits for it and then
// ends the process holding it.
std::mutex mutex;
const char* uncommitted = nullptr;

sigset_t EndingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  return signals;
}

[[noreturn]] void WaitForSignal() {
  const sigset_t signals = EndingSignals();
  int number = 0;
  sigwait(&signals, &number);
  const std::lock_guard<std::mutex> lock(mutex);
  if (uncommitted != nullptr) unlink(uncommitted);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  raise(number);
  _exit(128 + number);  // not reached: nobody ignores what sigwait returned
}

// The permissions of a new file: those of the old one, else what umask leaves.
mode_t ModeFor(const std::string& path) {
  struct stat old;
  if (stat(path.c_str(), &old) == 0) return old.st_mode & 07777;
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

// `path` with links followed, so that a link is not replaced by a file.
std::string Resolved(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) != nullptr ? resolved : path;
}

}  // namespace

absl::Status WriteFully(int fd, std::span<const std::byte> bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError(name, errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path) {
  const std::string place = Resolved(path);
  struct stat old;
  if (stat(place.c_str(), &old) == 0 && !S_ISREG(old.st_mode)) {
    return FileError(path, "exists and is not a regular file");
  }
  const mode_t mode = ModeFor(place);
  const std::lock_guard<std::mutex> lock(mutex);
  std::string temporary = absl::StrCat(place, ".XXXXXX");
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return FileError(path, errno);
  fchmod(fd, mode);  // where it cannot be, the file is private: safe, and still written
  return std::unique_ptr<OutputFile>(new OutputFile(fd, std::move(temporary), place));
}

OutputFile::OutputFile(int fd, std::string temporary_path, std::string path)
    : fd_(fd), temporary_path_(std::move(temporary_path)), path_(std::move(path)) {
  uncommitted = temporary_path_.c_str();
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  const std::lock_guard<std::mutex> lock(mutex);
  close(fd_);
  unlink(temporary_path_.c_str());
  uncommitted = nullptr;
}

absl::Status OutputFile::Append(std::span<const std::byte> bytes) {
  return WriteFully(fd_, bytes, path_);
}

absl::Status OutputFile::OverwriteStart(std::span<const std::byte> bytes) {
  const off_t end = lseek(fd_, 0, SEEK_CUR);
  if (end < 0 || lseek(fd_, 0, SEEK_SET) < 0) return FileError(path_, errno);
  if (absl::Status status = Append(bytes); !status.ok()) return status;
  return lseek(fd_, end, SEEK_SET) < 0 ? FileError(path_, errno) : absl::OkStatus();
}

absl::Status OutputFile::Commit() {
  // Without fsync a crash after the rename could leave an empty file at the place.
  if (fsync(fd_) != 0) return FileError(path_, errno);
  const std::lock_guard<std::mutex> lock(mutex);
  if (std::rename(temporary_path_.c_str(), path_.c_str()) != 0) return FileError(path_, errno);
  uncommitted = nullptr;
  const int fd = std::exchange(fd_, -1);
  return close(fd) == 0 ? absl::OkStatus() : FileError(path_, errno);
}

void RemoveOutputOnSignals() {
  const sigset_t signals = EndingSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread(WaitForSignal).detach();
}

}  // namespace posenc::cli
