// Tables that are larger than a message: uploaded, answered, refused, cut off.
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "posenc/v1/error_details.pb.h"
#include "tests/service/test_server.h"
#include "xxhash.h"

namespace posenc::testing {
namespace {

using ::testing::HasSubstr;
using Message = v1::GetTableFromUploadRequest;

constexpr size_t kPiece = size_t{1} << 20;

// A table of rows x 8 numbers, which are their own index.
std::string Numbers(int64_t rows) {
  std::vector<float> values(static_cast<size_t>(rows * 8));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// side x side patches, resampled to 3 x 5; without the numbers.
v1::GetTableRequest Resample(int64_t side) {
  v1::GetTableRequest request;
  v1::FloatTable* table = request.mutable_spec()->mutable_table_resample()->mutable_table();
  table->add_shape(side * side);
  table->add_shape(8);
  request.mutable_selection()->mutable_patch_grid()->set_height(3);
  request.mutable_selection()->mutable_patch_grid()->set_width(5);
  return request;
}

std::vector<Message> Messages(const v1::GetTableRequest& request, const std::string& numbers,
                              size_t piece = kPiece) {
  std::vector<Message> messages(1);
  *messages.front().mutable_request() = request;
  for (size_t offset = 0; offset < numbers.size(); offset += piece) {
    Message& message = messages.emplace_back();
    message.set_offset(offset);
    message.set_data(numbers.substr(offset, piece));
    message.set_checksum(XXH3_64bits(message.data().data(), message.data().size()));
  }
  return messages;
}

// A call under way.
struct Call {
  explicit Call(v1::PositionalEncodingService::Stub& stub)
      : stream(stub.GetTableFromUpload(&context)) {}

  bool Send(const std::vector<Message>& messages) {
    for (const Message& message : messages) {
      if (!stream->Write(message)) return false;
    }
    return true;
  }

  // The answer, to its end.
  ReadResult Read() {
    ReadResult result;
    v1::GetTableResponse message;
    while (stream->Read(&message)) {
      result.data += message.data();
      result.messages.push_back(std::move(message));
    }
    result.status = stream->Finish();
    return result;
  }

  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<Message, v1::GetTableResponse>> stream;
};

ReadResult Upload(TestServer& server, const std::vector<Message>& messages) {
  Call call(server.stub());
  call.Send(messages);
  call.stream->WritesDone();
  return call.Read();
}

// A call gives back what it held before its stream stops counting.
void WaitUntilStreamsAre(TestServer& server, uint64_t most) {
  while (server.Info().active_streams() > most) std::this_thread::yield();
}

void WaitUntilNoStreamIsActive(TestServer& server) { WaitUntilStreamsAre(server, 0); }

TEST(UploadTest, AnUploadedTableIsTheOneThatCameInTheRequest) {
  TestServer server;
  v1::GetTableRequest whole = Resample(4);
  whole.mutable_spec()->mutable_table_resample()->mutable_table()->set_f32(Numbers(16));
  const ReadResult expected = Read(server.stub(), whole);
  ASSERT_TRUE(expected.status.ok()) << expected.status.error_message();

  for (const size_t piece : {size_t{4}, size_t{100}, size_t{512}}) {
    const ReadResult result = Upload(server, Messages(Resample(4), Numbers(16), piece));
    ASSERT_TRUE(result.status.ok()) << result.status.error_message();
    EXPECT_EQ(result.header().table_id(), expected.header().table_id());
    EXPECT_EQ(result.data, expected.data);
    EXPECT_EQ(result.content_hash(), expected.content_hash());
  }
}

// 3 MiB and 8 MiB of it in one message would pass what a server and a client take.
TEST(UploadTest, ATableLargerThanAnyMessage) {
  TestServer server;
  const std::string numbers = Numbers(512 * 512);
  ASSERT_EQ(numbers.size(), size_t{8} << 20);
  const ReadResult result = Upload(server, Messages(Resample(512), numbers));
  ASSERT_TRUE(result.status.ok()) << result.status.error_message();
  EXPECT_EQ(result.data.size(), 3 * 5 * 8 * sizeof(float));

  // The header names the numbers by their hash.
  const v1::FloatTable& echoed = result.header().spec().table_resample().table();
  EXPECT_EQ(echoed.f32(), "");
  const XXH128_hash_t hash = XXH3_128bits(numbers.data(), numbers.size());
  char hex[33];
  snprintf(hex, sizeof(hex), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
           static_cast<unsigned long long>(hash.low64));
  EXPECT_EQ(echoed.content_hash(), hex);
}

TEST(UploadTest, TwoTablesFollowOneAnother) {
  TestServer server;
  v1::GetTableRequest request;
  v1::HstuTimeBiasSpec* hstu = request.mutable_spec()->mutable_hstu_time_bias();
  hstu->mutable_position_table()->add_shape(7);
  hstu->mutable_time_table()->add_shape(129);
  for (const int64_t time : {0, 1, 60, 86400}) {
    request.mutable_selection()->mutable_sequences()->add_values(time);
  }
  request.mutable_format()->set_layout(v1::LAYOUT_BIAS);
  const std::string numbers = Numbers(17);  // 7 + 129
  v1::GetTableRequest whole = request;
  v1::HstuTimeBiasSpec* full = whole.mutable_spec()->mutable_hstu_time_bias();
  full->mutable_position_table()->set_f32(numbers.substr(0, 28));
  full->mutable_time_table()->set_f32(numbers.substr(28));
  const ReadResult expected = Read(server.stub(), whole);
  ASSERT_TRUE(expected.status.ok()) << expected.status.error_message();
  for (const size_t piece : {size_t{20}, kPiece}) {  // cut inside the first, and none
    const ReadResult result = Upload(server, Messages(request, numbers, piece));
    ASSERT_TRUE(result.status.ok()) << result.status.error_message();
    EXPECT_EQ(result.header().table_id(), expected.header().table_id());
    EXPECT_EQ(result.data, expected.data);
  }
}

TEST(UploadTest, AnAnswerIsResumedByAskingAgain) {
  TestServer server;
  const ReadResult whole = Upload(server, Messages(Resample(4), Numbers(16)));
  v1::GetTableRequest request = Resample(4);
  request.set_read_offset(100);
  request.set_if_table_id(whole.header().table_id());
  const ReadResult rest = Upload(server, Messages(request, Numbers(16)));
  ASSERT_TRUE(rest.status.ok()) << rest.status.error_message();
  EXPECT_EQ(rest.data, whole.data.substr(100));

  std::string others = Numbers(16);
  others[0] = 1;
  EXPECT_EQ(Upload(server, Messages(request, others)).status.error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

// What is wrong with an upload, by the field that the error names.
TEST(UploadTest, RefusalsNameTheField) {
  TestServer server;
  const auto refusal = [&](const std::function<void(std::vector<Message>*)>& spoil) {
    std::vector<Message> messages = Messages(Resample(4), Numbers(16), 256);
    spoil(&messages);
    const ReadResult result = Upload(server, messages);
    EXPECT_EQ(result.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_TRUE(DetailOf<v1::BadRequest>(result.status).has_value());
    return result.status.error_message();
  };
  EXPECT_EQ(refusal([](auto* messages) { messages->clear(); }),
            "request: is missing: the call sent no message");
  EXPECT_EQ(refusal([](auto* messages) { messages->erase(messages->begin()); }),
            "request: is required in the first message");
  EXPECT_EQ(refusal([](auto* messages) { messages->insert(messages->begin(), messages->front()); }),
            "request: must be in the first message only");
  EXPECT_EQ(refusal([](auto* messages) { messages->pop_back(); }),
            "data: ended after 256 of the 512 bytes of the tables");
  EXPECT_EQ(refusal([](auto* messages) {
              messages->push_back(messages->back());
              messages->back().set_offset(512);
            }),
            "data: goes beyond the 512 bytes of the tables: 256 at offset 512");
  EXPECT_EQ(refusal([](auto* messages) { messages->back().set_offset(260); }),
            "offset: must be the 256 bytes that came before, got 260");
  EXPECT_THAT(refusal([](auto* messages) { messages->back().mutable_data()->front() ^= 1; }),
              HasSubstr("that of the 256 bytes at offset 256 is"));
  const auto table = [](std::vector<Message>* messages) {
    return messages->front()
        .mutable_request()
        ->mutable_spec()
        ->mutable_table_resample()
        ->mutable_table();
  };
  EXPECT_EQ(refusal([&](auto* messages) { table(messages)->set_f32(Numbers(16)); }),
            "spec: has no table without numbers: nothing is to be uploaded");
  EXPECT_THAT(refusal([&](auto* messages) { table(messages)->set_shape(0, int64_t{1} << 62); }),
              HasSubstr("table_resample.table.shape: must be the lengths of a table"));
  EXPECT_THAT(refusal([&](auto* messages) { table(messages)->clear_shape(); }),
              HasSubstr("table_resample.table.shape"));
  EXPECT_THAT(refusal([&](auto* messages) { table(messages)->set_content_hash("0"); }),
              HasSubstr("table_resample.table.content_hash: is that of other numbers"));
  EXPECT_THAT(refusal([](auto* messages) {
                messages->front().mutable_request()->mutable_model()->set_config_json("{}");
              }),
              HasSubstr("source: must be a spec"));
}

TEST(UploadTest, MoreThanTheServerTakesIsRefusedBeforeAnyOfItIsSent) {
  server::ServerOptions options = TestOptions();
  options.max_upload_bytes = 511;
  TestServer server(options);
  EXPECT_EQ(server.Info().limits().max_upload_bytes(), 511u);
  Call call(server.stub());
  call.Send({Messages(Resample(4), "").front()});
  const ReadResult result = call.Read();  // our side is still open
  EXPECT_EQ(result.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(result.status.error_message(),
            "request: the 512 bytes of its tables exceed max_upload_bytes (511)");
  EXPECT_TRUE(DetailOf<v1::QuotaFailure>(result.status).has_value());
}

// A message of an upload is a message: as large as any other may be.
TEST(UploadTest, AMessageThatIsTooLarge) {
  TestServer server;
  const std::string numbers = Numbers(512 * 512);
  const ReadResult result = Upload(server, Messages(Resample(512), numbers, (size_t{4} << 20) + 4));
  EXPECT_EQ(result.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(result.status.error_message(), HasSubstr("exceed max_request_bytes"));
}

class UploadBudgetTest : public ::testing::Test {
 protected:
  static server::ServerOptions Options() {
    server::ServerOptions options = TestOptions();
    options.max_upload_bytes = 600;  // one table of 512 bytes at a time
    options.stall_timeout = std::chrono::milliseconds(200);
    return options;
  }

  // An upload that has its place and waits for its numbers. The next one tells: it is
  // refused as soon as this one is in.
  std::unique_ptr<Call> Begin() {
    auto call = std::make_unique<Call>(server_.stub());
    call->Send({Messages(Resample(4), "").front()});
    return call;
  }

  grpc::Status TryAnother() { return Upload(server_, Messages(Resample(4), Numbers(16))).status; }

  TestServer server_{Options()};
};

TEST_F(UploadBudgetTest, WhatOthersHoldIsUnavailableUntilTheyAreDone) {
  server::ServerOptions options = Options();
  options.stall_timeout = std::chrono::seconds(600);
  TestServer server(options);
  Call first(server.stub());
  first.Send({Messages(Resample(4), "").front()});
  grpc::Status status;
  for (int i = 0; i < 10000 && status.ok(); ++i) {  // until the first one has its place
    WaitUntilStreamsAre(server, 1);                 // the last try has given its place back
    status = Upload(server, Messages(Resample(4), Numbers(16))).status;
  }
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "other uploads take 512 of max_upload_bytes (600)");
  EXPECT_TRUE(DetailOf<v1::RetryInfo>(status).has_value());

  std::vector<Message> rest = Messages(Resample(4), Numbers(16));
  rest.erase(rest.begin());
  first.Send(rest);
  first.stream->WritesDone();
  EXPECT_TRUE(first.Read().status.ok());
  WaitUntilNoStreamIsActive(server);
  EXPECT_TRUE(Upload(server, Messages(Resample(4), Numbers(16))).status.ok());
}

TEST_F(UploadBudgetTest, WhoSendsNothingIsCutOffAndGivesItsPlaceBack) {
  const auto silent = Begin();
  EXPECT_EQ(silent->Read().status.error_code(), grpc::StatusCode::CANCELLED);
  WaitUntilNoStreamIsActive(server_);
  EXPECT_TRUE(TryAnother().ok());
}

TEST_F(UploadBudgetTest, WhoNeverClosesItsSideIsCutOff) {
  const auto open = Begin();
  std::vector<Message> rest = Messages(Resample(4), Numbers(16));
  rest.erase(rest.begin());
  open->Send(rest);
  EXPECT_EQ(open->Read().status.error_code(), grpc::StatusCode::CANCELLED);
  WaitUntilNoStreamIsActive(server_);
  EXPECT_TRUE(TryAnother().ok());
}

// Messages that bring next to nothing are no time spent waiting, and hold the budget.
TEST_F(UploadBudgetTest, MessagesWithoutDataAreRefused) {
  const auto empty = Begin();
  Message nothing;
  for (int i = 0; i < 3000 && empty->stream->Write(nothing); ++i) {
  }
  const grpc::Status status = empty->Read().status;
  if (status.error_code() != grpc::StatusCode::CANCELLED) {  // on a machine that is so slow
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("data: must come in larger messages"));
  }
  WaitUntilNoStreamIsActive(server_);
  EXPECT_TRUE(TryAnother().ok());
}

// A byte now and then does not keep a place: 1 MiB must come within the timeout.
TEST_F(UploadBudgetTest, ATrickleIsCutOff) {
  const auto trickle = Begin();
  const std::vector<Message> bytes = Messages(Resample(4), Numbers(16), 1);
  Message nothing;
  int sent = 0;
  while (trickle->stream->Write(sent < 500 ? bytes[static_cast<size_t>(++sent)] : nothing)) {
    nothing.set_offset(static_cast<uint64_t>(sent));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(trickle->Read().status.error_code(), grpc::StatusCode::CANCELLED);
  WaitUntilNoStreamIsActive(server_);
  EXPECT_TRUE(TryAnother().ok());
}

TEST_F(UploadBudgetTest, WhoGoesAwayGivesItsPlaceBack) {
  for (int i = 0; i < 3; ++i) {
    const auto gone = Begin();
    gone->context.TryCancel();
    EXPECT_EQ(gone->Read().status.error_code(), grpc::StatusCode::CANCELLED);
    WaitUntilNoStreamIsActive(server_);
    EXPECT_TRUE(TryAnother().ok());
  }
}

TEST(UploadTest, ADrainCutsAnUploadThatDoesNotEnd) {
  server::ServerOptions options = TestOptions();
  options.stall_timeout = std::chrono::seconds(600);
  TestServer server(options);
  Call call(server.stub());
  call.Send({Messages(Resample(4), "").front()});
  while (server.Info().active_streams() == 0) std::this_thread::yield();
  server.server().HurryUp();
  server.server().Drain(std::chrono::seconds(600));
  EXPECT_FALSE(call.Read().status.ok());
}

}  // namespace
}  // namespace posenc::testing
