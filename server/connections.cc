#include "server/connections.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <optional>
#include <utility>

namespace posenc::server {
namespace {

std::optional<ino_t> SocketOf(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISSOCK(info.st_mode)) return std::nullopt;
  return info.st_ino;
}

}  // namespace

bool Connection::IsOpen() const { return SocketOf(fd) == socket; }

FileDescriptor Connection::Hold() const {
  FileDescriptor held(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  return SocketOf(held.get()) == socket ? std::move(held) : FileDescriptor();
}

bool Connections::Add(int fd) {
  constexpr std::chrono::milliseconds kLooksApart{20};
  const std::optional<ino_t> socket = SocketOf(fd);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (connections_.size() >= most_ && Clock::now() - last_found_full_ >= kLooksApart) {
    ForgetTheClosed();
    if (connections_.size() >= most_) last_found_full_ = Clock::now();
  }
  if (connections_.size() >= most_ || !socket.has_value()) return false;
  connections_.push_back({fd, *socket});
  return true;
}

std::vector<Connection> Connections::Open() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ForgetTheClosed();
  return connections_;
}

// REQUIRES: mutex_ is held.
void Connections::ForgetTheClosed() {
  std::erase_if(connections_, [](const Connection& one) { return !one.IsOpen(); });
}

}  // namespace posenc::server
