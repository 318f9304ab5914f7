#include "server/connection_watchdog.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "server/log.h"

namespace posenc::server {
namespace {

// Bytes that the kernel holds for the peer. (A Unix socket counts what they cost it.)
uint64_t Waiting(int fd) {
  int bytes = 0;
  return ioctl(fd, SIOCOUTQ, &bytes) == 0 ? static_cast<uint64_t>(bytes) : 0;
}

// Bytes that the peer has acknowledged; nothing for a Unix socket, which does not know.
std::optional<uint64_t> Taken(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  return info.tcpi_bytes_acked;
}

}  // namespace

// As often as StallWatchdog.
ConnectionWatchdog::ConnectionWatchdog(std::chrono::nanoseconds stall_timeout,
                                       Connections* connections)
    : stall_timeout_(stall_timeout),
      connections_(connections),
      looks_(stall_timeout / 4, [this] { Look(); }) {}

void ConnectionWatchdog::Look() {
  absl::flat_hash_map<ino_t, Progress> seen;
  for (const auto& [fd, socket] : connections_->Open()) {
    const auto known = progress_.find(socket);
    Progress progress = known != progress_.end() ? known->second : Progress{};
    if (IsStuck(fd, &progress)) {
      Log(LogLevel::kWarning, "a connection was ended whose peer does not read",
          {{"waiting_bytes", static_cast<int64_t>(progress.waiting)}});
      shutdown(fd, SHUT_RDWR);
    }
    seen.emplace(socket, progress);
  }
  progress_ = std::move(seen);
}

bool ConnectionWatchdog::IsStuck(int fd, Progress* progress) const {
  const Clock::time_point now = Clock::now();
  const uint64_t waiting = Waiting(fd);
  const std::optional<uint64_t> taken = Taken(fd);
  const bool reads = taken ? *taken - progress->taken >= std::min(kLeastTaken, progress->waiting)
                           : waiting != progress->waiting;
  if (waiting == 0 || reads) {
    *progress = {.taken = taken.value_or(0), .waiting = waiting, .since = now};
    return false;
  }
  return now - progress->since >= stall_timeout_;
}

}  // namespace posenc::server
