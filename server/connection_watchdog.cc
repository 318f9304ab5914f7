#include "server/connection_watchdog.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "server/log.h"

namespace posenc::server {
namespace {

constexpr int kLooksInATimeout = 4;  // as StallWatchdog
constexpr ino_t kWake = 0;           // no socket's

struct Progress {
  std::optional<uint64_t> taken;  // by the peer; none of a Unix socket
  uint64_t waiting;               // in this system, for the peer to take some
};

// What TCP has sent already is on its way: small answers over a long one are there at
// every look.
Progress ProgressOf(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
    return {.taken = info.tcpi_bytes_acked, .waiting = info.tcpi_notsent_bytes};
  }
  int waiting = 0;
  ioctl(fd, SIOCOUTQ, &waiting);
  return {.taken = std::nullopt, .waiting = static_cast<uint64_t>(waiting)};
}

// What waits for the peer is dropped: the system would go on sending it.
void End(const Connection& connection) {
  const FileDescriptor socket = connection.Hold();
  if (socket.get() < 0) return;
  Log(LogLevel::kWarning, "a connection was ended whose peer does not read");
  const linger drop = {.l_onoff = 1, .l_linger = 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &drop, sizeof(drop));
  shutdown(socket.get(), SHUT_RDWR);  // gRPC sees that and closes it
}

}  // namespace

absl::StatusOr<std::unique_ptr<ConnectionWatchdog>> ConnectionWatchdog::Start(
    std::chrono::nanoseconds stall_timeout, uint64_t least_bytes, Connections* connections) {
  ASSIGN_OR_RETURN(std::shared_ptr<WakeUp> wake, WakeUp::Create());
  FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = kWake}};
  if (epoll.get() < 0 || epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake->fd(), &event) != 0) {
    return absl::UnavailableError(absl::StrCat("epoll: ", std::strerror(errno)));
  }
  return std::unique_ptr<ConnectionWatchdog>(new ConnectionWatchdog(
      stall_timeout, least_bytes, connections, std::move(epoll), std::move(wake)));
}

ConnectionWatchdog::ConnectionWatchdog(std::chrono::nanoseconds stall_timeout, uint64_t least_bytes,
                                       Connections* connections, FileDescriptor epoll,
                                       std::shared_ptr<WakeUp> wake)
    : stall_timeout_(stall_timeout),
      least_bytes_(least_bytes),
      connections_(connections),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)) {
  if (stall_timeout_ > std::chrono::nanoseconds::zero()) thread_ = std::thread([this] { Run(); });
}

ConnectionWatchdog::~ConnectionWatchdog() {
  stopping_ = true;
  wake_->Signal();
  if (thread_.joinable()) thread_.join();
}

void ConnectionWatchdog::Run() {
  const std::chrono::nanoseconds interval = stall_timeout_ / kLooksInATimeout;
  for (Clock::time_point next = Clock::now() + interval; !stopping_; next += interval) {
    WaitUntil(next);
    if (stopping_) return;
    // This process was not running: nobody could have taken anything.
    if (Clock::now() > next + interval) {
      next = Clock::now();
      last_looks_.clear();
    }
    LookAtAll();
  }
}

void ConnectionWatchdog::WaitUntil(Clock::time_point end) {
  while (!stopping_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return;
    std::array<epoll_event, 64> events;
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                 static_cast<int>(std::min<int64_t>(left, 3'600'000)));
    for (int i = 0; i < count; ++i) taken_from_.insert(events[static_cast<size_t>(i)].data.u64);
  }
}

void ConnectionWatchdog::LookAtAll() {
  absl::flat_hash_map<ino_t, Look> looks;
  absl::flat_hash_set<ino_t> unasked;
  for (const Connection& connection : connections_->Open()) {
    const auto last = last_looks_.find(connection.socket);
    Look look = last != last_looks_.end() ? last->second
                                          : Look{ProgressOf(connection.fd).taken, Clock::now()};
    if (IsStuck(connection, &look)) End(connection);
    if (!look.taken.has_value() && !AskWhenTaken(connection)) unasked.insert(connection.socket);
    looks.emplace(connection.socket, look);
  }
  last_looks_ = std::move(looks);
  taken_from_ = std::move(unasked);  // nobody is ended who could not be asked for
}

// Whether the peer has taken too little for too long.
bool ConnectionWatchdog::IsStuck(const Connection& connection, Look* look) const {
  const Clock::time_point now = Clock::now();
  const Progress progress = ProgressOf(connection.fd);
  const bool reads = progress.taken.has_value()
                         ? *progress.taken - look->taken.value_or(0) >= least_bytes_
                         : taken_from_.contains(connection.socket);
  if (progress.waiting == 0 || reads) {
    *look = {progress.taken, now};
    return false;
  }
  return now - look->at >= stall_timeout_;
}

// A Unix socket can be written again when its peer has taken three quarters of what it
// holds. At once, where it holds less; once a look, so that it costs a fast peer nothing.
// (Where gRPC fills it before this thread has woken, it is asked when that is taken.)
bool ConnectionWatchdog::AskWhenTaken(const Connection& connection) const {
  epoll_event event = {.events = EPOLLOUT | EPOLLONESHOT, .data = {.u64 = connection.socket}};
  return epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.fd, &event) == 0 ||
         epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection.fd, &event) == 0;
}

}  // namespace posenc::server
