// XXH3-128 of a table's bytes as they are made: the content_hash of the protocol.
#ifndef POSENC_SERVER_CONTENT_HASH_H_
#define POSENC_SERVER_CONTENT_HASH_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/strings/str_format.h"
#include "xxhash.h"

namespace posenc::server {

class ContentHash {
 public:
  ContentHash() : state_(XXH3_createState()) { XXH3_128bits_reset(state_.get()); }

  void Update(std::span<const std::byte> bytes) {
    XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  }

  // Of all bytes so far: 32 lower-case hex digits, most significant first.
  std::string Hex() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_CONTENT_HASH_H_
