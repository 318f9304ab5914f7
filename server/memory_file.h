// A table's bytes in a memfd: written once, then sealed for ever, in huge pages as far
// as it fills them and the system has them.
//
// Sealed, nobody can change, shrink, grow or unseal it, whoever holds a
// descriptor: so it may be given away, and mapped without fear of a SIGBUS.
#ifndef POSENC_SERVER_MEMORY_FILE_H_
#define POSENC_SERVER_MEMORY_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/file_descriptor.h"

namespace posenc::server {

// Not thread-safe until it is sealed; then it does not change.
class MemoryFile {
 public:
  // For that many bytes. UNAVAILABLE when the system gives none.
  static absl::StatusOr<MemoryFile> Create(uint64_t bytes);

  // UNAVAILABLE when there is no memory.
  // REQUIRES: what was appended and these are not more than the file is for.
  absl::Status Append(std::span<const std::byte> bytes);

  // REQUIRES: every byte was appended.
  absl::Status Seal();

  // To give away once it is sealed; open for reading only.
  int fd() const { return fd_.get(); }
  uint64_t bytes() const { return bytes_; }

 private:
  MemoryFile(FileDescriptor fd, uint64_t bytes) : fd_(std::move(fd)), bytes_(bytes) {}

  void MakeHugePages(uint64_t end);

  FileDescriptor fd_;
  uint64_t bytes_;
  uint64_t written_ = 0;
  uint64_t prepared_ = 0;  // huge pages up to here were made, or cannot be
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_MEMORY_FILE_H_
