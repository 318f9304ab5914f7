// Ends connections whose peer is there and does not read.
//
// gRPC waits for a socket that takes no more as long as the socket is open: what was
// called on it cannot be cancelled meanwhile and holds its place. (A peer that is not
// there any more is found by keepalive, one that closes its HTTP/2 window by
// StallWatchdog.)
#ifndef POSENC_SERVER_CONNECTION_WATCHDOG_H_
#define POSENC_SERVER_CONNECTION_WATCHDOG_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "server/connections.h"
#include "server/periodic.h"

namespace posenc::server {

class ConnectionWatchdog {
 public:
  // Of the bytes that wait for it, a peer must take all or `least_bytes` in `stall_timeout`;
  // some, from a Unix socket, which does not know how many. A timeout of zero never ends
  // a connection. `connections` outlives this.
  ConnectionWatchdog(std::chrono::nanoseconds stall_timeout, uint64_t least_bytes,
                     Connections* connections);

  ConnectionWatchdog(const ConnectionWatchdog&) = delete;
  ConnectionWatchdog& operator=(const ConnectionWatchdog&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  // What could be seen of a connection.
  struct Progress {
    uint64_t taken;    // by the peer; 0 when nobody knows
    uint64_t waiting;  // in this system, for the peer to take some
  };
  struct Look {
    Progress progress;
    Clock::time_point since;
  };

  static Progress ProgressOf(int fd);
  bool IsStuck(int fd, Look* look) const;
  void LookAtAll();

  const std::chrono::nanoseconds stall_timeout_;
  const uint64_t least_bytes_;
  Connections* const connections_;
  absl::flat_hash_map<ino_t, Look> last_looks_;  // by socket; when its peer had last taken enough

  Periodic looks_;  // the first to go
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_CONNECTION_WATCHDOG_H_
