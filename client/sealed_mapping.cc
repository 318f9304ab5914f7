#include "client/sealed_mapping.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace posenc {
namespace {

constexpr int kAllSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

absl::Status CheckSealed(int fd, uint64_t bytes) {
  const int seals = fcntl(fd, F_GET_SEALS);  // fails for all but memory files
  if (seals < 0) return absl::DataLossError("shared memory: the descriptor is no memfd");
  if ((seals & kAllSeals) != kAllSeals) {
    return absl::DataLossError(absl::StrCat("shared memory: is not sealed, its seals are ",
                                            absl::Hex(seals), " of ", absl::Hex(kAllSeals)));
  }
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) ||
      static_cast<uint64_t>(info.st_size) != bytes) {
    return absl::DataLossError(
        absl::StrCat("shared memory: has ", info.st_size, " bytes, the table ", bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const SealedMapping>> SealedMapping::Map(int fd, uint64_t bytes) {
  if (bytes == 0) return std::shared_ptr<const SealedMapping>(new SealedMapping(std::nullopt));
  std::optional<FileMapping> file = FileMapping::Map(fd, 0, bytes);
  if (!file.has_value()) {
    return absl::UnavailableError(absl::StrCat("shared memory: mmap: ", std::strerror(errno)));
  }
  return std::shared_ptr<const SealedMapping>(new SealedMapping(std::move(file)));
}

absl::StatusOr<std::shared_ptr<const SealedMapping>> SealedMappings::Find(int fd, uint64_t bytes) {
  if (absl::Status status = CheckSealed(fd, bytes); !status.ok()) return status;
  struct stat info = {};
  if (fstat(fd, &info) != 0) return absl::UnavailableError("shared memory: fstat");
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(mappings_, [](const auto& one) { return one.second.expired(); });
  std::weak_ptr<const SealedMapping>& known = mappings_[{info.st_dev, info.st_ino}];
  if (auto mapping = known.lock()) return mapping;
  absl::StatusOr<std::shared_ptr<const SealedMapping>> mapping = SealedMapping::Map(fd, bytes);
  if (mapping.ok()) known = *mapping;
  return mapping;
}

}  // namespace posenc
