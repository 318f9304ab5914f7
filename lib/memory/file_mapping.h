// Part of a file in memory, where the system can map huge pages, and such pages.
#ifndef POSENC_LIB_MEMORY_FILE_MAPPING_H_
#define POSENC_LIB_MEMORY_FILE_MAPPING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace posenc {

// What an entry of the second level of a page table covers, on x86-64 and on arm64
// with pages of 4 KiB.
inline constexpr uint64_t kHugePage = uint64_t{2} << 20;

// Thread-compatible.
class FileMapping {
 public:
  // For reading, shared with all who have the file, at an address that is a multiple of
  // kHugePage. nullopt when the system refuses; errno says why.
  // REQUIRES: offset is a multiple of kHugePage; the file reaches to offset + bytes;
  // bytes > 0.
  static std::optional<FileMapping> Map(int fd, uint64_t offset, uint64_t bytes);
  ~FileMapping();

  FileMapping(FileMapping&& other) noexcept
      : room_(std::exchange(other.room_, {})), bytes_(std::exchange(other.bytes_, {})) {}
  FileMapping& operator=(FileMapping&&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit FileMapping(std::span<std::byte> room) : room_(room) {}

  std::span<std::byte> room_;  // addresses of its own, unmapped in the end
  std::span<const std::byte> bytes_;
};

// Makes the kHugePage bytes of a memfd from `offset` on one huge page; what is written
// in them stays. Who maps them with a FileMapping takes one page fault for all of them,
// and one entry of the buffers that translate addresses. False, and nothing changed,
// where the system does not: before Linux 6.1, or without memory in one piece.
// REQUIRES: offset is a multiple of kHugePage, and the file reaches beyond them.
bool MakeHugePage(int fd, uint64_t offset);

}  // namespace posenc

#endif  // POSENC_LIB_MEMORY_FILE_MAPPING_H_
