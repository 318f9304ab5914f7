#include "server/socket_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstring>

namespace posenc::server {
namespace {

// A sender waits whenever so much is on its way: with the 208 KiB that Linux gives a Unix
// socket, at every fifth of a chunk. What the system does not allow, it lowers; what it
// counts against it is twice that.
constexpr int kUnixSendBuffer = 512 << 10;

// What the system has for networks may pace: BBR takes a pause of the sender, which computes
// the next chunk, for the rate of the network (generated streams took 1.6 times as long).
// There is none between two ends of this host, and Reno is part of every kernel.
constexpr char kOnThisHost[] = "reno";

template <typename T>
void SetOption(int socket, int level, int option, T value) {
  setsockopt(socket, level, option, &value, sizeof(value));  // a socket does without
}

union Address {
  sockaddr any;
  sockaddr_in ipv4;
  sockaddr_in6 ipv6;
};

// Whether both ends of a TCP connection have one address.
bool IsOnThisHost(int socket) {
  Address here = {}, there = {};
  socklen_t size = sizeof(here);
  socklen_t there_size = sizeof(there);
  if (getsockname(socket, &here.any, &size) != 0 ||
      getpeername(socket, &there.any, &there_size) != 0) {
    return false;
  }
  return here.any.sa_family == AF_INET6
             ? std::memcmp(&here.ipv6.sin6_addr, &there.ipv6.sin6_addr, sizeof(in6_addr)) == 0
             : here.ipv4.sin_addr.s_addr == there.ipv4.sin_addr.s_addr;
}

void WidenSendBuffer(int socket) {
  int counted = 0;
  socklen_t size = sizeof(counted);
  getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &counted, &size);
  if (counted < 2 * kUnixSendBuffer) SetOption(socket, SOL_SOCKET, SO_SNDBUF, kUnixSendBuffer);
}

}  // namespace

void SetSocketOptions(int socket) {
  int domain = AF_UNSPEC;
  socklen_t size = sizeof(domain);
  getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size);
  if (domain == AF_UNIX) return WidenSendBuffer(socket);
  SetOption(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  if (IsOnThisHost(socket)) {
    setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, kOnThisHost, sizeof(kOnThisHost) - 1);
  }
}

}  // namespace posenc::server
