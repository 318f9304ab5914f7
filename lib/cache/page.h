// A run of consecutive elements of one tensor, as bytes. Immutable once shared.
#ifndef POSENC_LIB_CACHE_PAGE_H_
#define POSENC_LIB_CACHE_PAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "lib/cache/block_pool.h"

namespace posenc {

class Page {
 public:
  // Takes its memory from `pool`, and gives it back; see block_pool.h.
  Page(size_t bytes, std::shared_ptr<BlockPool> pool)
      : bytes_(bytes), pool_(std::move(pool)), data_(pool_->Take(bytes)) {}
  ~Page() { pool_->Give(data_, bytes_); }

  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  size_t bytes() const { return bytes_; }
  std::span<std::byte> mutable_data() { return {data_, bytes_}; }
  std::span<const std::byte> data() const { return {data_, bytes_}; }

  // XXH3-64 of data(), when somebody who sent it has kept it here: so a page is
  // hashed once, however often it is sent. Thread-safe.
  std::optional<uint64_t> checksum() const {
    if (!has_checksum_.load(std::memory_order_acquire)) return std::nullopt;
    return checksum_.load(std::memory_order_relaxed);
  }
  void KeepChecksum(uint64_t checksum) const {
    checksum_.store(checksum, std::memory_order_relaxed);  // whoever else does has the same
    has_checksum_.store(true, std::memory_order_release);
  }

 private:
  const size_t bytes_;
  const std::shared_ptr<BlockPool> pool_;
  std::byte* const data_;
  mutable std::atomic<uint64_t> checksum_{0};
  mutable std::atomic<bool> has_checksum_{false};
};

}  // namespace posenc

#endif  // POSENC_LIB_CACHE_PAGE_H_
