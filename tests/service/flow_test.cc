// Who waits for whom: streams that pull, calls that stop, places that run out,
// and health while nothing moves. Gates stand in for slow work; no test looks at a clock.
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "gtest/gtest.h"
#include "posenc/v1/error_details.pb.h"
#include "tests/service/test_server.h"

namespace posenc::testing {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using ::testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;

// A read under way, with what keeps it alive.
struct Stream {
  Stream(v1::PositionalEncodingService::Stub& stub, const v1::GetTableRequest& request,
         std::chrono::system_clock::time_point deadline =
             std::chrono::system_clock::time_point::max()) {
    context.set_deadline(deadline);
    reader = stub.GetTable(&context, request);
  }

  bool Next() { return reader->Read(&message); }
  grpc::Status Finish() {
    while (Next()) {
    }
    return reader->Finish();
  }

  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::GetTableResponse>> reader;
  v1::GetTableResponse message;
};

class FlowTest : public ::testing::Test {
 protected:
  server::ServerOptions Options() {
    server::ServerOptions options = TestOptions();
    options.max_queue = 1;
    options.max_concurrent_streams = 4;
    options.before_job = gate_.Hook();
    return options;
  }

  // Requests that each hold a thread at the gate; call before anything runs.
  void BlockEveryThread() {
    gate_.Close();
    for (int i = 0; i < 2; ++i) {
      blocked_.push_back(std::make_unique<Stream>(server_.stub(), TableOf(kMiB)));
    }
    gate_.WaitForArrivals(2);
  }

  void Release() {
    gate_.Open();
    for (const auto& stream : blocked_) EXPECT_TRUE(stream->Finish().ok());
    blocked_.clear();
  }

  // As soon as everybody who was inside has left.
  void WaitUntilNoStreamIsActive() {
    while (server_.Info().active_streams() > 0) std::this_thread::yield();
  }

  // One that the blocked ones share; of the 128 others as many as are computed before the
  // news that the call has ended arrives, if it got its thread first.
  void ExpectFewPages() { EXPECT_LE(server_.Info().page_cache().misses(), 64u); }

  void ExpectBusy(const grpc::Status& status, absl::string_view message) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(std::string(message)));
    const auto detail = DetailOf<v1::RetryInfo>(status);
    ASSERT_TRUE(detail.has_value());
    EXPECT_GT(detail->retry_delay().nanos(), 0);
  }

  Gate gate_;
  TestServer server_{Options()};
  std::vector<std::unique_ptr<Stream>> blocked_;
};

TEST_F(FlowTest, HealthAndInfoAnswerWhileEveryThreadIsBlocked) {
  const auto health = Health::NewStub(server_.NewChannel());
  BlockEveryThread();
  grpc::ClientContext check_context;
  HealthCheckResponse answer;
  EXPECT_TRUE(health->Check(&check_context, {}, &answer).ok());
  EXPECT_EQ(answer.status(), HealthCheckResponse::SERVING);

  grpc::ClientContext watch_context;
  const auto watch = health->Watch(&watch_context, {});
  EXPECT_TRUE(watch->Read(&answer));
  EXPECT_EQ(answer.status(), HealthCheckResponse::SERVING);
  watch_context.TryCancel();

  EXPECT_EQ(server_.Info().active_streams(), 2u);
  Release();
}

// A small answer that was given before needs no thread.
TEST_F(FlowTest, SmallAnswersAreGivenAgainWhileEveryThreadIsBlocked) {
  v1::DescribeTableRequest describe;
  *describe.mutable_spec() = AlibiBias(8, 1, 1).spec();
  const auto description = [&](std::string* bytes) {
    grpc::ClientContext context;
    v1::DescribeTableResponse response;
    const grpc::Status status = server_.stub().DescribeTable(&context, describe, &response);
    *bytes = response.SerializeAsString();
    return status;
  };
  std::string first;
  ASSERT_TRUE(description(&first).ok());
  const ReadResult first_read = Read(server_.stub(), AlibiBias(2, 8, 8));
  ASSERT_TRUE(first_read.status.ok());

  BlockEveryThread();
  std::string again;
  EXPECT_TRUE(description(&again).ok());
  EXPECT_EQ(again, first);
  const ReadResult read_again = Read(server_.stub(), AlibiBias(2, 8, 8));
  EXPECT_TRUE(read_again.status.ok());
  ASSERT_EQ(read_again.messages.size(), 1u);
  EXPECT_EQ(read_again.messages[0].SerializeAsString(), first_read.messages[0].SerializeAsString());
  Release();
}

TEST_F(FlowTest, AFullQueueIsUnavailableAndSaysWhenToRetry) {
  BlockEveryThread();
  blocked_.push_back(std::make_unique<Stream>(server_.stub(), TableOf(kMiB)));  // waits
  while (server_.Info().active_streams() < 3) std::this_thread::yield();

  ExpectBusy(Read(server_.stub(), TableOf(kMiB)).status, "max_queue (1)");
  grpc::ClientContext context;
  v1::DescribeTableResponse description;
  ExpectBusy(server_.stub().DescribeTable(&context, {}, &description), "max_queue (1)");
  Release();
  EXPECT_TRUE(Read(server_.stub(), TableOf(kMiB)).status.ok());
}

