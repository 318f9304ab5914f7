#include "lib/base/hash.h"

#include "absl/strings/str_format.h"
#include "xxhash.h"

namespace posenc {

std::string Hash128(absl::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

uint64_t Hash64(absl::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace posenc
