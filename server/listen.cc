#include "server/listen.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lib/base/status.h"

namespace posenc::server {
namespace {

constexpr absl::string_view kUnixPrefix = "unix:";
constexpr absl::string_view kEveryAddress = "[::]";

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
  // Clients give the address to gRPC, which reads a URI.
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

// How many connections wait to be accepted; the system has its own limit.
constexpr int kBacklog = SOMAXCONN;

struct Freeaddrinfo {
  void operator()(addrinfo* found) const { freeaddrinfo(found); }
};
using FoundAddresses = std::unique_ptr<addrinfo, Freeaddrinfo>;

absl::StatusOr<FoundAddresses> Resolve(const ListenAddress& address) {
  const std::string host(absl::StripSuffix(absl::StripPrefix(address.host, "["), "]"));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error == 0) return FoundAddresses(found);
  return absl::UnavailableError(
      absl::StrCat("listen: ", ToString(address, address.port), ": ", gai_strerror(error)));
}

// The port of an Internet address, in it.
in_port_t* PortIn(sockaddr* address) {
  return address->sa_family == AF_INET6 ? &reinterpret_cast<sockaddr_in6*>(address)->sin6_port
                                        : &reinterpret_cast<sockaddr_in*>(address)->sin_port;
}

int PortOf(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(*PortIn(reinterpret_cast<sockaddr*>(&address)));
}

// -1 and errno when it cannot be bound.
FileDescriptor ListenAt(const addrinfo& address) {
  FileDescriptor fd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return FileDescriptor();
  const int on = 1;  // a port is free again as soon as its server is gone
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.ai_family == AF_INET6) {
    const in6_addr& ipv6 = reinterpret_cast<const sockaddr_in6*>(address.ai_addr)->sin6_addr;
    const int ipv6_only = IN6_IS_ADDR_UNSPECIFIED(&ipv6) || IN6_IS_ADDR_V4MAPPED(&ipv6) ? 0 : 1;
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &ipv6_only, sizeof(ipv6_only));
  }
  if (bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0 || listen(fd.get(), kBacklog) != 0) {
    return FileDescriptor();
  }
  return fd;
}

// Some hosts files name an address of a host twice.
bool IsRepeated(const addrinfo* found, const addrinfo* one) {
  for (; found != one; found = found->ai_next) {
    if (found->ai_addrlen == one->ai_addrlen &&
        std::memcmp(found->ai_addr, one->ai_addr, one->ai_addrlen) == 0) {
      return true;
    }
  }
  return false;
}

// At each address of the host, at one port: one that is free when it is 0. (One that is free
// at the first address may be taken at the next.)
absl::StatusOr<std::vector<FileDescriptor>> ListenAtHost(const ListenAddress& address,
                                                         int attempts = 16) {
  const std::string text = ToString(address, address.port);
  ASSIGN_OR_RETURN(const FoundAddresses found, Resolve(address));
  std::vector<FileDescriptor> sockets;
  int error = 0;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    if (IsRepeated(found.get(), one)) continue;
    FileDescriptor socket = ListenAt(*one);
    if (socket.get() < 0) {
      error = errno;
      const bool tries_again = error == EADDRINUSE && address.port == 0 && attempts > 1;
      if (tries_again) return ListenAtHost(address, attempts - 1);
      if (error == EADDRINUSE || error == EACCES) return Errno(text, error);
      continue;  // a host may have addresses that this machine does not
    }
    const in_port_t port = htons(static_cast<uint16_t>(PortOf(socket.get())));
    for (addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
      *PortIn(each->ai_addr) = port;
    }
    sockets.push_back(std::move(socket));
  }
  if (sockets.empty() && error == EAFNOSUPPORT && address.host == kEveryAddress) {
    return ListenAtHost({.host = "0.0.0.0", .port = address.port, .unix_path = ""});
  }
  if (sockets.empty()) return Errno(text, error);
  return sockets;
}

sockaddr_un AddressAt(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Whether somebody accepts connections at `path`.
bool IsAlive(const std::string& path) {
  const FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = AddressAt(path);
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
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  if (is_ipv6 && !bracketed) {
    return FieldError("listen", absl::StrCat("an IPv6 address needs brackets, got ", text));
  }
  if (bracketed && !is_ipv6) {
    return FieldError("listen", absl::StrCat("brackets are for an IPv6 address, got ", text));
  }
  if (address.host == "*") {
    return FieldError("listen", absl::StrCat("every address is [::] or 0.0.0.0, got ", text));
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

// The file takes its mode from the socket, so it never has another.
absl::StatusOr<FileDescriptor> ListenAtUnixPath(const std::string& path, mode_t mode) {
  const sockaddr_un address = AddressAt(path);
  FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0 || fchmod(fd.get(), mode) != 0 ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    return Errno(absl::StrCat(kUnixPrefix, path), errno);
  }
  return fd;
}

absl::StatusOr<Listeners> Listeners::Open(const std::vector<std::string>& addresses) {
  Listeners listeners;
  for (const std::string& text : addresses) RETURN_IF_ERROR(listeners.OpenOne(text));
  return listeners;
}

absl::Status Listeners::OpenOne(absl::string_view text) {
  ASSIGN_OR_RETURN(const ListenAddress address, ParseListenAddress(text));
  if (address.unix_path.empty()) {
    ASSIGN_OR_RETURN(std::vector<FileDescriptor> sockets, ListenAtHost(address));
    addresses_.push_back(ToString(address, PortOf(sockets.front().get())));
    std::move(sockets.begin(), sockets.end(), std::back_inserter(sockets_));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<UnixPathLock> lock, UnixPathLock::Take(address.unix_path));
  unix_paths_.push_back(std::move(lock));
  ASSIGN_OR_RETURN(FileDescriptor socket, ListenAtUnixPath(address.unix_path, 0777));
  addresses_.push_back(ToString(address, 0));
  sockets_.push_back(std::move(socket));
  return absl::OkStatus();
}

std::vector<std::string> Listeners::UnixPaths() const {
  std::vector<std::string> paths;
  for (const auto& lock : unix_paths_) paths.push_back(lock->path());
  return paths;
}

}  // namespace posenc::server
