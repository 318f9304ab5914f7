// The gRPC connection against a service of the test's own, in this process over a
// Unix socket: what it passes on, and that no wait is for ever.

#include <unistd.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/cord.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "posenc/client.h"
#include "posenc/v1/error_details.pb.h"
#include "posenc/v1/service.grpc.pb.h"
#include "tests/support/fake_peer.h"

namespace posenc::testing {
namespace {

using ::testing::HasSubstr;
using Writer = grpc::ServerWriter<v1::GetTableResponse>;

// Does as the test says.
class ScriptedService final : public v1::PositionalEncodingService::Service {
 public:
  std::function<grpc::Status(grpc::ServerContext*, const v1::GetTableRequest&, Writer*)> get_table;
  std::function<grpc::Status(grpc::ServerContext*, const v1::DescribeTableRequest&)> describe;

 private:
  grpc::Status GetTable(grpc::ServerContext* context, const v1::GetTableRequest* request,
                        Writer* writer) override {
    return get_table(context, *request, writer);
  }
  grpc::Status DescribeTable(grpc::ServerContext* context, const v1::DescribeTableRequest* request,
                             v1::DescribeTableResponse*) override {
    return describe(context, *request);
  }
};

class ScriptedHealth final : public grpc::health::v1::Health::Service {
  grpc::Status Check(grpc::ServerContext*, const grpc::health::v1::HealthCheckRequest* request,
                     grpc::health::v1::HealthCheckResponse* response) override {
    if (request->service() == "unknown") return {grpc::StatusCode::NOT_FOUND, "no such service"};
    response->set_status(request->service().empty()
                             ? grpc::health::v1::HealthCheckResponse::SERVING
                             : grpc::health::v1::HealthCheckResponse::NOT_SERVING);
    return grpc::Status::OK;
  }
};

class GrpcConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "posenc.XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    target_ = "unix:" + folder_ + "/socket";
  }
  void TearDown() override {
    Stop();
    unlink((folder_ + "/socket").c_str());
    rmdir(folder_.c_str());
  }

  void Start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(target_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    builder.RegisterService(&health_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  void Stop() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    server_ = nullptr;
  }

  Client MakeClient(ClientOptions options = {}) {
    return Client(MakeConnection(target_), std::move(options));
  }

  // Blocks a handler until the client has gone away.
  static grpc::Status WaitForCancel(grpc::ServerContext* context) {
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  }

  std::string folder_;
  std::string target_;
  ScriptedService service_;
  ScriptedHealth health_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(GrpcConnectionTest, PassesOnEveryFieldOfAMessage) {
  const FakeTable table = MakeFakeTable(25);
  const Attempt served = Serve(table, {}, 64);
  service_.get_table = [&](grpc::ServerContext*, const v1::GetTableRequest&, Writer* writer) {
    for (const v1::GetTableResponse& message : served.messages) writer->Write(message);
    return grpc::Status::OK;
  };
  Start();
  const auto connection = MakeConnection(target_);
  const auto stream = connection->GetTable({}, {});
  for (const v1::GetTableResponse& message : served.messages) {
    const auto chunk = stream->Read();
    ASSERT_TRUE(chunk.ok() && chunk->has_value()) << chunk.status();
    EXPECT_EQ((*chunk)->header != nullptr, message.has_header());
    EXPECT_EQ((*chunk)->offset, message.offset());
    EXPECT_EQ((*chunk)->checksum, message.checksum());
    EXPECT_EQ((*chunk)->content_hash, message.content_hash());
    EXPECT_EQ(
        std::string(reinterpret_cast<const char*>((*chunk)->data.data()), (*chunk)->data.size()),
        message.data());
  }
  const auto end = stream->Read();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_FALSE(end->has_value());
}

TEST_F(GrpcConnectionTest, AnErrorHasTheServersDetailsAsPayloads) {
  v1::BadRequest bad_request;
  bad_request.add_field_violations()->set_field("rope.rotary_dim");
  v1::RpcStatus rich;
  rich.set_code(grpc::StatusCode::INVALID_ARGUMENT);
  google::protobuf::Any* detail = rich.add_details();
  detail->set_type_url("type.googleapis.com/google.rpc.BadRequest");
  detail->set_value(bad_request.SerializeAsString());
  const grpc::Status refusal(grpc::StatusCode::INVALID_ARGUMENT, "rope.rotary_dim: must be even",
                             rich.SerializeAsString());
  service_.describe = [&](auto&&...) { return refusal; };
  service_.get_table = [&](auto&&...) { return refusal; };
  Start();
  const Client client = MakeClient();
  for (const absl::Status& status :
       {client.DescribeTable({}).status(), client.GetTable({}).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), "rope.rotary_dim: must be even");
    const auto payload = status.GetPayload("type.googleapis.com/google.rpc.BadRequest");
    ASSERT_TRUE(payload.has_value());
    v1::BadRequest read_back;
    ASSERT_TRUE(read_back.ParseFromString(std::string(*payload)));
    EXPECT_EQ(read_back.field_violations(0).field(), "rope.rotary_dim");
  }
}

TEST_F(GrpcConnectionTest, DetailsThatDoNotParseAreLeftOut) {
  service_.describe = [](auto&&...) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no", "\xff\xff garbage");
  };
  Start();
  EXPECT_EQ(MakeClient().DescribeTable({}).status(), absl::InvalidArgumentError("no"));
}

