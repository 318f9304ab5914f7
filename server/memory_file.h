// A table's bytes in a memfd: written once, then sealed for ever.
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
  // An empty one. UNAVAILABLE when the system gives none.
  static absl::StatusOr<MemoryFile> Create();

  // UNAVAILABLE when there is no memory.
  absl::Status Append(std::span<const std::byte> bytes);

  // After the last byte.
  absl::Status Seal();

  // To give away once it is sealed; open for reading only.
  int fd() const { return fd_.get(); }
  uint64_t bytes() const { return bytes_; }

 private:
  explicit MemoryFile(FileDescriptor fd) : fd_(std::move(fd)) {}

  FileDescriptor fd_;
  uint64_t bytes_ = 0;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_MEMORY_FILE_H_
