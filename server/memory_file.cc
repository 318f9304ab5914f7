#include "server/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "lib/memory/file_mapping.h"
#include "server/grpc_status.h"

namespace posenc::server {
namespace {

constexpr int kAllSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

absl::Status Errno(const char* what) {
  return BusyError(absl::StrCat("memory to share: ", what, ": ", std::strerror(errno)),
                   absl::Seconds(1));
}

}  // namespace

absl::StatusOr<MemoryFile> MemoryFile::Create(uint64_t bytes) {
  FileDescriptor fd(memfd_create("posenc-table", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd.get() < 0) return Errno("memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return Errno("ftruncate");
  return MemoryFile(std::move(fd), bytes);
}

// Written, not stored through a mapping: that takes no page fault a page, which
// costs more than the copy, and a lack of memory is an error and not a SIGBUS.
absl::Status MemoryFile::Append(std::span<const std::byte> bytes) {
  MakeHugePages(written_ + bytes.size());
  while (!bytes.empty()) {
    const ssize_t count =
        pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(written_));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Errno("pwrite");
    bytes = bytes.subspan(static_cast<size_t>(count));
    written_ += static_cast<uint64_t>(count);
  }
  return absl::OkStatus();
}

// Those that begin before `end`, before they are written: the system has a page to
// clear then and none to copy. It costs no more than the small pages it stands for.
void MemoryFile::MakeHugePages(uint64_t end) {
  while (prepared_ < end && prepared_ + kHugePage <= bytes_) {
    const bool made = MakeHugePage(fd_.get(), prepared_);
    prepared_ = made ? prepared_ + kHugePage : bytes_;
  }
}

// What is given away is a second opening, for reading only: until Linux 6.7 a
// sealed file that is open for writing cannot be mapped MAP_SHARED at all.
absl::Status MemoryFile::Seal() {
  if (fcntl(fd_.get(), F_ADD_SEALS, kAllSeals) != 0) return Errno("F_ADD_SEALS");
  const std::string self = absl::StrCat("/proc/self/fd/", fd_.get());
  FileDescriptor for_reading(open(self.c_str(), O_RDONLY | O_CLOEXEC));
  if (for_reading.get() < 0) return Errno("open for reading");
  fd_ = std::move(for_reading);
  return absl::OkStatus();
}

}  // namespace posenc::server
