// What connections are set up as, on real sockets.
#include "server/socket_options.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"
#include "lib/base/file_descriptor.h"

namespace posenc::server {
namespace {

int OptionOf(const FileDescriptor& socket, int level, int option) {
  int value = -1;
  socklen_t size = sizeof(value);
  EXPECT_EQ(getsockopt(socket.get(), level, option, &value, &size), 0);
  return value;
}

std::string CongestionControlOf(const FileDescriptor& socket) {
  char name[16] = {};
  socklen_t size = sizeof(name);
  EXPECT_EQ(getsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
  return name;
}

// A TCP connection from `client_address` to 127.0.0.1, both ends of it.
struct Pair {
  explicit Pair(const char* client_address) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    const FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(listener.get(), any, size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);

    sockaddr_in from = {};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = inet_addr(client_address);
    EXPECT_EQ(bind(client.get(), reinterpret_cast<sockaddr*>(&from), sizeof(from)), 0);
    EXPECT_EQ(getsockname(listener.get(), any, &size), 0);
    EXPECT_EQ(connect(client.get(), any, size), 0);
    accepted = FileDescriptor(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_GE(accepted.get(), 0);
  }

  FileDescriptor client{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  FileDescriptor accepted;
};

TEST(SocketOptionsTest, TcpSendsAtOnce) {
  const Pair pair("127.0.0.1");
  SetSocketOptions(pair.accepted.get());
  EXPECT_EQ(OptionOf(pair.accepted, IPPROTO_TCP, TCP_NODELAY), 1);
}

// Linux takes a peer that does not read, but says that it is there, for one that is gone.
TEST(SocketOptionsTest, NoTimeoutOfTheSystemEndsAPeerThatPauses) {
  const Pair pair("127.0.0.1");
  SetSocketOptions(pair.accepted.get());
  EXPECT_EQ(OptionOf(pair.accepted, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
}

TEST(SocketOptionsTest, WithinThisHostNothingPaces) {
  const Pair pair("127.0.0.1");
  SetSocketOptions(pair.accepted.get());
  EXPECT_EQ(CongestionControlOf(pair.accepted), "reno");
}

TEST(SocketOptionsTest, TheSystemChoosesForEveryOtherAddress) {
  const Pair pair("127.0.0.2");
  const std::string before = CongestionControlOf(pair.accepted);
  SetSocketOptions(pair.accepted.get());
  EXPECT_EQ(CongestionControlOf(pair.accepted), before);
}

TEST(SocketOptionsTest, AUnixSocketHoldsMoreOnItsWay) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const FileDescriptor one(ends[0]);
  const FileDescriptor other(ends[1]);
  const auto set = [&](int bytes) {
    EXPECT_EQ(setsockopt(one.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
    return OptionOf(one, SOL_SOCKET, SO_SNDBUF);
  };
  const int small = set(8 << 10);
  SetSocketOptions(one.get());
  EXPECT_GT(OptionOf(one, SOL_SOCKET, SO_SNDBUF), small);

  const int large = set(4 << 20);  // or what the system allows
  SetSocketOptions(one.get());
  EXPECT_GE(OptionOf(one, SOL_SOCKET, SO_SNDBUF), large);
}

TEST(SocketOptionsTest, WhatIsNoSocketIsLeftAlone) { SetSocketOptions(-1); }

}  // namespace
}  // namespace posenc::server
