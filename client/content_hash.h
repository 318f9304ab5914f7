// XXH3-128 of a byte stream, as a table's content_hash is written.
#ifndef POSENC_CLIENT_CONTENT_HASH_H_
#define POSENC_CLIENT_CONTENT_HASH_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

struct XXH3_state_s;

namespace posenc {

class ContentHash {
 public:
  ContentHash();

  void Update(std::span<const std::byte> bytes);

  // Of all bytes so far: 32 lower-case hex digits, most significant first.
  std::string Hex() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace posenc

#endif  // POSENC_CLIENT_CONTENT_HASH_H_