TEST_F(GrpcConnectionTest, AStreamThatStallsEndsWithADeadlineAndIsCancelled) {
  const FakeTable table = MakeFakeTable(25);
  bool cancelled = false;
  service_.get_table = [&](grpc::ServerContext* context, const v1::GetTableRequest& request,
                           Writer* writer) {
    writer->Write(Serve(table, request, 64).messages[0]);
    const grpc::Status status = WaitForCancel(context);
    cancelled = true;
    return status;
  };
  Start();
  ClientOptions options;
  options.progress_timeout = absl::Milliseconds(200);
  absl::StatusOr<TableReader> reader = MakeClient(options).GetTable({});
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::string bytes(200, '\0');
  const absl::Status status = reader->ReadAll(std::as_writable_bytes(std::span<char>(bytes)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no message for 200ms"));
  Stop();  // waits for the handler
  EXPECT_TRUE(cancelled);
}

TEST_F(GrpcConnectionTest, AServerThatNeverAnswersIsNotWaitedForLongerThanAsked) {
  service_.get_table = [](grpc::ServerContext* context, auto&&...) {
    return WaitForCancel(context);
  };
  service_.describe = [](grpc::ServerContext* context, auto&&...) {
    return WaitForCancel(context);
  };
  Start();
  ClientOptions options;
  options.progress_timeout = absl::Milliseconds(100);
  options.call_timeout = absl::Milliseconds(100);
  const Client client = MakeClient(options);
  EXPECT_TRUE(absl::IsDeadlineExceeded(client.GetTable({}).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(client.DescribeTable({}).status()));
}

TEST_F(GrpcConnectionTest, AReaderThatGoesAwayCancelsItsStream) {
  const FakeTable table = MakeFakeTable(25);
  bool cancelled = false;
  service_.get_table = [&](grpc::ServerContext* context, const v1::GetTableRequest& request,
                           Writer* writer) {
    writer->Write(Serve(table, request, 64).messages[0]);
    const grpc::Status status = WaitForCancel(context);
    cancelled = true;
    return status;
  };
  Start();
  ASSERT_TRUE(MakeClient().GetTable({}).ok());  // destroyed at once
  Stop();
  EXPECT_TRUE(cancelled);
}

TEST_F(GrpcConnectionTest, AHeaderWithAMillionIdsArrives) {
  FakeTable table = MakeFakeTable(1);
  for (int64_t id = 0; id < (1 << 20); ++id) {
    table.header.mutable_selection()->mutable_position_ids()->add_ids((int64_t{1} << 31) - 1 - id);
  }
  service_.get_table = [&](grpc::ServerContext*, const v1::GetTableRequest& request,
                           Writer* writer) {
    for (const auto& message : Serve(table, request, 64).messages) writer->Write(message);
    return grpc::Status::OK;
  };
  Start();
  const absl::StatusOr<TableReader> reader = MakeClient().GetTable({});
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->header().selection().position_ids().ids_size(), 1 << 20);
}

TEST_F(GrpcConnectionTest, AMessageTooLargeIsRefusedNotTakenIn) {
  FakeTable table = MakeFakeTable(5 << 20);  // 40 MiB
  service_.get_table = [&](grpc::ServerContext*, const v1::GetTableRequest& request,
                           Writer* writer) {
    writer->Write(Serve(table, request, 20 << 20).messages[0]);
    return grpc::Status::OK;
  };
  Start();
  EXPECT_TRUE(absl::IsResourceExhausted(MakeClient().GetTable({}).status()));
}

TEST_F(GrpcConnectionTest, HealthIsServingOrSaysWhyNot) {
  Start();
  const Client client = MakeClient();
  EXPECT_TRUE(client.CheckHealth().ok());
  const absl::Status down = client.CheckHealth("down");
  EXPECT_TRUE(absl::IsUnavailable(down));
  EXPECT_THAT(std::string(down.message()), HasSubstr("NOT_SERVING"));
  EXPECT_TRUE(absl::IsNotFound(client.CheckHealth("unknown")));
}

TEST_F(GrpcConnectionTest, NobodyThereIsUnavailable) {
  const Client client = MakeClient();
  EXPECT_TRUE(absl::IsUnavailable(client.CheckHealth()));
  EXPECT_TRUE(absl::IsUnavailable(client.GetServerInfo().status()));
  EXPECT_TRUE(absl::IsUnavailable(client.GetTable({}).status()));
}

TEST_F(GrpcConnectionTest, AServerThatComesUpBetweenAttemptsIsFound) {
  service_.describe = [](auto&&...) { return grpc::Status::OK; };
  ClientOptions options;
  options.retry.max_attempts = 10;
  options.clock.sleep = [&](absl::Duration delay) {
    if (server_ == nullptr) Start();
    absl::SleepFor(delay);
  };
  const auto described = MakeClient(options).DescribeTable({});
  EXPECT_TRUE(described.ok()) << described.status();
}

TEST_F(GrpcConnectionTest, AServerThatComesBackResumesTheRead) {
  const FakeTable table = MakeFakeTable(1 << 20);  // 8 MiB: more than sockets buffer
  service_.get_table = [&](grpc::ServerContext*, const v1::GetTableRequest& request,
                           Writer* writer) {
    for (const auto& message : Serve(table, request, 1 << 20).messages) {
      if (!writer->Write(message)) return grpc::Status::CANCELLED;
      if (request.read_offset() == 0 && message.offset() >= (2 << 20)) {
        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "draining");
      }
    }
    return grpc::Status::OK;
  };
  Start();
  ClientOptions options;
  options.retry.max_attempts = 10;
  options.clock.sleep = [&](absl::Duration delay) {
    Stop();
    Start();
    absl::SleepFor(delay);
  };
  absl::StatusOr<TableReader> reader = MakeClient(options).GetTable({});
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::string bytes(table.bytes.size(), '\0');
  const absl::Status status = reader->ReadAll(std::as_writable_bytes(std::span<char>(bytes)));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(bytes, table.bytes);
  EXPECT_EQ(reader->content_hash(), Serve(table, {}, 1 << 24).messages[0].content_hash());
}

// Answers GetTable with bytes that are no message, and says that all went well.
class GarbageService final : public v1::PositionalEncodingService::WithRawCallbackMethod_GetTable<
                                 v1::PositionalEncodingService::Service> {
  class Reactor final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
   public:
    Reactor() { StartWriteAndFinish(&bytes_, grpc::WriteOptions(), grpc::Status::OK); }
    void OnDone() override { delete this; }

   private:
    const grpc::Slice slice_{"\xff\xff\xff\xff garbage"};
    const grpc::ByteBuffer bytes_{&slice_, 1};
  };

  grpc::ServerWriteReactor<grpc::ByteBuffer>* GetTable(grpc::CallbackServerContext*,
                                                       const grpc::ByteBuffer*) override {
    return new Reactor;
  }
};

TEST_F(GrpcConnectionTest, BytesThatAreNoMessageAreAnError) {
  GarbageService garbage;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(target_, grpc::InsecureServerCredentials());
  builder.RegisterService(&garbage);
  server_ = builder.BuildAndStart();
  ASSERT_NE(server_, nullptr);
  const absl::Status status = MakeClient().GetTable({}).status();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  Stop();
}

}  // namespace
}  // namespace posenc::testing
