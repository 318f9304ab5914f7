// Everything about listening: addresses, who holds them, and sockets bound to them.
//
// An address is HOST:PORT (port 0 takes a free one) or unix:PATH. Two servers
// never share one: gRPC's own way with ports (SO_REUSEPORT) and its habit of
// replacing a socket file would let a second server silently steal the first
// one's connections.
#ifndef POSENC_SERVER_LISTEN_H_
#define POSENC_SERVER_LISTEN_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/file_descriptor.h"

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

  const std::string& path() const { return path_; }

  UnixPathLock(const UnixPathLock&) = delete;
  UnixPathLock& operator=(const UnixPathLock&) = delete;

 private:
  UnixPathLock(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const int fd_;
};

// A socket that listens at `path`, whose file has `mode` less the umask.
// REQUIRES: the path is locked.
absl::StatusOr<FileDescriptor> ListenAtUnixPath(const std::string& path, mode_t mode);

// What one server listens on.
class Listeners {
 public:
  // Binds and listens; what connects waits until it is accepted. A host listens at each of
  // its addresses that this machine has, [::] at all of IPv6 and IPv4. UNAVAILABLE when
  // one is taken. Errors name the address.
  static absl::StatusOr<Listeners> Open(const std::vector<std::string>& addresses);

  // As they are bound, in the order given.
  const std::vector<std::string>& addresses() const { return addresses_; }
  // PATH of each unix:PATH.
  std::vector<std::string> UnixPaths() const;

  // They do not block.
  std::vector<FileDescriptor> TakeSockets() { return std::exchange(sockets_, {}); }

 private:
  absl::Status OpenOne(absl::string_view text);

  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<UnixPathLock>> unix_paths_;
  std::vector<FileDescriptor> sockets_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_LISTEN_H_
