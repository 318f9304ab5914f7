// The content hashes of tables that were sent: a table's bytes follow from its id,
// and so does their hash, so it is computed once, not at every reading.
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
  std::optional<std::string> Find(absl::string_view table_id) {
    const auto found = hashes_.Find(table_id);
    if (found == nullptr) return std::nullopt;
    return found->hex;
  }

  void Keep(absl::string_view table_id, std::string hex) {
    hashes_.FindOrMake(table_id, [&] { return std::make_shared<const Hash>(std::move(hex)); });
  }

 private:
  struct Hash {
    explicit Hash(std::string digits) : hex(std::move(digits)) {}
    size_t bytes() const { return 256; }  // with what the cache needs for it, roughly
    const std::string hex;
  };

  SingleFlightCache<Hash> hashes_{size_t{2} << 20};  // some 7000 tables
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_CONTENT_HASHES_H_