TEST_F(FlowTest, OneStreamTooManyIsUnavailableAndSaysWhenToRetry) {
  // Readers that take nothing after their first message: their streams stay.
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 4; ++i) {
    streams.push_back(std::make_unique<Stream>(server_.stub(), TableOf(64 * kMiB)));
    ASSERT_TRUE(streams.back()->Next());
  }
  EXPECT_EQ(server_.Info().active_streams(), 4u);
  ExpectBusy(Read(server_.stub(), TableOf(kMiB)).status, "max_concurrent_streams (4)");

  EXPECT_TRUE(streams.back()->Finish().ok());
  streams.pop_back();
  while (server_.Info().active_streams() > 3) std::this_thread::yield();
  EXPECT_TRUE(Read(server_.stub(), TableOf(kMiB)).status.ok());
  for (const auto& stream : streams) stream->context.TryCancel();
}

// The wire pulls: what a reader has not taken is not computed.
TEST_F(FlowTest, AReaderThatStopsCostsAFewChunks) {
  Stream stream(server_.stub(), TableOf(512 * kMiB));
  ASSERT_TRUE(stream.Next());
  // The client's transport may take more than was read, into its own window.
  int jobs = -1;
  while (jobs != gate_.passed()) {
    jobs = gate_.passed();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  EXPECT_LT(jobs, 64);
  stream.context.TryCancel();
}

TEST_F(FlowTest, CancellingStopsTheFilling) {
  Stream stream(server_.stub(), TableOf(512 * kMiB));
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(stream.Next());
  gate_.Close();
  std::thread reader([&] { EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::CANCELLED); });
  gate_.WaitForArrivals(1);  // the reader took all there was, and the next chunk is due
  stream.context.TryCancel();
  reader.join();
  const uint64_t filled = server_.Info().page_cache().misses();
  gate_.Open();
  WaitUntilNoStreamIsActive();
  // Of 512; a few may leave before the cancellation has crossed the connection.
  EXPECT_LE(server_.Info().page_cache().misses(), filled + 4);
}

TEST_F(FlowTest, ACallCancelledInTheQueueIsNotComputed) {
  BlockEveryThread();
  Stream waiting(server_.stub(), TableOf(128 * kMiB));
  while (server_.Info().active_streams() < 3) std::this_thread::yield();
  waiting.context.TryCancel();
  EXPECT_EQ(waiting.Finish().error_code(), grpc::StatusCode::CANCELLED);
  Release();
  WaitUntilNoStreamIsActive();
  ExpectFewPages();
}

TEST_F(FlowTest, ADeadlineEndsACallThatWaits) {
  BlockEveryThread();
  Stream waiting(server_.stub(), TableOf(128 * kMiB),
                 std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  EXPECT_EQ(waiting.Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  Release();
  WaitUntilNoStreamIsActive();
  ExpectFewPages();
}

TEST_F(FlowTest, ADeadlineEndsAStreamWhoseReaderStopped) {
  Stream stream(server_.stub(), TableOf(512 * kMiB),
                std::chrono::system_clock::now() + std::chrono::milliseconds(300));
  stream.Next();  // unless the machine is so slow that the time is up already
  WaitUntilNoStreamIsActive();
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST(StallTest, AReaderThatTakesNothingIsCutOff) {
  server::ServerOptions options = TestOptions();
  options.stall_timeout = std::chrono::milliseconds(100);
  TestServer server(options);
  Stream stream(server.stub(), TableOf(512 * kMiB));
  ASSERT_TRUE(stream.Next());
  while (server.Info().active_streams() > 0) std::this_thread::yield();
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST(StallTest, ACallThatSendsNothingIsCutOff) {
  server::ServerOptions options = TestOptions();
  options.stall_timeout = std::chrono::milliseconds(50);
  TestServer server(options);
  const auto channel = server.NewChannel();
  for (const char* method :
       {"GetTable", "GetTableFromUpload", "DescribeTable", "ResolveModelConfig", "GetServerInfo",
        "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"}) {
    EXPECT_EQ(CallSendingNothing(channel, method).error_code(), grpc::StatusCode::CANCELLED)
        << method;
  }
  EXPECT_TRUE(Read(server.stub(), AlibiBias(1, 8, 8)).status.ok());
}

TEST(StallTest, WaitingForAThreadIsNotStalling) {
  Gate gate;
  server::ServerOptions options = TestOptions();
  options.stall_timeout = std::chrono::milliseconds(20);
  options.before_job = gate.Hook();
  TestServer server(options);
  gate.Close();
  Stream stream(server.stub(), TableOf(kMiB));
  gate.WaitForArrivals(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // several timeouts
  gate.Open();
  EXPECT_TRUE(stream.Finish().ok());
}

TEST(EmptyQueueTest, WithoutAQueueAnIdleThreadStillTakesACall) {
  server::ServerOptions options = TestOptions();
  options.max_queue = 0;
  TestServer server(options);
  for (int i = 0; i < 100; ++i) {
    const grpc::Status status = Read(server.stub(), AlibiBias(1, 8, 8)).status;
    // The thread of the call before may not be back yet.
    EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::UNAVAILABLE);
  }
  EXPECT_TRUE(Read(server.stub(), AlibiBias(1, 8, 8)).status.ok());
}

TEST(EventThreadsTest, CallsOfManyConnectionsAreMovedByAllThreads) {
  server::ServerOptions options = TestOptions();
  options.event_threads = 3;
  TestServer server(options);
  std::vector<std::thread> readers;
  for (uint64_t mebibytes = 1; mebibytes <= 6; ++mebibytes) {
    readers.emplace_back([&server, bytes = mebibytes * kMiB] {
      const auto stub = v1::PositionalEncodingService::NewStub(server.NewChannel());
      for (int j = 0; j < 5; ++j) {
        const ReadResult read = Read(*stub, TableOf(bytes));
        EXPECT_TRUE(read.status.ok()) << read.status.error_message();
        EXPECT_EQ(read.data.size(), bytes);
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  server.server().Drain(std::chrono::seconds(10));
}

}  // namespace
}  // namespace posenc::testing
