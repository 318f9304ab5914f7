// A run of consecutive elements of one tensor, as bytes. Immutable once shared.
#ifndef POSENC_LIB_CACHE_PAGE_H_
#define POSENC_LIB_CACHE_PAGE_H_

#include <cstddef>
#include <memory>
#include <span>

namespace posenc {

class Page {
 public:
  // Kernels store whole vectors to the page's start.
  static constexpr size_t kAlignment = 64;

  explicit Page(size_t bytes);

  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  size_t bytes() const { return bytes_; }
  std::span<std::byte> mutable_data() { return {data_.get(), bytes_}; }
  std::span<const std::byte> data() const { return {data_.get(), bytes_}; }

 private:
  struct AlignedDelete {
    void operator()(std::byte* data) const;
  };

  size_t bytes_;
  std::unique_ptr<std::byte[], AlignedDelete> data_;
};

}  // namespace posenc

#endif  // POSENC_LIB_CACHE_PAGE_H_
