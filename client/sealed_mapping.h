// Memory that a peer handed over as a file descriptor, mapped for reading.
#ifndef POSENC_CLIENT_SEALED_MAPPING_H_
#define POSENC_CLIENT_SEALED_MAPPING_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/memory/file_mapping.h"

namespace posenc {

// OK when `fd` is memory of exactly `bytes` bytes that nobody can write, shrink,
// grow or unseal any more: then no byte of it changes, and reading it cannot fail.
// DATA_LOSS otherwise.
absl::Status CheckSealed(int fd, uint64_t bytes);

class SealedMapping {
 public:
  // UNAVAILABLE when it cannot be mapped. The descriptor may be closed afterwards.
  // REQUIRES: CheckSealed(fd, bytes) is OK.
  static absl::StatusOr<std::shared_ptr<const SealedMapping>> Map(int fd, uint64_t bytes);

  std::span<const std::byte> bytes() const {
    return file_.has_value() ? file_->bytes() : std::span<const std::byte>();
  }

 private:
  explicit SealedMapping(std::optional<FileMapping> file) : file_(std::move(file)) {}

  const std::optional<FileMapping> file_;  // none of an empty table
};

// Mappings in use: memory that comes again is not mapped again, since a new
// mapping takes a page fault for every few pages, which costs more than to read it.
// Thread-safe.
class SealedMappings {
 public:
  // As CheckSealed and Map.
  absl::StatusOr<std::shared_ptr<const SealedMapping>> Find(int fd, uint64_t bytes);

 private:
  using Inode = std::pair<dev_t, ino_t>;  // not used anew while a mapping keeps it

  // While mutex_ is free: holds one mapping an inode, those gone out of use included
  // until the next Find.
  std::mutex mutex_;
  std::map<Inode, std::weak_ptr<const SealedMapping>> mappings_;
};

}  // namespace posenc

#endif  // POSENC_CLIENT_SEALED_MAPPING_H_
