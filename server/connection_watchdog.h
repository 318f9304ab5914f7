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
  // Of the bytes that wait for it, a peer must take some in `stall_timeout`: over TCP all
  // or kLeastTaken. Zero never ends a connection. `connections` outlives this.
  ConnectionWatchdog(std::chrono::nanoseconds stall_timeout, Connections* connections);

  ConnectionWatchdog(const ConnectionWatchdog&) = delete;
  ConnectionWatchdog& operator=(const ConnectionWatchdog&) = delete;

  static constexpr uint64_t kLeastTaken = uint64_t{64} << 10;

 private:
  using Clock = std::chrono::steady_clock;

  struct Progress {
    uint64_t taken;    // by the peer, at `since`
    uint64_t waiting;  // for the peer, then
    Clock::time_point since;
  };

  void Look();
  // Whether the peer has taken too little for too long.
  bool IsStuck(int fd, Progress* progress) const;

  const std::chrono::nanoseconds stall_timeout_;
  Connections* const connections_;
  absl::flat_hash_map<ino_t, Progress> progress_;  // by socket

  Periodic looks_;  // the first to go
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_CONNECTION_WATCHDOG_H_
