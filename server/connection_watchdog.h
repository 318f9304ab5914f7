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
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "server/periodic.h"

namespace posenc::server {

// gRPC keeps its sockets to itself: they are found among this process's descriptors, by
// the address that they were accepted at.
class ConnectionWatchdog {
 public:
  struct Addresses {
    absl::flat_hash_set<int> ports;
    absl::flat_hash_set<std::string> unix_paths;
  };

  // Of the bytes that wait for it, a peer must take some in `stall_timeout`: over TCP all
  // or kLeastTaken. Zero never ends a connection.
  ConnectionWatchdog(std::chrono::nanoseconds stall_timeout, Addresses addresses);

  ConnectionWatchdog(const ConnectionWatchdog&) = delete;
  ConnectionWatchdog& operator=(const ConnectionWatchdog&) = delete;

  static constexpr uint64_t kLeastTaken = uint64_t{64} << 10;

 private:
  using Clock = std::chrono::steady_clock;

  struct Connection {
    ino_t socket;      // a descriptor may be another socket's by now
    uint64_t taken;    // by the peer, at `since`
    uint64_t waiting;  // for the peer, then
    Clock::time_point since;
  };

  void Look();
  bool IsOurs(int fd) const;
  // Whether the peer has taken too little for too long.
  bool IsStuck(int fd, ino_t socket, Connection* connection) const;

  const std::chrono::nanoseconds stall_timeout_;
  const Addresses addresses_;
  absl::flat_hash_map<int, Connection> connections_;  // by descriptor

  Periodic looks_;  // the first to go
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_CONNECTION_WATCHDOG_H_
