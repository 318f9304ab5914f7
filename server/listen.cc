#include "server/listen.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "grpc/grpc.h"
#include "grpcpp/security/server_credentials.h"
#include "lib/base/file_descriptor.h"
#include "lib/base/status.h"

namespace posenc::server {
namespace {

constexpr absl::string_view kUnixPrefix = "unix:";

std::string ToString(const ListenAddress& address, int port) {
  if (!address.unix_path.empty()) return absl::StrCat(kUnixPrefix, address.unix_path);
  return absl::StrCat(address.host, ":", port);
}

absl::StatusOr<ListenAddress> ParseUnix(absl::string_view path) {
  if (path.empty()) return FieldError("listen", "unix: needs a path");
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return FieldError("listen",
                      absl::StrCat("a Unix path takes at most ", sizeof(sockaddr_un::sun_path) - 1,
                                   " bytes, got ", path.size(), " in unix:", path));
  }
  // gRPC reads the address as a URI.
  if (path.find_first_of("%?#") != absl::string_view::npos) {
    return FieldError("listen", absl::StrCat("a Unix path must not hold %, ? or #, got ", path));
  }
  ListenAddress address;
  address.unix_path = std::string(path);
  return address;
}

absl::Status Errno(absl::string_view what, int error) {
  return absl::UnavailableError(absl::StrCat("listen: ", what, ": ", std::strerror(error)));
}

// Whether a bind to `address` would work, now. Other errors than these are
// left to gRPC: a host may have addresses that this machine does not.
absl::Status CheckFree(const addrinfo& address, absl::string_view text) {
  const FileDescriptor fd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return absl::OkStatus();
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));  // as gRPC does
  if (bind(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return absl::OkStatus();
  const int error = errno;
  if (error == EADDRINUSE || error == EACCES) return Errno(text, error);
  return absl::OkStatus();
}

absl::Status CheckPort(const ListenAddress& address) {
  const std::string text = ToString(address, address.port);
  const std::string host(absl::StripSuffix(absl::StripPrefix(address.host, "["), "]"));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error =
          getaddrinfo(host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
      error != 0) {
    return absl::UnavailableError(absl::StrCat("listen: ", text, ": ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    RETURN_IF_ERROR(CheckFree(*one, text));
  }
  return absl::OkStatus();
}

// Whether somebody accepts connections at `path`.
bool IsAlive(const std::string& path) {
  const FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

absl::Status RemoveStaleSocket(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : Errno(path, errno);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("listen: unix:", path, ": there is a file that is not a socket"));
  }
  if (IsAlive(path)) {
    return absl::UnavailableError(
        absl::StrCat("listen: unix:", path, ": another process listens there"));
  }
  return unlink(path.c_str()) == 0 ? absl::OkStatus() : Errno(path, errno);
}

}  // namespace

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text) {
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, kUnixPrefix)) return ParseUnix(rest);
  const size_t colon = text.rfind(':');
  ListenAddress address;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(text.substr(colon + 1), &address.port) || address.port < 0 ||
      address.port > 65535) {
    return FieldError("listen", absl::StrCat("must be HOST:PORT or unix:PATH, got ", text));
  }
  address.host = std::string(text.substr(0, colon));
  const bool bracketed = address.host.front() == '[' && address.host.back() == ']';
  if (!bracketed && address.host.find(':') != std::string::npos) {
    return FieldError("listen", absl::StrCat("an IPv6 address needs brackets, got ", text));
  }
  return address;
}

absl::StatusOr<std::unique_ptr<UnixPathLock>> UnixPathLock::Take(std::string path) {
  const std::string lock_path = path + ".lock";
  FileDescriptor fd(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() < 0) return Errno(lock_path, errno);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Errno(lock_path, errno);
    return absl::UnavailableError(
        absl::StrCat("listen: unix:", path, ": another posenc-server holds ", lock_path));
  }
  RETURN_IF_ERROR(RemoveStaleSocket(path));
  return std::unique_ptr<UnixPathLock>(new UnixPathLock(std::move(path), fd.Release()));
}

UnixPathLock::~UnixPathLock() {
  unlink(path_.c_str());
  close(fd_);
}

absl::StatusOr<Listeners> Listeners::Prepare(const std::vector<std::string>& addresses) {
  Listeners listeners;
  for (const std::string& text : addresses) {
    Listener& listener = listeners.listeners_.emplace_back();
    ASSIGN_OR_RETURN(listener.address, ParseListenAddress(text));
    if (listener.address.unix_path.empty()) {
      RETURN_IF_ERROR(CheckPort(listener.address));
    } else {
      ASSIGN_OR_RETURN(listener.lock, UnixPathLock::Take(listener.address.unix_path));
    }
  }
  return listeners;
}

std::vector<std::string> Listeners::UnixPaths() const {
  std::vector<std::string> paths;
  for (const Listener& listener : listeners_) {
    if (!listener.address.unix_path.empty()) paths.push_back(listener.address.unix_path);
  }
  return paths;
}

std::vector<int> Listeners::Ports() const {
  std::vector<int> ports;
  for (const Listener& listener : listeners_) {
    if (listener.address.unix_path.empty()) ports.push_back(listener.bound_port);
  }
  return ports;
}

void Listeners::AddTo(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  for (Listener& listener : listeners_) {
    builder->AddListeningPort(ToString(listener.address, listener.address.port),
                              grpc::InsecureServerCredentials(), &listener.bound_port);
  }
}

absl::StatusOr<std::vector<std::string>> Listeners::Bound() const {
  std::vector<std::string> bound;
  for (const Listener& listener : listeners_) {
    if (listener.bound_port == 0) {
      return absl::UnavailableError(absl::StrCat(
          "listen: ", ToString(listener.address, listener.address.port), ": could not be bound"));
    }
    bound.push_back(ToString(listener.address, listener.bound_port));
  }
  return bound;
}

}  // namespace posenc::server
