// The reader's end of a hand-over, against servers that do as a test says.
#include "client/hand_over.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "posenc/v1/error_details.pb.h"
#include "posenc/v1/hand_over.pb.h"
#include "tests/support/fake_peer.h"
#include "tests/support/process.h"
#include "tests/support/unix_socket.h"

namespace posenc::testing {
namespace {

using ::testing::HasSubstr;

class HandOverTest : public ::testing::Test {
 protected:
  HandOverTest() {
    request_.set_if_table_id("any");
    *reply_.mutable_header() = table_.header;
    reply_.set_content_hash("hash");
  }

  // What a server does that has read a request.
  void Serve(std::function<void(UnixSocket*)> answer) {
    server_ = std::make_unique<UnixServer>(path_ + ".memfd", [=, this](UnixSocket* socket) {
      v1::GetTableRequest request;
      if (!socket->Receive(&request)) return;
      EXPECT_EQ(request.if_table_id(), request_.if_table_id());
      answer(socket);
    });
  }

  // A whole reply, with these descriptors.
  void ServeReplyWith(const std::vector<int>& descriptors) {
    Serve([=, this](UnixSocket* socket) { socket->Send(Framed(reply_), descriptors); });
  }

  absl::StatusOr<SharedTable> Get(absl::Duration timeout = absl::InfiniteDuration()) {
    return HandOver(path_).Get(request_, CallContext{.progress_timeout = timeout});
  }

  // The status of a Get that fails, and that leaks no descriptor.
  absl::Status Refused(absl::Duration timeout = absl::InfiniteDuration()) {
    const int before = OpenDescriptors();
    const absl::Status status = Get(timeout).status();
    server_.reset();                           // its thread has let go of the connection
    EXPECT_EQ(OpenDescriptors(), before - 1);  // the listener's
    EXPECT_FALSE(status.ok());
    return status;
  }

  const std::string path_ = TemporaryPath("posenc.sock");
  const FakeTable table_ = MakeFakeTable(25);
  v1::GetTableRequest request_;
  v1::HandOverReply reply_;
  std::unique_ptr<UnixServer> server_;
};

TEST_F(HandOverTest, SealedMemoryIsTheTable) {
  const Descriptor memory = MakeMemory(table_.bytes);
  ServeReplyWith({memory.get()});
  const absl::StatusOr<SharedTable> shared = Get();
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_EQ(shared->header.table_id(), table_.header.table_id());
  EXPECT_EQ(shared->content_hash, "hash");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(shared->bytes.data()), shared->bytes.size()),
            table_.bytes);
}

TEST_F(HandOverTest, AReplyMayComeInPieces) {
  const Descriptor memory = MakeMemory(table_.bytes);
  Serve([&](UnixSocket* socket) {
    const std::string frame = Framed(reply_);
    for (size_t i = 0; i < frame.size(); ++i) {
      const std::vector<int> descriptors(i == 0 ? 1 : 0, memory.get());
      socket->Send(frame.substr(i, 1), descriptors);
    }
  });
  EXPECT_TRUE(Get().ok());
}

TEST_F(HandOverTest, UnsealedMemoryIsRefused) {
  const Descriptor memory = MakeMemory(table_.bytes, kAllSeals & ~F_SEAL_WRITE);
  ServeReplyWith({memory.get()});
  EXPECT_EQ(Refused().code(), absl::StatusCode::kDataLoss);
}

TEST_F(HandOverTest, MemoryOfAnotherSizeIsRefused) {
  const Descriptor memory = MakeMemory(table_.bytes + "x");
  ServeReplyWith({memory.get()});
  EXPECT_EQ(Refused().code(), absl::StatusCode::kDataLoss);
}

TEST_F(HandOverTest, AFileIsRefused) {
  const Descriptor file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  ServeReplyWith({file.get()});
  EXPECT_EQ(Refused().code(), absl::StatusCode::kDataLoss);
}

TEST_F(HandOverTest, AnyNumberOfDescriptorsButOneIsRefused) {
  const Descriptor memory = MakeMemory(table_.bytes);
  for (const size_t count : {0u, 2u, 3u, 8u}) {
    ServeReplyWith(std::vector<int>(count, memory.get()));
    EXPECT_EQ(Refused().code(), absl::StatusCode::kInternal) << count;
    unlink((path_ + ".memfd").c_str());
  }
}

TEST_F(HandOverTest, ASecondDescriptorWithLaterBytesIsRefused) {
  const Descriptor memory = MakeMemory(table_.bytes);
  Serve([&](UnixSocket* socket) {
    const std::string frame = Framed(reply_);
    socket->Send(frame.substr(0, 10), {memory.get()});
    socket->Send(frame.substr(10), {memory.get()});
  });
  EXPECT_THAT(std::string(Refused().message()), HasSubstr("2 descriptors"));
}

