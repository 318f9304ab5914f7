#include "client/hash_and_copy.h"

#include <algorithm>
#include <cstring>
#include <span>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace posenc {
namespace {

// So much is hashed, and then copied, as still lies in the cache of the first level.
constexpr size_t kPartBytes = size_t{16} << 10;

#ifdef __SSE2__

constexpr size_t kLine = 64;

void StreamLine(const std::byte* from, std::byte* to) {
  const auto* const in = reinterpret_cast<const __m128i*>(from);
  auto* const out = reinterpret_cast<__m128i*>(to);
  for (int i = 0; i < 4; ++i) _mm_stream_si128(out + i, _mm_loadu_si128(in + i));
}

void CopyPastCaches(std::span<const std::byte> from, std::byte* to) {
  const size_t head = std::min<size_t>(from.size(), -reinterpret_cast<uintptr_t>(to) % kLine);
  std::memcpy(to, from.data(), head);
  size_t at = head;
  for (; at + kLine <= from.size(); at += kLine) StreamLine(from.data() + at, to + at);
  std::memcpy(to + at, from.data() + at, from.size() - at);
}

// Until then another thread may see old bytes.
void FinishCopiesPastCaches() { _mm_sfence(); }

#else

void CopyPastCaches(std::span<const std::byte> from, std::byte* to) {
  std::memcpy(to, from.data(), from.size());
}

void FinishCopiesPastCaches() {}

#endif

void CopyPart(std::span<const std::byte> part, CopyTarget* target) {
  if (target->to == nullptr) return;
  if (target->past_caches) {
    CopyPastCaches(part, target->to);
  } else {
    std::memcpy(target->to, part.data(), part.size());
  }
  target->to += part.size();
}

}  // namespace

uint64_t HashAndCopy(const TableChunk& chunk, Xxh3* whole, CopyTarget target) {
  Xxh3 checksum;
  const auto take = [&](std::span<const std::byte> piece) {
    while (!piece.empty()) {
      const std::span<const std::byte> part = piece.first(std::min(piece.size(), kPartBytes));
      if (whole != nullptr) {
        Xxh3::UpdateBoth(part, &checksum, whole);
      } else {
        checksum.Update(part);
      }
      CopyPart(part, &target);
      piece = piece.subspan(part.size());
    }
  };
  take(chunk.data);
  for (const std::span<const std::byte> piece : chunk.more_data) take(piece);
  if (target.past_caches) FinishCopiesPastCaches();
  return checksum.Digest64();
}

}  // namespace posenc
