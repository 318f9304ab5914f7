// Memory that costs nothing but its bandwidth: mapped once, faulted in.
#ifndef POSENC_TESTS_BENCH_MEMORY_H_
#define POSENC_TESTS_BENCH_MEMORY_H_

#include <cstddef>
#include <span>

namespace posenc::bench {

class Region {
 public:
  explicit Region(size_t bytes);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::span<std::byte> bytes() const { return {data_, bytes_}; }

 private:
  size_t bytes_;
  std::byte* data_;
};

// The limit L: non-temporal stores of a constant over all of `out`, the widest
// that the CPU has. REQUIRES: a multiple of 64 bytes, aligned to them.
void StoreAll(std::span<std::byte> out);

}  // namespace posenc::bench

#endif  // POSENC_TESTS_BENCH_MEMORY_H_
