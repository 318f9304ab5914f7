// Where a server listens, and that two never share an address.
#include "server/listen.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/service/test_server.h"

namespace posenc::server {
namespace {

using testing::Connect;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::TestOptions;
using testing::TestServer;

ServerOptions ListeningOn(std::vector<std::string> addresses) {
  ServerOptions options = TestOptions();
  options.listen = std::move(addresses);
  return options;
}

bool Serves(const std::string& address) {
  const auto stub = v1::PositionalEncodingService::NewStub(Connect(address));
  return testing::Read(*stub, testing::AlibiBias(2, 4, 4)).status.ok();
}

// A folder with a short path: Unix paths take 107 bytes.
class ListenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/posenc-listen-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    path_ = folder_ / "p.sock";
    address_ = "unix:" + path_.string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A socket file without a listener, as a killed server leaves it.
  void LeaveStaleSocket() {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    close(fd);
    ASSERT_TRUE(std::filesystem::is_socket(path_));
  }

  std::filesystem::path folder_;
  std::filesystem::path path_;
  std::string address_;
};

TEST_F(ListenTest, PortZeroTakesAFreePortAndSaysWhich) {
  TestServer server(ListeningOn({"127.0.0.1:0"}));
  const std::string address = server.server().addresses().front();
  EXPECT_THAT(address, StartsWith("127.0.0.1:"));
  EXPECT_NE(address, "127.0.0.1:0");
  EXPECT_TRUE(Serves(address));
}

TEST_F(ListenTest, ServesOnAllAddressesTheSameTable) {
  TestServer server(ListeningOn({"127.0.0.1:0", address_, "127.0.0.1:0"}));
  ASSERT_EQ(server.server().addresses().size(), 3u);
  EXPECT_EQ(server.server().addresses()[1], address_);
  for (const std::string& address : server.server().addresses()) EXPECT_TRUE(Serves(address));
}

TEST_F(ListenTest, ASecondServerOnAPortFailsAndNamesIt) {
  TestServer first(ListeningOn({"127.0.0.1:0"}));
  const std::string address = first.server().addresses().front();
  const std::string port = address.substr(address.find(':'));
  for (const std::string& taken : {address, "0.0.0.0" + port, "localhost" + port}) {
    const auto second = Server::Start(ListeningOn({taken}));
    ASSERT_FALSE(second.ok()) << taken;
    EXPECT_THAT(std::string(second.status().message()), HasSubstr(taken));
    EXPECT_THAT(std::string(second.status().message()), HasSubstr("in use"));
  }
  EXPECT_TRUE(Serves(address));
}

// Whether this machine has IPv6 at all; [::] listens at IPv4 alone when not.
bool HasIpv6() {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 loopback = {};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool has =
      fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&loopback), sizeof(loopback)) == 0;
  if (fd >= 0) close(fd);
  return has;
}

TEST_F(ListenTest, EveryAddressIsIpv6AndIpv4) {
  TestServer server(ListeningOn({"[::]:0"}));
  const std::string address = server.server().addresses().front();
  ASSERT_THAT(address, StartsWith("[::]:"));
  const std::string port = address.substr(address.rfind(':'));
  EXPECT_TRUE(Serves("127.0.0.1" + port));
  if (HasIpv6()) {
    EXPECT_TRUE(Serves("[::1]" + port));
  }
}

TEST_F(ListenTest, OneAddressIsThatAlone) {
  if (!HasIpv6()) GTEST_SKIP() << "this machine has no IPv6";
  TestServer server(ListeningOn({"[::1]:0"}));
  const std::string address = server.server().addresses().front();
  EXPECT_TRUE(Serves(address));
  // IPv4 has that port for itself.
  TestServer other(ListeningOn({"0.0.0.0" + address.substr(address.rfind(':'))}));
  EXPECT_TRUE(Serves(other.server().addresses().front()));
}

TEST_F(ListenTest, AHostsNameTakesAFreePortToo) {
  TestServer server(ListeningOn({"localhost:0"}));
  const std::string address = server.server().addresses().front();
  EXPECT_THAT(address, StartsWith("localhost:"));
  EXPECT_TRUE(Serves(address));
}

TEST_F(ListenTest, AHostThatIsNotThereIsNamed) {
  const std::string no_name = absl::StrCat(std::string(64, 'x'), ".invalid:0");  // of 63 at most
  for (const std::string& address : {std::string("203.0.113.1:0"), no_name}) {
    const auto server = Server::Start(ListeningOn({address}));
    EXPECT_EQ(server.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(server.status().message()), HasSubstr(address));
  }
}

TEST_F(ListenTest, ThePortTwiceInOneServerFails) {
  std::string address;
  { address = TestServer().server().addresses().front(); }
  const auto server = Server::Start(ListeningOn({address, address}));
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(std::string(server.status().message()), HasSubstr(address));
}

TEST_F(ListenTest, ASecondServerOnAUnixPathFailsAndTheFirstServesOn) {
  TestServer first(ListeningOn({address_}));
  const auto second = Server::Start(ListeningOn({address_}));
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(address_));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("p.sock.lock"));
  EXPECT_TRUE(Serves(address_));
}

TEST_F(ListenTest, AStaleSocketIsReplaced) {
  LeaveStaleSocket();
  TestServer server(ListeningOn({address_}));
  EXPECT_TRUE(Serves(address_));
}

TEST_F(ListenTest, AForeignListenerKeepsItsPath) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  const auto server = Server::Start(ListeningOn({address_}));
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("another process listens"));
  EXPECT_TRUE(std::filesystem::is_socket(path_));
  close(fd);
}

TEST_F(ListenTest, AFileThatIsNoSocketIsLeftAlone) {
  std::ofstream(path_) << "precious";
  const auto server = Server::Start(ListeningOn({address_}));
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("not a socket"));
  EXPECT_EQ(std::filesystem::file_size(path_), 8u);
}

TEST_F(ListenTest, TheSocketIsGoneAfterwardsAndThePathIsFree) {
  { TestServer server(ListeningOn({address_})); }
  EXPECT_FALSE(std::filesystem::exists(path_));
  TestServer again(ListeningOn({address_}));
  EXPECT_TRUE(Serves(address_));
}

TEST_F(ListenTest, AMissingFolderIsNamed) {
  const auto server = Server::Start(ListeningOn({"unix:" + (folder_ / "no/p.sock").string()}));
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("No such file"));
}

TEST(ListenAddressTest, ReadsBothForms) {
  const auto tcp = ParseListenAddress("example.org:80");
  ASSERT_TRUE(tcp.ok());
  EXPECT_EQ(tcp->host, "example.org");
  EXPECT_EQ(tcp->port, 80);
  const auto v6 = ParseListenAddress("[::1]:65535");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->host, "[::1]");
  const auto unix_path = ParseListenAddress("unix:relative.sock");
  ASSERT_TRUE(unix_path.ok());
  EXPECT_EQ(unix_path->unix_path, "relative.sock");
}

TEST(ListenAddressTest, RefusesTheRestByName) {
  for (const std::string& text :
       {std::string(""), std::string("localhost"), std::string(":80"), std::string("a:"),
        std::string("a:-1"), std::string("a:65536"), std::string("a:http"), std::string("::1:80"),
        std::string("[127.0.0.1]:80"), std::string("[localhost]:80"), std::string("*:80"),
        std::string("unix:"), std::string("unix:/a%20b"), "unix:/" + std::string(107, 'x')}) {
    const auto address = ParseListenAddress(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_THAT(std::string(address.status().message()), StartsWith("listen: "));
  }
}

}  // namespace
}  // namespace posenc::server
