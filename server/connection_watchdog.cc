#include "server/connection_watchdog.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "server/log.h"

namespace posenc::server {
namespace {

// None while there is no descriptor left to look through them with.
std::vector<int> OpenDescriptors() {
  std::vector<int> open;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    int fd;
    if (absl::SimpleAtoi(entry->path().filename().string(), &fd)) open.push_back(fd);
  }
  return open;
}

std::optional<ino_t> SocketOf(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISSOCK(info.st_mode)) return std::nullopt;
  return info.st_ino;
}

union Address {
  sockaddr any;
  sockaddr_in ipv4;
  sockaddr_in6 ipv6;
  sockaddr_un local;
};

bool Listens(int fd) {
  int listens = 0;
  socklen_t size = sizeof(listens);
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens != 0;
}

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
ConnectionWatchdog::ConnectionWatchdog(std::chrono::nanoseconds stall_timeout, Addresses addresses)
    : stall_timeout_(stall_timeout),
      addresses_(std::move(addresses)),
      looks_(stall_timeout / 4, [this] { Look(); }) {}

void ConnectionWatchdog::Look() {
  absl::flat_hash_map<int, Connection> seen;
  for (const int fd : OpenDescriptors()) {
    const std::optional<ino_t> socket = SocketOf(fd);
    if (!socket || !IsOurs(fd)) continue;
    const auto known = connections_.find(fd);
    Connection connection = known != connections_.end() ? known->second : Connection{};
    if (IsStuck(fd, *socket, &connection)) {
      Log(LogLevel::kWarning, "a connection was ended whose peer does not read",
          {{"waiting_bytes", static_cast<int64_t>(connection.waiting)}});
      shutdown(fd, SHUT_RDWR);
    }
    seen.emplace(fd, connection);
  }
  connections_ = std::move(seen);
}

bool ConnectionWatchdog::IsOurs(int fd) const {
  Address address = {};
  socklen_t size = sizeof(address);
  if (getsockname(fd, &address.any, &size) != 0 || Listens(fd)) return false;
  switch (address.any.sa_family) {
    case AF_INET:
      return addresses_.ports.contains(ntohs(address.ipv4.sin_port));
    case AF_INET6:
      return addresses_.ports.contains(ntohs(address.ipv6.sin6_port));
    case AF_UNIX: {
      const char* path = address.local.sun_path;
      return addresses_.unix_paths.contains(
          std::string(path, strnlen(path, sizeof(sockaddr_un::sun_path))));
    }
    default:
      return false;
  }
}

bool ConnectionWatchdog::IsStuck(int fd, ino_t socket, Connection* connection) const {
  const Clock::time_point now = Clock::now();
  const uint64_t waiting = Waiting(fd);
  const std::optional<uint64_t> taken = Taken(fd);
  const bool reads = taken
                         ? *taken - connection->taken >= std::min(kLeastTaken, connection->waiting)
                         : waiting != connection->waiting;
  if (connection->socket != socket || waiting == 0 || reads) {
    *connection = {.socket = socket, .taken = taken.value_or(0), .waiting = waiting, .since = now};
    return false;
  }
  return now - connection->since >= stall_timeout_;
}

}  // namespace posenc::server
