// Memory for pages that is used again instead of given back to the system.
//
// Touching a fresh megabyte costs some 250 page faults, several times what it
// takes to fill it. So blocks of about a page's size come faulted in and go back
// to a free list; once as many blocks exist as are in use at the same time, the
// request path allocates and faults nothing.
#ifndef POSENC_LIB_CACHE_BLOCK_POOL_H_
#define POSENC_LIB_CACHE_BLOCK_POOL_H_

#include <cstddef>
#include <mutex>
#include <vector>

namespace posenc {

// Thread-safe. Outlives its blocks: whoever holds one holds the pool.
class BlockPool {
 public:
  // Every block starts at a multiple of this: kernels store whole vectors there.
  static constexpr size_t kAlignment = 64;

  // Blocks have block_bytes; the free ones kept are at most max_free_bytes.
  BlockPool(size_t block_bytes, size_t max_free_bytes);
  ~BlockPool();

  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // At least `bytes` bytes of any content. What is much smaller than a block, or
  // larger, is allocated for itself.
  std::byte* Take(size_t bytes);
  // REQUIRES: data comes from Take(bytes).
  void Give(std::byte* data, size_t bytes);

  size_t free_blocks() const;

 private:
  // Whether so many bytes come as a block: less would waste most of it.
  bool IsBlock(size_t bytes) const { return bytes <= block_bytes_ && bytes >= block_bytes_ / 8; }

  const size_t block_bytes_;
  const size_t max_free_blocks_;

  // While mutex_ is free, free_ holds the blocks that nobody has, at most
  // max_free_blocks_. Nobody waits.
  mutable std::mutex mutex_;
  std::vector<std::byte*> free_;
};

}  // namespace posenc

#endif  // POSENC_LIB_CACHE_BLOCK_POOL_H_
