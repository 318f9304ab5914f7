#include "lib/memory/file_mapping.h"

#include <sys/mman.h>
#include <unistd.h>

namespace posenc {
namespace {

constexpr int kCollapse = 25;  // MADV_COLLAPSE, younger than Debian 12's sys/mman.h

std::byte* RoundUp(std::byte* address) {
  const auto past = reinterpret_cast<uintptr_t>(address) % kHugePage;
  return past == 0 ? address : address + (kHugePage - past);
}

}  // namespace

// A huge page more of addresses than it needs has room for it at a multiple.
std::optional<FileMapping> FileMapping::Map(int fd, uint64_t offset, uint64_t bytes) {
  const uint64_t room_bytes = bytes + kHugePage;
  void* const room =
      mmap(nullptr, room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return std::nullopt;
  FileMapping mapping({static_cast<std::byte*>(room), room_bytes});
  std::byte* const at = RoundUp(mapping.room_.data());
  if (mmap(at, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(offset)) ==
      MAP_FAILED) {
    return std::nullopt;
  }
  mapping.bytes_ = {at, bytes};
  return mapping;
}

FileMapping::~FileMapping() {
  if (!room_.empty()) munmap(room_.data(), room_.size());
}

// Linux collapses what has a page at least.
bool MakeHugePage(int fd, uint64_t offset) {
  std::byte first{};
  if (pread(fd, &first, 1, static_cast<off_t>(offset)) != 1 ||
      pwrite(fd, &first, 1, static_cast<off_t>(offset)) != 1) {
    return false;
  }
  const auto mapping = FileMapping::Map(fd, offset, kHugePage);
  if (!mapping.has_value()) return false;
  void* const address = const_cast<std::byte*>(mapping->bytes().data());
  return madvise(address, kHugePage, kCollapse) == 0;
}

}  // namespace posenc
