// Ends connections whose peer is there and does not read.
//
// gRPC waits for a socket that takes no more as long as the socket is open: what was
// called on it cannot be cancelled meanwhile and holds its place. (A peer that is not
// there any more is found by keepalive, one that closes its HTTP/2 window by
// StallWatchdog.)
#ifndef POSENC_SERVER_CONNECTION_WATCHDOG_H_
#define POSENC_SERVER_CONNECTION_WATCHDOG_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "lib/base/file_descriptor.h"
#include "server/connections.h"
#include "server/wake_up.h"

namespace posenc::server {

class ConnectionWatchdog {
 public:
  // While bytes wait for it, a TCP peer must take `least_bytes` in `stall_timeout`; a peer at
  // a Unix socket three quarters of what the socket holds, which the system tells, where it
  // does not count. A timeout of zero never ends a connection.
  // UNAVAILABLE when there is no descriptor. `connections` outlives this.
  static absl::StatusOr<std::unique_ptr<ConnectionWatchdog>> Start(
      std::chrono::nanoseconds stall_timeout, uint64_t least_bytes, Connections* connections);
  ~ConnectionWatchdog();

  ConnectionWatchdog(const ConnectionWatchdog&) = delete;
  ConnectionWatchdog& operator=(const ConnectionWatchdog&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  // What could be seen of a connection when its peer had last taken enough.
  struct Look {
    std::optional<uint64_t> taken;  // by the peer; none of a Unix socket
    Clock::time_point at;
  };

  ConnectionWatchdog(std::chrono::nanoseconds stall_timeout, uint64_t least_bytes,
                     Connections* connections, FileDescriptor epoll, std::shared_ptr<WakeUp> wake);

  void Run();
  void WaitUntil(Clock::time_point end);
  void LookAtAll();
  bool IsStuck(const Connection& connection, Look* look) const;
  bool AskWhenTaken(const Connection& connection) const;

  const std::chrono::nanoseconds stall_timeout_;
  const uint64_t least_bytes_;
  Connections* const connections_;
  const FileDescriptor epoll_;  // of Unix sockets, each until it can be written once
  const std::shared_ptr<WakeUp> wake_;
  std::atomic<bool> stopping_{false};

  // The thread's own, by socket.
  absl::flat_hash_map<ino_t, Look> last_looks_;
  absl::flat_hash_set<ino_t> taken_from_;  // Unix sockets that could be, since the last look
  std::thread thread_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_CONNECTION_WATCHDOG_H_
