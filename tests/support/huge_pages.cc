#include "tests/support/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace posenc::testing {

bool SystemMakesHugePages() {
  constexpr uint64_t kHuge = uint64_t{2} << 20;
  constexpr int kCollapse = 25;  // MADV_COLLAPSE
  const int fd = memfd_create("probe", MFD_CLOEXEC);
  const std::string page(4096, 'x');
  bool makes = ftruncate(fd, kHuge) == 0 && write(fd, page.data(), page.size()) > 0;
  void* const room = mmap(nullptr, 2 * kHuge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto begin = (reinterpret_cast<uintptr_t>(room) + kHuge - 1) / kHuge * kHuge;
  void* const at =
      mmap(reinterpret_cast<void*>(begin), kHuge, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
  makes = makes && at != MAP_FAILED && madvise(at, kHuge, kCollapse) == 0;
  munmap(room, 2 * kHuge);
  close(fd);
  return makes;
}

uint64_t HugeBytesAt(const void* address) {
  std::ifstream smaps("/proc/self/smaps");
  std::string line;
  bool here = false;
  while (std::getline(smaps, line)) {
    if (line.find('-') != std::string::npos && line.find(':') > line.find('-')) {
      here = std::stoull(line, nullptr, 16) == reinterpret_cast<uintptr_t>(address);
    } else if (here && line.starts_with("ShmemPmdMapped:")) {
      return std::stoull(line.substr(line.find(':') + 1)) * 1024;
    }
  }
  return 0;
}

}  // namespace posenc::testing
