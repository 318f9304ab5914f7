#include "lib/families/longt5_blocks.h"

#include <algorithm>

namespace posenc {

std::vector<int32_t> LongT5BlockIds(absl::string_view attended, int64_t block_size) {
  const auto length = static_cast<int64_t>(attended.size());
  // A block counts as full when its last token is attended.
  int32_t last_full_block = -1;
  for (int64_t end = block_size - 1; end < length; end += block_size) {
    last_full_block += attended[static_cast<size_t>(end)] != 0;
  }
  std::vector<int32_t> ids(attended.size(), -1);
  for (int64_t token = 0; token < length; ++token) {
    if (attended[static_cast<size_t>(token)] == 0) continue;
    ids[static_cast<size_t>(token)] =
        std::min(static_cast<int32_t>(token / block_size), last_full_block);
  }
  return ids;
}

}  // namespace posenc