TEST_F(HandOverTest, AReplyThatDoesNotParseIsRefused) {
  Serve([](UnixSocket* socket) { socket->Send(Framed(std::string(100, '\xff'))); });
  EXPECT_EQ(Refused().code(), absl::StatusCode::kInternal);
}

TEST_F(HandOverTest, AReplyOfAGibibyteIsRefusedUnread) {
  Serve([](UnixSocket* socket) { socket->Send(std::string("\0\0\0\x40", 4)); });
  EXPECT_THAT(std::string(Refused().message()), HasSubstr("a reply of 1073741824 bytes"));
}

TEST_F(HandOverTest, HalfAReplyIsUnavailable) {
  const Descriptor memory = MakeMemory(table_.bytes);
  Serve([&](UnixSocket* socket) { socket->Send(Framed(reply_).substr(0, 9), {memory.get()}); });
  EXPECT_EQ(Refused().code(), absl::StatusCode::kUnavailable);
}

TEST_F(HandOverTest, NoReplyAtAllIsUnavailable) {
  Serve([](UnixSocket*) {});
  EXPECT_EQ(Refused().code(), absl::StatusCode::kUnavailable);
}

TEST_F(HandOverTest, AServerThatDoesNotAnswerIsGivenUp) {
  Serve([](UnixSocket* socket) { socket->ReceiveRest(); });
  EXPECT_EQ(Refused(absl::Milliseconds(20)).code(), absl::StatusCode::kDeadlineExceeded);
}

// Its buffers fill: the request must not wait for ever either.
TEST_F(HandOverTest, AServerThatDoesNotReadIsGivenUp) {
  request_.set_if_table_id(std::string(2 << 20, 'x'));
  std::promise<void> given_up;
  server_ = std::make_unique<UnixServer>(path_ + ".memfd",
                                         [&](UnixSocket*) { given_up.get_future().wait(); });
  EXPECT_EQ(Get(absl::Milliseconds(20)).status().code(), absl::StatusCode::kDeadlineExceeded);
  given_up.set_value();
}

TEST_F(HandOverTest, ARefusalHasItsCodeItsTextAndItsDetails) {
  v1::BadRequest detail;
  detail.add_field_violations()->set_field("rope.head_dim");
  v1::RpcStatus* error = reply_.mutable_error();
  error->set_code(static_cast<int>(absl::StatusCode::kInvalidArgument));
  error->set_message("rope.head_dim: must be even, got 9");
  error->add_details()->set_type_url("type.googleapis.com/google.rpc.BadRequest");
  error->mutable_details(0)->set_value(detail.SerializeAsString());
  ServeReplyWith({});
  const absl::Status status = Refused();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "rope.head_dim: must be even, got 9");
  EXPECT_EQ(status.GetPayload("type.googleapis.com/google.rpc.BadRequest"),
            absl::Cord(detail.SerializeAsString()));
}

TEST_F(HandOverTest, WithoutASocketItIsUnavailableAndNamesThePath) {
  const absl::Status status = Get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_ + ".memfd: No such file"));
}

// Larger ones are uploaded (GetTableFromUpload), which only a stream takes.
TEST_F(HandOverTest, ALargeRequestIsNotEvenSent) {
  request_.set_if_table_id(std::string(4 << 20, 'x'));
  EXPECT_THAT(std::string(Get().status().message()), HasSubstr("is uploaded"));
}

TEST_F(HandOverTest, APathThatIsTooLongIsUnavailable) {
  const absl::Status status =
      HandOver("/" + std::string(105, 'x')).Get(request_, CallContext{}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("too long"));
}

// Somebody else may have put a socket where ours is expected: he gets no request.
TEST_F(HandOverTest, AServerOfAnotherUserIsSentNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  int to_parent[2];
  ASSERT_EQ(pipe2(to_parent, O_CLOEXEC), 0);
  const Descriptor from_child(to_parent[0]);
  const pid_t child = fork();
  if (child == 0) {  // listens as nobody, and passes on what comes
    const Descriptor listener = BindUnix(path_ + ".memfd");
    const bool ready =
        setuid(65534) == 0 && listen(listener.get(), 1) == 0 && write(to_parent[1], "+", 1) == 1;
    const int socket = ready ? accept(listener.get(), nullptr, nullptr) : -1;
    char byte = 0;
    while (read(socket, &byte, 1) == 1 && write(to_parent[1], &byte, 1) == 1) {
    }
    _exit(0);
  }
  { const Descriptor end(to_parent[1]); }
  char ready = 0;
  ASSERT_EQ(read(from_child.get(), &ready, 1), 1);
  const absl::Status status = Get().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr("user id is 65534"));
  char byte = 0;
  EXPECT_EQ(read(from_child.get(), &byte, 1), 0);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace posenc::testing
