// How a Client behaves: whom it trusts, how long it waits, how often it tries.
#ifndef POSENC_OPTIONS_H_
#define POSENC_OPTIONS_H_

#include <functional>
#include <memory>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace grpc {
class ChannelCredentials;
}  // namespace grpc

namespace posenc {

// Only UNAVAILABLE is tried again: it alone says that nothing is wrong with the
// request. The n-th wait is drawn from the upper half of
// min(initial_backoff * multiplier^(n-1), max_backoff), and is never shorter
// than what the server asked for in a RetryInfo detail.
struct RetryPolicy {
  int max_attempts = 4;  // the first one counts; for a table: in a row without a new byte
  absl::Duration initial_backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(1);
  double multiplier = 2.0;
};

// Time and chance, so that a test can do without them. Unset members are the
// real thing. Called on the thread that called the client.
struct Clock {
  std::function<absl::Time()> now;
  std::function<void(absl::Duration)> sleep;
  std::function<double()> random;  // uniform in [0, 1)
};

struct ClientOptions {
  // Of the channel; null: insecure, for loopback and private networks.
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  // Of a connection to unix:PATH: take tables as memory from a server of this user
  // that was started with --share-memory. Where that fails they are streamed.
  bool share_memory = false;
  // Of a whole call but GetTable, all attempts and waits together.
  absl::Duration call_timeout = absl::Seconds(30);
  // Of GetTable: the longest wait for the next message, or for an attempt after
  // a cut. The whole may take as long as it takes.
  absl::Duration progress_timeout = absl::Seconds(20);
  RetryPolicy retry;
  Clock clock;
};

}  // namespace posenc

#endif  // POSENC_OPTIONS_H_
