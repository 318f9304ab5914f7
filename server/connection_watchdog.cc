#include "server/connection_watchdog.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <utility>

#include "server/log.h"

namespace posenc::server {
namespace {

// What waits for the peer is dropped: the system would go on sending it.
void End(int fd) {
  const linger drop = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &drop, sizeof(drop));
  shutdown(fd, SHUT_RDWR);  // gRPC sees that and closes it
}

}  // namespace

// As often as StallWatchdog.
ConnectionWatchdog::ConnectionWatchdog(std::chrono::nanoseconds stall_timeout, uint64_t least_bytes,
                                       Connections* connections)
    : stall_timeout_(stall_timeout),
      least_bytes_(least_bytes),
      connections_(connections),
      looks_(stall_timeout / 4, [this] { LookAtAll(); }) {}

void ConnectionWatchdog::LookAtAll() {
  absl::flat_hash_map<ino_t, Look> looks;
  for (const auto& [fd, socket] : connections_->Open()) {
    const auto last = last_looks_.find(socket);
    Look look = last != last_looks_.end() ? last->second : Look{ProgressOf(fd), Clock::now()};
    if (IsStuck(fd, &look)) {
      Log(LogLevel::kWarning, "a connection was ended whose peer does not read",
          {{"waiting_bytes", static_cast<int64_t>(look.progress.waiting)}});
      End(fd);
    }
    looks.emplace(socket, look);
  }
  last_looks_ = std::move(looks);
}

// What TCP has sent already is on its way: small answers over a long one are there at
// every look. (A Unix socket counts what the bytes cost it.)
ConnectionWatchdog::Progress ConnectionWatchdog::ProgressOf(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
    return {.taken = info.tcpi_bytes_acked, .waiting = info.tcpi_notsent_bytes};
  }
  int waiting = 0;
  ioctl(fd, SIOCOUTQ, &waiting);
  return {.taken = 0, .waiting = static_cast<uint64_t>(waiting)};
}

// Whether the peer has taken too little since the last look for too long.
bool ConnectionWatchdog::IsStuck(int fd, Look* look) const {
  const Clock::time_point now = Clock::now();
  const Progress progress = ProgressOf(fd);
  const bool reads = progress.taken > 0 ? progress.taken - look->progress.taken >= least_bytes_
                                        : progress.waiting != look->progress.waiting;
  if (progress.waiting == 0 || reads) {
    *look = {progress, now};
    return false;
  }
  return now - look->since >= stall_timeout_;
}

}  // namespace posenc::server
