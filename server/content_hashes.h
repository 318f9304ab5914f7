// The content hashes of tables that were sent: a table's bytes follow from its
// header, and so does their hash, so it is computed once, not at every reading.
//
// The key is the whole serialized header, not the table_id in it: that is a hash,
// and short of telling apart what somebody made to collide.
#ifndef POSENC_SERVER_CONTENT_HASHES_H_
#define POSENC_SERVER_CONTENT_HASHES_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "lib/cache/single_flight_cache.h"

namespace posenc::server {

// Thread-safe.
class ContentHashes {
 public:
  // As lower-case hex digits, if it is known.
  std::optional<std::string> Find(absl::string_view header) {
    const auto found = hashes_.Find(header);
    if (found == nullptr) return std::nullopt;
    return found->hex;
  }

  void Keep(absl::string_view header, std::string hex) {
    if (header.size() > kMaxHeaderBytes) return;
    hashes_.FindOrMake(header, [&] { return std::make_shared<const Hash>(std::move(hex)); });
  }

 private:
  struct Hash {
    explicit Hash(std::string digits) : hex(std::move(digits)) {}
    size_t bytes() const { return 256; }  // with what the cache needs for it, roughly
    const std::string hex;
  };

  // A header that echoes more position ids than this would push out many others.
  static constexpr size_t kMaxHeaderBytes = size_t{16} << 10;

  SingleFlightCache<Hash> hashes_{size_t{4} << 20};  // some 8000 tables
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_CONTENT_HASHES_H_
