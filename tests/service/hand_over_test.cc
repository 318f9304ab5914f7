// The server's end of a hand-over, with readers that behave.
#include "server/hand_over.h"

#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/service/hand_over_fixture.h"

namespace posenc::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class HandOverTest : public HandOverFixture {};

TEST_F(HandOverTest, GivesTheHeaderAndTheHashOfTheStream) {
  Start();
  const v1::HandOverReply reply = Ask(TableOf(kMiB));
  const ReadResult stream = Read(server_->stub(), TableOf(kMiB));
  EXPECT_EQ(reply.header().SerializeAsString(), stream.header().SerializeAsString());
  EXPECT_EQ(reply.content_hash(), stream.content_hash());
}

// Equal table ids may have come by different requests: a header is the request's own.
TEST_F(HandOverTest, TheHeaderIsOfThisRequestNotOfTheOneThatMadeTheMemory) {
  Start();
  const std::string config =
      R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 1,
          "max_position_embeddings": 16, "rope_theta": 10000.0})";
  v1::GetTableRequest by_model;
  by_model.mutable_model()->set_config_json(config);
  const v1::HandOverReply first = Ask(by_model);
  v1::GetTableRequest by_spec;
  *by_spec.mutable_spec() = first.header().spec();
  *by_spec.mutable_selection() = first.header().selection();
  *by_spec.mutable_format() = first.header().format();
  const v1::HandOverReply second = Ask(by_spec);
  EXPECT_EQ(first.header().table_id(), second.header().table_id());
  EXPECT_EQ(first.header().max_position_embeddings(), 16);
  EXPECT_EQ(second.header().max_position_embeddings(), 0);
  EXPECT_EQ(server_->Info().shared_tables().hits(), 1u);
}

TEST_F(HandOverTest, ARefusalNamesTheField) {
  Start();
  v1::GetTableRequest request;
  request.mutable_spec()->mutable_rope()->set_head_dim(9);
  request.mutable_selection()->mutable_position_range()->set_end(1);
  const v1::HandOverReply reply = Ask(request);
  EXPECT_EQ(reply.error().code(), CodeOf(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(reply.error().message(), "rope.head_dim: must be even, got 9");
  EXPECT_EQ(DetailIn<v1::BadRequest>(reply).field_violations(0).field(), "rope.head_dim");
}

TEST_F(HandOverTest, OffsetAndTableIdAreCheckedAsGetTableDoes) {
  Start();
  v1::GetTableRequest request = TableOf(4096);
  request.set_read_offset(4097);
  EXPECT_EQ(Ask(request).error().code(), CodeOf(absl::StatusCode::kOutOfRange));
  request.set_read_offset(4096);
  EXPECT_EQ(Ask(request).header().total_bytes(), 4096u);
  request.set_if_table_id("another");
  EXPECT_EQ(Ask(request).error().code(), CodeOf(absl::StatusCode::kFailedPrecondition));
}

TEST_F(HandOverTest, ARequestMayComeByteByByte) {
  Start();
  UnixSocket socket(memfd_path_);
  for (const char byte : Framed(TableOf(4096))) ASSERT_TRUE(socket.Send(std::string(1, byte)));
  v1::HandOverReply reply;
  ASSERT_TRUE(socket.Receive(&reply));
  EXPECT_EQ(reply.header().total_bytes(), 4096u);
}

TEST_F(HandOverTest, AFullQueueIsUnavailableAndSaysWhenToComeBack) {
  options_.compute_threads = 1;
  options_.max_queue = 0;
  options_.before_job = gate_.Hook();
  Start();
  gate_.Close();
  UnixSocket first(memfd_path_);
  ASSERT_TRUE(first.Send(Framed(TableOf(4096))));
  gate_.WaitForArrivals(1);
  const v1::HandOverReply reply = Ask(TableOf(4096));
  EXPECT_EQ(reply.error().code(), CodeOf(absl::StatusCode::kUnavailable));
  EXPECT_GT(DetailIn<v1::RetryInfo>(reply).retry_delay().nanos(), 0);
  gate_.Open();
  v1::HandOverReply answer;
  EXPECT_TRUE(first.Receive(&answer));
}

TEST_F(HandOverTest, BeyondTheStreamsThatAreAllowedItIsUnavailable) {
  options_.max_concurrent_streams = 0;
  Start();
  const v1::HandOverReply reply = Ask(TableOf(4096));
  EXPECT_THAT(reply.error().message(), HasSubstr("max_concurrent_streams (0)"));
}

TEST_F(HandOverTest, ATableBeyondTheBudgetIsStreamed) {
  options_.share_memory_bytes = kMiB;
  Start();
  absl::StatusOr<TableReader> reader = Open(TableOf(2 * kMiB));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->transport(), Transport::kStream);
  EXPECT_EQ(reader->why_streamed().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(reader->why_streamed().message()), HasSubstr("share_memory_bytes"));
  std::vector<std::byte> bytes(2 * kMiB);
  EXPECT_TRUE(reader->ReadAll(bytes).ok());
}

TEST_F(HandOverTest, ATableThatNoWayMayServeIsRefusedWithItsDetails) {
  options_.engine.max_table_bytes = kMiB;
  Start();
  const absl::Status status = Open(TableOf(2 * kMiB)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("max_table_bytes"));
  EXPECT_TRUE(status.GetPayload("type.googleapis.com/google.rpc.QuotaFailure").has_value());
}

TEST_F(HandOverTest, ADrainingServerFinishesWhoIsInsideAndSendsTheRestAway) {
  options_.before_job = gate_.Hook();
  Start();
  gate_.Close();
  UnixSocket inside(memfd_path_);
  ASSERT_TRUE(inside.Send(Framed(TableOf(kMiB))));
  gate_.WaitForArrivals(1);
  std::thread drain([&] { server_->server().Drain(std::chrono::minutes(10)); });
  const auto is_open = [&] {
    grpc::ClientContext context;
    v1::GetServerInfoResponse info;
    return server_->stub().GetServerInfo(&context, {}, &info).ok();
  };
  while (is_open()) std::this_thread::yield();
  const v1::HandOverReply refused = Ask(TableOf(4096));
  EXPECT_EQ(refused.error().code(), CodeOf(absl::StatusCode::kUnavailable));
  DetailIn<v1::RetryInfo>(refused);

  gate_.Open();
  v1::HandOverReply reply;
  EXPECT_TRUE(inside.Receive(&reply));
  EXPECT_THAT(inside.descriptors(), SizeIs(1));
  drain.join();
  EXPECT_FALSE(std::filesystem::exists(memfd_path_));
}

TEST_F(HandOverTest, AServerThatEndsHangsUpOnWhoStillWaits) {
  options_.before_job = gate_.Hook();
  Start();
  gate_.Close();
  UnixSocket waits(memfd_path_);
  ASSERT_TRUE(waits.Send(Framed(TableOf(kMiB))));
  UnixSocket silent(memfd_path_);
  gate_.WaitForArrivals(1);
  server_->server().HurryUp();
  server_->server().Drain(std::chrono::nanoseconds::zero());
  EXPECT_EQ(waits.ReceiveRest(), "");
  EXPECT_EQ(silent.ReceiveRest(), "");
  gate_.Open();
  server_.reset();  // and the job that was queued touches nothing that is gone
}

TEST_F(HandOverTest, ReadersOfOneConnectionShareOneMapping) {
  Start();
  ClientOptions options;
  options.share_memory = true;
  const Client client(MakeConnection("unix://" + path_, options));
  const absl::StatusOr<TableReader> one = client.GetTable(TableOf(kMiB));
  const absl::StatusOr<TableReader> other = client.GetTable(TableOf(kMiB));
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->ViewTensor("attention_bias")->bytes.data(),
            other->ViewTensor("attention_bias")->bytes.data());
}

