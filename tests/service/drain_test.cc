// How a server stops: nobody new comes in, who is inside finishes or is cut off,
// and no open Watch holds it up.
#include <chrono>
#include <memory>
#include <thread>

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
constexpr std::chrono::minutes kLong{10};  // a test that needs it hangs

class DrainTest : public ::testing::Test {
 protected:
  server::ServerOptions Options() {
    server::ServerOptions options = TestOptions();
    options.before_job = gate_.Hook();
    return options;
  }

  // Until the drain has begun for everybody who asks.
  void WaitUntilNotServing() {
    HealthCheckResponse answer;
    while (answer.status() != HealthCheckResponse::NOT_SERVING) {
      grpc::ClientContext context;
      ASSERT_TRUE(health_->Check(&context, {}, &answer).ok());
    }
  }

  Gate gate_;
  TestServer server_{Options()};
  std::unique_ptr<Health::Stub> health_ = Health::NewStub(server_.NewChannel());
};

TEST_F(DrainTest, AnIdleServerStopsAtOnceWithAWatchOpen) {
  grpc::ClientContext context;
  const auto watch = health_->Watch(&context, {});
  HealthCheckResponse answer;
  ASSERT_TRUE(watch->Read(&answer));
  EXPECT_EQ(answer.status(), HealthCheckResponse::SERVING);

  std::thread drain([&] { server_.server().Drain(kLong); });
  ASSERT_TRUE(watch->Read(&answer));
  EXPECT_EQ(answer.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(watch->Read(&answer));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  drain.join();
}

TEST_F(DrainTest, RunningStreamsFinishAndNewCallsAreSentAway) {
  gate_.Close();
  grpc::ClientContext context;
  const auto reader = server_.stub().GetTable(&context, TableOf(64 * kMiB));
  gate_.WaitForArrivals(1);
  std::thread drain([&] { server_.server().Drain(kLong); });
  WaitUntilNotServing();

  const ReadResult refused = Read(server_.stub(), TableOf(kMiB));
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.status.error_message(), HasSubstr("draining"));
  EXPECT_TRUE(DetailOf<v1::RetryInfo>(refused.status).has_value());
  grpc::ClientContext info_context;
  v1::GetServerInfoResponse info;
  EXPECT_EQ(server_.stub().GetServerInfo(&info_context, {}, &info).error_code(),
            grpc::StatusCode::UNAVAILABLE);

  gate_.Open();
  uint64_t bytes = 0;
  v1::GetTableResponse message;
  while (reader->Read(&message)) bytes += message.data().size();
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(bytes, 64 * kMiB);
  drain.join();
}

// The last bytes of a stream wait in sockets when the server closes them.
TEST_F(DrainTest, ASlowReaderGetsItsLastBytes) {
  grpc::ClientContext context;
  const auto reader = server_.stub().GetTable(&context, TableOf(8 * kMiB));
  v1::GetTableResponse message;
  ASSERT_TRUE(reader->Read(&message));
  uint64_t bytes = message.data().size();
  std::thread drain([&] { server_.server().Drain(kLong); });
  while (reader->Read(&message)) {
    bytes += message.data().size();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  const grpc::Status status = reader->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(bytes, 8 * kMiB);
  drain.join();
}

TEST_F(DrainTest, AStreamThatOutlastsTheGraceIsCutOff) {
  grpc::ClientContext context;
  const auto reader = server_.stub().GetTable(&context, TableOf(512 * kMiB));
  v1::GetTableResponse message;
  ASSERT_TRUE(reader->Read(&message));  // and no more
  server_.server().Drain(std::chrono::milliseconds(50));
  while (reader->Read(&message)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);  // retried elsewhere
}

TEST_F(DrainTest, HurryingCutsTheGraceShort) {
  grpc::ClientContext context;
  const auto reader = server_.stub().GetTable(&context, TableOf(512 * kMiB));
  v1::GetTableResponse message;
  ASSERT_TRUE(reader->Read(&message));
  std::thread drain([&] { server_.server().Drain(kLong); });
  WaitUntilNotServing();
  server_.server().HurryUp();
  drain.join();
  while (reader->Read(&message)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);  // retried elsewhere
}

TEST_F(DrainTest, ACallThatWaitsForAThreadMayFinish) {
  gate_.Close();
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] { EXPECT_TRUE(Read(server_.stub(), TableOf(kMiB)).status.ok()); });
  }
  while (server_.Info().active_streams() < 4) std::this_thread::yield();
  std::thread drain([&] { server_.server().Drain(kLong); });
  WaitUntilNotServing();
  gate_.Open();
  for (std::thread& reader : readers) reader.join();
  drain.join();
}

TEST_F(DrainTest, NobodyListensAfterwards) {
  server_.server().Drain(kLong);
  EXPECT_EQ(Read(server_.stub(), TableOf(kMiB)).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  server::ServerOptions again = TestOptions();
  again.listen = server_.server().addresses();
  const auto second = server::Server::Start(again);
  EXPECT_TRUE(second.ok()) << second.status();
}

TEST(HealthTest, KnowsItsServicesAndNoOthers) {
  TestServer server;
  const auto health = Health::NewStub(server.NewChannel());
  const auto check = [&](const std::string& service, HealthCheckResponse* answer) {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(service);
    return health->Check(&context, request, answer).error_code();
  };
  HealthCheckResponse answer;
  EXPECT_EQ(check("", &answer), grpc::StatusCode::OK);
  EXPECT_EQ(check("posenc.v1.PositionalEncodingService", &answer), grpc::StatusCode::OK);
  EXPECT_EQ(answer.status(), HealthCheckResponse::SERVING);
  EXPECT_EQ(check("posenc.v2.Other", &answer), grpc::StatusCode::NOT_FOUND);
}

// As grpc.health.v1 has it: a Watch of an unknown service stays open.
TEST(HealthTest, AWatchOfAnUnknownServiceSaysSoAndStaysOpen) {
  TestServer server;
  const auto health = Health::NewStub(server.NewChannel());
  grpc::ClientContext context;
  HealthCheckRequest request;
  request.set_service("posenc.v2.Other");
  const auto watch = health->Watch(&context, request);
  HealthCheckResponse answer;
  ASSERT_TRUE(watch->Read(&answer));
  EXPECT_EQ(answer.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  context.TryCancel();
  EXPECT_FALSE(watch->Read(&answer));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST(InProcessTest, GivesTheSameTableWithoutASocket) {
  server::ServerOptions options = TestOptions();
  options.listen.clear();
  auto server = server::Server::Start(options);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto stub = v1::PositionalEncodingService::NewStub((*server)->InProcessChannel());
  const ReadResult in_process = Read(*stub, AlibiBias(3, 700, 701));
  ASSERT_TRUE(in_process.status.ok()) << in_process.status.error_message();

  TestServer tcp;
  const ReadResult over_tcp = Read(tcp.stub(), AlibiBias(3, 700, 701));
  EXPECT_TRUE(in_process.data == over_tcp.data);
  EXPECT_EQ(in_process.content_hash(), over_tcp.content_hash());
  (*server)->Drain(std::chrono::seconds(30));
}

}  // namespace
}  // namespace posenc::testing
