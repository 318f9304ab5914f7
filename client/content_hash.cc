#include "client/content_hash.h"

#include "absl/strings/str_format.h"
#include "xxhash.h"

namespace posenc {

ContentHash::ContentHash() : state_(XXH3_createState()) { XXH3_128bits_reset(state_.get()); }

void ContentHash::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

void ContentHash::Update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

std::string ContentHash::Hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

}  // namespace posenc
