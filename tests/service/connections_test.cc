// Which connections are known to be open, and how many there may be.
#include "server/connections.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/file_descriptor.h"
#include "tests/service/test_server.h"

namespace posenc::server {
namespace {

using testing::Connect;
using testing::TestOptions;
using testing::TestServer;

FileDescriptor NewSocket() {
  return FileDescriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

std::vector<int> OpenOf(Connections* connections) {
  std::vector<int> open;
  for (const Connection& one : connections->Open()) open.push_back(one.fd);
  return open;
}

TEST(ConnectionsTest, KnowsThoseThatAreOpen) {
  Connections connections(3);
  const FileDescriptor one = NewSocket();
  FileDescriptor two = NewSocket();
  ASSERT_TRUE(connections.Add(one.get()));
  ASSERT_TRUE(connections.Add(two.get()));
  EXPECT_THAT(OpenOf(&connections), ::testing::ElementsAre(one.get(), two.get()));
  two = FileDescriptor();
  EXPECT_THAT(OpenOf(&connections), ::testing::ElementsAre(one.get()));
}

// The number of a descriptor that was closed is the next one's.
TEST(ConnectionsTest, ADescriptorThatIsAnotherSocketNowIsNone) {
  Connections connections(3);
  FileDescriptor first = NewSocket();
  const int fd = first.get();
  ASSERT_TRUE(connections.Add(fd));
  first = FileDescriptor();
  const FileDescriptor second = NewSocket();
  ASSERT_EQ(second.get(), fd);
  EXPECT_THAT(OpenOf(&connections), ::testing::IsEmpty());
  ASSERT_TRUE(connections.Add(fd));
  EXPECT_THAT(OpenOf(&connections), ::testing::ElementsAre(fd));
}

TEST(ConnectionsTest, ThereAreAsManyAsThereMayBe) {
  Connections connections(2);
  std::vector<FileDescriptor> sockets;
  for (int i = 0; i < 3; ++i) sockets.push_back(NewSocket());
  EXPECT_TRUE(connections.Add(sockets[0].get()));
  EXPECT_TRUE(connections.Add(sockets[1].get()));
  EXPECT_FALSE(connections.Add(sockets[2].get()));
  sockets[0] = FileDescriptor();
  const bool has_room = [&] {
    for (int i = 0; i < 500; ++i) {
      if (connections.Add(sockets[2].get())) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }();
  EXPECT_TRUE(has_room);
}

TEST(ConnectionsTest, WhatIsNoSocketIsNotAdded) {
  Connections connections(1);
  const FileDescriptor null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(connections.Add(null.get()));
  EXPECT_FALSE(connections.Add(-1));
}

grpc::Status Ask(const std::shared_ptr<grpc::Channel>& channel) {
  const auto stub = v1::PositionalEncodingService::NewStub(channel);
  return testing::Read(*stub, testing::AlibiBias(2, 4, 4)).status;
}

// (One of them is the test server's own.)
TEST(MaxConnectionsTest, OneMoreIsClosedAndTheOthersAreServed) {
  ServerOptions options = TestOptions();
  options.max_connections = 3;
  TestServer server(options);
  const auto first = server.NewChannel();
  auto second = server.NewChannel();
  const grpc::Status refused = Ask(Connect(server.server().addresses().front()));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE) << refused.error_message();
  EXPECT_TRUE(Ask(first).ok());
  EXPECT_TRUE(Ask(second).ok());

  second.reset();  // the server sees that a moment later
  EXPECT_TRUE(Ask(server.NewChannel()).ok());
}

}  // namespace
}  // namespace posenc::server
