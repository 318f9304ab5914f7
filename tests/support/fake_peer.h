// A peer of the client library that does as a test says: it keeps to the protocol
// of GetTable until the test bends its messages.
#ifndef POSENC_TESTS_SUPPORT_FAKE_PEER_H_
#define POSENC_TESTS_SUPPORT_FAKE_PEER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "posenc/client.h"
#include "posenc/mock_connection.h"

namespace posenc::testing {

struct FakeTable {
  v1::TableHeader header;
  std::string bytes;
};

// Two float32 tensors, `cos` and `sin`, of `elements` each, and bytes that look
// random but follow from `elements`.
FakeTable MakeFakeTable(int64_t elements);

// One stream: its messages, then how it ends.
struct Attempt {
  std::vector<v1::GetTableResponse> messages;
  absl::Status end;

  // The first `count` messages only, then `status`.
  Attempt CutAfter(size_t count, absl::Status status) &&;
};

// What an honest server answers, in chunks of `chunk_bytes`.
Attempt Serve(const FakeTable& table, const v1::GetTableRequest& request, size_t chunk_bytes);

// Sets the checksum that belongs to the data.
void Seal(v1::GetTableResponse* message);

// UNAVAILABLE, and the same with a RetryInfo detail.
absl::Status Gone();
absl::Status GoneFor(absl::Duration delay);

// The unary calls are gmock's; a stream is what `script` makes of the request
// and the number of attempts before it.
class FakeConnection : public MockConnection {
 public:
  using Script = std::function<Attempt(const v1::GetTableRequest&, size_t attempt)>;

  explicit FakeConnection(Script script);

  // Those of all attempts so far.
  const std::vector<v1::GetTableRequest>& requests() const { return requests_; }

 private:
  Script script_;
  std::vector<v1::GetTableRequest> requests_;
};

// Time that passes by sleeping only, and chance that always draws `random`.
struct FakeTime {
  absl::Time now = absl::UnixEpoch();
  std::vector<absl::Duration> sleeps;
  double random = 0;
};

// Options that use `time`, which must outlive the client.
ClientOptions OptionsWith(FakeTime* time);

}  // namespace posenc::testing

#endif  // POSENC_TESTS_SUPPORT_FAKE_PEER_H_
