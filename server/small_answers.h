// Small answers that were given before, by the bytes of their requests.
//
// An answer follows from its request alone, so one that is asked for again needs
// neither parsing nor computing, nor a thread of the pool: it is given where the
// request came in, at about the cost of an empty call.
#ifndef POSENC_SERVER_SMALL_ANSWERS_H_
#define POSENC_SERVER_SMALL_ANSWERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "lib/cache/single_flight_cache.h"

namespace posenc::server {

// A whole answer: one message.
struct SmallAnswer {
  grpc::ByteBuffer message;
  uint64_t table_bytes = 0;  // of a table in it

  size_t bytes() const { return message.Length() + 512; }  // with what holds it, roughly
};

// Thread-safe.
class SmallAnswers {
 public:
  static constexpr size_t kMaxRequestBytes = size_t{16} << 10;
  static constexpr size_t kMaxAnswerBytes = size_t{64} << 10;

  explicit SmallAnswers(size_t budget_bytes) : answers_(budget_bytes) {}

  // What Find and Keep know a request by; empty for one that is too large for them.
  static std::string KeyOf(absl::string_view method, const grpc::ByteBuffer& request);

  // Null when there is none.
  std::shared_ptr<const SmallAnswer> Find(const std::string& key);

  // Keeps an answer that is small enough.
  void Keep(const std::string& key, const grpc::ByteBuffer& message, uint64_t table_bytes);

 private:
  SingleFlightCache<SmallAnswer> answers_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_SMALL_ANSWERS_H_