TEST_F(HandOverTest, TheSocketIsForThisUserOnlyAndGoesWithTheServer) {
  Start();
  struct stat info = {};
  ASSERT_EQ(stat(memfd_path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(memfd_path_));
}

TEST_F(HandOverTest, ASocketThatAKilledServerLeftIsReplaced) {
  { const Descriptor stale = BindUnix(memfd_path_); }
  Start();
  EXPECT_EQ(Ask(TableOf(4096)).header().total_bytes(), 4096u);
}

TEST_F(HandOverTest, AnythingElseAtThePathStopsTheStart) {
  std::filesystem::create_directory(memfd_path_);
  const auto server = server::Server::Start(options_);
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("not a socket"));
  EXPECT_TRUE(std::filesystem::is_directory(memfd_path_));
}

TEST_F(HandOverTest, SharingWithoutAUnixPathStopsTheStart) {
  options_.listen = {"127.0.0.1:0"};
  EXPECT_THAT(std::string(server::Server::Start(options_).status().message()),
              HasSubstr("share_memory: needs a unix:PATH"));
}

TEST_F(HandOverTest, APathTooLongForASecondSocketStopsTheStart) {
  options_.listen = {"unix:" + path_ + std::string(104 - path_.size(), 'x')};
  EXPECT_THAT(std::string(server::Server::Start(options_).status().message()),
              HasSubstr("share_memory: a Unix path takes at most 107 bytes, got 110"));
}

TEST_F(HandOverTest, IsOffUnlessItIsSwitchedOn) {
  options_.share_memory = false;
  Start();
  EXPECT_FALSE(server_->Info().has_shared_tables());
  EXPECT_FALSE(std::filesystem::exists(memfd_path_));
  const absl::StatusOr<TableReader> reader = Open(TableOf(4096));
  ASSERT_TRUE(reader.ok());
  EXPECT_THAT(std::string(reader->why_streamed().message()), HasSubstr("No such file"));
}

TEST_F(HandOverTest, AClientThatDoesNotAskIsNotShared) {
  Start();
  const absl::StatusOr<TableReader> reader =
      Client(MakeConnection("unix:" + path_)).GetTable(TableOf(4096));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->why_streamed().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(server_->Info().shared_tables().misses(), 0u);
}

}  // namespace
}  // namespace posenc::testing
