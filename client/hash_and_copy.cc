#include "client/hash_and_copy.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "lib/memory/stream_copy.h"

namespace posenc {
namespace {

// So much is hashed, and then copied, as still lies in the cache of the first level.
constexpr size_t kPartBytes = size_t{16} << 10;

void CopyPart(std::span<const std::byte> part, CopyTarget* target) {
  if (target->to == nullptr) return;
  if (target->past_caches) {
    StreamCopy(part, target->to);
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
  if (target.past_caches) FinishStreams();
  return checksum.Digest64();
}

}  // namespace posenc
