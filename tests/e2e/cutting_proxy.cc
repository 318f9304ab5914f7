#include "tests/e2e/cutting_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace posenc::testing {
namespace {

constexpr int kPollMilliseconds = 20;  // how soon the end of the test is noticed

uint16_t PortOf(const std::string& address) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) << address;
  return static_cast<uint16_t>(port);
}

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

bool SendAll(int to, const char* data, ssize_t size) {
  while (size > 0) {
    const ssize_t sent = send(to, data, static_cast<size_t>(size), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data += sent;
    size -= sent;
  }
  return true;
}

// Closes with a reset: the peer sees a broken connection, not an end.
void Reset(int socket) {
  const linger now = {.l_onoff = 1, .l_linger = 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close(socket);
}

}  // namespace

CuttingProxy::CuttingProxy(const std::string& target, size_t cut_after, int cuts)
    : target_port_(PortOf(target)), cut_after_(cut_after), cuts_(cuts) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener_, 16), 0);
  EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
  address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  thread_ = std::thread([this] { Serve(); });
}

CuttingProxy::~CuttingProxy() {
  stop_ = true;
  thread_.join();
  close(listener_);
}

void CuttingProxy::Serve() {
  while (!stop_) {
    pollfd waiting = {listener_, POLLIN, 0};
    if (poll(&waiting, 1, kPollMilliseconds) != 1) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(target_port_);
    if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      const bool cuts = cuts_made_ < cuts_;
      if (Relay(client, server, cuts ? cut_after_ : std::numeric_limits<size_t>::max())) {
        ++cuts_made_;
      }
    }
    Reset(client);
    Reset(server);
  }
}

bool CuttingProxy::Relay(int client, int server, size_t limit) {
  char buffer[16 << 10];
  size_t from_server = 0;
  while (!stop_) {
    pollfd ends[] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    if (poll(ends, 2, kPollMilliseconds) <= 0) continue;
    if (ends[0].revents != 0) {
      const ssize_t count = recv(client, buffer, sizeof(buffer), 0);
      if (count <= 0 || !SendAll(server, buffer, count)) return false;
    }
    if (ends[1].revents != 0) {
      const size_t wanted = std::min(sizeof(buffer), limit - from_server);
      const ssize_t count = recv(server, buffer, wanted, 0);
      if (count <= 0 || !SendAll(client, buffer, count)) return false;
      from_server += static_cast<size_t>(count);
      if (from_server == limit) return true;
    }
  }
  return false;
}

}  // namespace posenc::testing
