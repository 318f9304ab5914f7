// Everything about listening: addresses, who holds them, and how gRPC binds them.
//
// An address is HOST:PORT (port 0 takes a free one) or unix:PATH. Two servers
// never share one: gRPC's default for ports (SO_REUSEPORT) and its habit of
// replacing a socket file would let a second server silently steal the first
// one's connections.
#ifndef POSENC_SERVER_LISTEN_H_
#define POSENC_SERVER_LISTEN_H_

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_builder.h"

namespace posenc::server {

struct ListenAddress {
  std::string host;  // as given, in brackets if it was; empty for a Unix path
  int port = 0;
  std::string unix_path;
};

// INVALID_ARGUMENT when `text` is neither form.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// The right to bind a Unix path, held by an flock on PATH.lock, which is left
// behind: removing it could take it from under another holder. The kernel drops
// the lock when the process ends, however it ends.
class UnixPathLock {
 public:
  // Removes a socket that nobody listens on any more. UNAVAILABLE when another
  // server holds the path, FAILED_PRECONDITION when something else is there.
  static absl::StatusOr<std::unique_ptr<UnixPathLock>> Take(std::string path);
  ~UnixPathLock();  // removes the socket

  UnixPathLock(const UnixPathLock&) = delete;
  UnixPathLock& operator=(const UnixPathLock&) = delete;

 private:
  UnixPathLock(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const int fd_;
};

// The addresses of one server. Must outlive it.
class Listeners {
 public:
  // Takes the locks, and checks that the ports are free, which gives a better
  // message than gRPC has. Errors name the address.
  static absl::StatusOr<Listeners> Prepare(const std::vector<std::string>& addresses);

  // PATH of each unix:PATH.
  std::vector<std::string> UnixPaths() const;
  // Of the others, after BuildAndStart.
  std::vector<int> Ports() const;

  void AddTo(grpc::ServerBuilder* builder);

  // After BuildAndStart: the bound addresses, in the order given, or an error if
  // one of them was taken in the meantime.
  absl::StatusOr<std::vector<std::string>> Bound() const;

 private:
  struct Listener {
    ListenAddress address;
    std::unique_ptr<UnixPathLock> lock;
    int bound_port = 0;  // set by gRPC; 1 for a Unix path
  };

  std::list<Listener> listeners_;  // gRPC keeps pointers to bound_port
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_LISTEN_H_
