// LongT5's transient global blocks: which block of tokens each token belongs to.
//
// Tokens of a trailing block that is not full of attended tokens ("orphans") join
// the block before; pads belong to none, -1 (Guo et al., arXiv:2112.07916; transformers,
// _make_global_fixed_block_ids). Integers here, float32 sums of 1 / block_size there:
// equal as long as those do not drift across an integer.
#ifndef POSENC_LIB_FAMILIES_LONGT5_BLOCKS_H_
#define POSENC_LIB_FAMILIES_LONGT5_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace posenc {

// [attended.size()], where a byte is 1 for a token and 0 for a pad.
// REQUIRES: block_size >= 1.
std::vector<int32_t> LongT5BlockIds(absl::string_view attended, int64_t block_size);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_LONGT5_BLOCKS_H_
