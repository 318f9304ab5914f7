#include "tests/bench/memory.h"

#include <immintrin.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace posenc::bench {
namespace {

__attribute__((target("avx512f"))) void StoreAvx512(std::byte* data, size_t bytes) {
  const __m512i value = _mm512_set1_epi32(0x3f800000);
  for (size_t at = 0; at < bytes; at += 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(data + at), value);
  }
  _mm_sfence();
}

void StoreSse2(std::byte* data, size_t bytes) {
  const __m128i value = _mm_set1_epi32(0x3f800000);
  for (size_t at = 0; at < bytes; at += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(data + at), value);
  }
  _mm_sfence();
}

}  // namespace

Region::Region(size_t bytes) : bytes_(bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) std::abort();
  data_ = static_cast<std::byte*>(data);
  madvise(data, bytes, MADV_HUGEPAGE);
  std::memset(data, 1, bytes);
}

Region::~Region() { munmap(data_, bytes_); }

void StoreAll(std::span<std::byte> out) {
  if (__builtin_cpu_supports("avx512f")) {
    StoreAvx512(out.data(), out.size());
  } else {
    StoreSse2(out.data(), out.size());
  }
}

}  // namespace posenc::bench
