// Shared memory between processes: other users, killed servers, readers that stay.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "posenc/client.h"
#include "posenc/v1/hand_over.pb.h"
#include "tests/support/process.h"
#include "tests/support/unix_socket.h"

namespace posenc::testing {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

v1::GetTableRequest SomeTable() {
  v1::GetTableRequest request;
  request.mutable_spec()->mutable_rope()->set_head_dim(128);
  request.mutable_selection()->mutable_position_range()->set_end(4096);
  return request;
}

class SharingProcessTest : public ::testing::Test {
 protected:
  std::vector<std::string> Arguments() const {
    return {"--listen", "unix:" + path_, "--share-memory"};
  }

  Client NewClient() const {
    ClientOptions options;
    options.share_memory = true;
    return Client(MakeConnection("unix:" + path_, options));
  }

  const std::string path_ = TemporaryPath("posenc.sock");
  const std::string memfd_path_ = path_ + ".memfd";
};

// What a process of user `uid` gets of the socket: how its connect ends, and how
// many bytes it then receives for a good request. In a child, which only this
// thread lives on in: system calls, no more.
struct Outcome {
  int connect_error = 0;
  ssize_t bytes = -1;
};

Outcome AskAs(uid_t uid, const std::string& path) {
  const std::string request = Framed(SomeTable());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    Outcome outcome;
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (setuid(uid) != 0 ||
        connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      outcome.connect_error = errno;
    } else {
      char reply[16];
      send(fd, request.data(), request.size(), MSG_NOSIGNAL);  // the peer may be gone
      outcome.bytes = recv(fd, reply, sizeof(reply), 0);
    }
    _exit(write(ends[1], &outcome, sizeof(outcome)) == sizeof(outcome) ? 0 : 1);
  }
  Outcome outcome;
  EXPECT_EQ(read(ends[0], &outcome, sizeof(outcome)), static_cast<ssize_t>(sizeof(outcome)));
  close(ends[0]);
  close(ends[1]);
  waitpid(child, nullptr, 0);
  return outcome;
}

TEST_F(SharingProcessTest, AnotherUserIsHandedNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can ask as another user";
  ServerProcess server(Arguments());
  ASSERT_FALSE(server.address().empty());
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
  EXPECT_EQ(AskAs(kNobody, memfd_path_).connect_error, EACCES);

  // Even where the file is open to all.
  ASSERT_EQ(chmod(memfd_path_.c_str(), 0777), 0);
  const Outcome other = AskAs(kNobody, memfd_path_);
  EXPECT_EQ(other.connect_error, 0);
  EXPECT_LE(other.bytes, 0);
  const Outcome same = AskAs(0, memfd_path_);
  EXPECT_EQ(same.connect_error, 0);
  EXPECT_GT(same.bytes, 0);
}

TEST_F(SharingProcessTest, AMappedTableOutlivesTheServer) {
  TensorView view;
  std::vector<std::byte> copy;
  {
    ServerProcess server(Arguments());
    ASSERT_FALSE(server.address().empty());
    absl::StatusOr<TableReader> reader = NewClient().GetTable(SomeTable());
    ASSERT_TRUE(reader.ok()) << reader.status();
    ASSERT_EQ(reader->transport(), Transport::kSharedMemory) << reader->why_streamed();
    view = *reader->ViewTensor("cos_sin_cache");
    copy.assign(view.bytes.begin(), view.bytes.end());
    server.Signal(SIGKILL);
    server.Wait();
  }
  EXPECT_TRUE(std::equal(copy.begin(), copy.end(), view.bytes.begin(), view.bytes.end()));
}

TEST_F(SharingProcessTest, AfterAKillTheSocketIsReplaced) {
  {
    ServerProcess killed(Arguments());
    ASSERT_FALSE(killed.address().empty());
    killed.Signal(SIGKILL);
    killed.Wait();
  }
  ASSERT_TRUE(std::filesystem::exists(memfd_path_));
  ServerProcess server(Arguments());
  ASSERT_FALSE(server.address().empty());
  const absl::StatusOr<TableReader> reader = NewClient().GetTable(SomeTable());
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->transport(), Transport::kSharedMemory) << reader->why_streamed();
}

TEST_F(SharingProcessTest, ATermSignalEndsItWithAReaderOpenThatSaysNothing) {
  ServerProcess server(Arguments());
  ASSERT_FALSE(server.address().empty());
  UnixSocket silent(memfd_path_);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_EQ(silent.ReceiveRest(), "");
  EXPECT_FALSE(std::filesystem::exists(memfd_path_));
}

// accept() fails then, and must be tried again though no new connection comes.
TEST_F(SharingProcessTest, AServerThatWasOutOfDescriptorsServesAgain) {
  ServerProcess server(Arguments());
  ASSERT_FALSE(server.address().empty());
  ASSERT_TRUE(NewClient().GetTable(SomeTable()).ok());  // gRPC has all of its own by now
  rlimit before;
  ASSERT_EQ(prlimit(server.pid(), RLIMIT_NOFILE, nullptr, &before), 0);
  const rlimit none = {.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(prlimit(server.pid(), RLIMIT_NOFILE, &none, nullptr), 0);
  UnixSocket socket(memfd_path_);
  ASSERT_TRUE(socket.Send(Framed(SomeTable())));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // accept() fails now
  ASSERT_EQ(prlimit(server.pid(), RLIMIT_NOFILE, &before, nullptr), 0);
  v1::HandOverReply reply;
  ASSERT_TRUE(socket.Receive(&reply));
  EXPECT_FALSE(reply.has_error()) << reply.error().message();
}

// `ulimit -f` counts memory files too, and kills who exceeds it unless told not to.
TEST_F(SharingProcessTest, WhereFilesMayNotGrowTablesAreStreamed) {
  rlimit unlimited;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  const rlimit limited = {.rlim_cur = 1 << 20, .rlim_max = unlimited.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  ServerProcess server(Arguments());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
  ASSERT_FALSE(server.address().empty());
  absl::StatusOr<TableReader> reader = NewClient().GetTable(SomeTable());  // 2 MiB
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT(std::string(reader->why_streamed().message()), HasSubstr("File too large"));
  std::vector<std::byte> bytes(reader->header().total_bytes());
  EXPECT_TRUE(reader->ReadAll(bytes).ok());
  EXPECT_TRUE(server.running());
}

TEST_F(SharingProcessTest, SharingWithoutAUnixPathExitsWith1) {
  ServerProcess server({"--listen=127.0.0.1:0", "--share-memory"});
  EXPECT_EQ(server.Wait(), 1);
  EXPECT_THAT(server.Errors(), HasSubstr("share_memory: needs a unix:PATH to listen on"));
}

}  // namespace
}  // namespace posenc::testing
