// A run of consecutive elements of one tensor, as bytes. Immutable once shared.
#ifndef POSENC_LIB_CACHE_PAGE_H_
#define POSENC_LIB_CACHE_PAGE_H_

#include <cstddef>
#include <memory>
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

 private:
  const size_t bytes_;
  const std::shared_ptr<BlockPool> pool_;
  std::byte* const data_;
};

}  // namespace posenc

#endif  // POSENC_LIB_CACHE_PAGE_H_
