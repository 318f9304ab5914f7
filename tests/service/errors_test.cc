// What bad input gets: the status table of the design, over a real socket.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/families/family.h"
#include "posenc/v1/error_details.pb.h"
#include "tests/service/test_server.h"

namespace posenc::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kMethods[] = {"GetTable", "DescribeTable", "ResolveModelConfig",
                                    "GetServerInfo"};

// Groups nest without a type of their own: field 1, begun `depth` times and ended.
std::string NestedGroups(size_t depth) {
  return std::string(depth, '\x0b') + std::string(depth, '\x0c');
}

class ErrorsTest : public ::testing::Test {
 protected:
  static server::ServerOptions Options() {
    server::ServerOptions options = TestOptions();
    options.max_request_bytes = 100'000;
    options.engine.max_position_ids = 1000;
    options.engine.max_table_bytes = 1 << 20;
    return options;
  }

  void ExpectBadRequest(absl::string_view method, const std::optional<std::string>& request,
                        absl::string_view field) {
    SCOPED_TRACE(method);
    const grpc::Status status = CallRaw(channel_, method, request);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    const auto detail = DetailOf<v1::BadRequest>(status);
    ASSERT_TRUE(detail.has_value());
    EXPECT_EQ(detail->field_violations(0).field(), field);
  }

  TestServer server_{Options()};
  std::shared_ptr<grpc::Channel> channel_ = server_.NewChannel();
};

TEST_F(ErrorsTest, AMessageThatDoesNotParseIsRefusedByEveryMethod) {
  for (const char* method : kMethods) {
    ExpectBadRequest(method, "\xff\xff\xff", "request");
    ExpectBadRequest(method, "\x0a\x7f", "request");  // cut short
  }
}

TEST_F(ErrorsTest, AMessageNestedTooDeepIsRefusedByEveryMethod) {
  for (const char* method : kMethods) ExpectBadRequest(method, NestedGroups(40'000), "request");
}

TEST_F(ErrorsTest, TextThatIsNotUtf8IsRefused) {
  const std::string if_table_id = absl::StrCat("\x32\x02", "\xc3\x28");
  ExpectBadRequest("GetTable", if_table_id, "request");
}

TEST_F(ErrorsTest, AnEmptyMessageParsesAndMissesItsSource) {
  ExpectBadRequest("GetTable", "", "source");
  ExpectBadRequest("DescribeTable", "", "source");
}

TEST_F(ErrorsTest, ACallWithoutAMessageIsRefused) {
  for (const char* method : kMethods) {
    EXPECT_FALSE(CallRaw(channel_, method, std::nullopt).ok()) << method;
  }
}

// A few kilobytes can inflate to gigabytes.
TEST_F(ErrorsTest, ACompressedMessageIsRefusedAsItIs) {
  for (const char* method : kMethods) {
    grpc::ClientContext context;
    context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    const std::string inflated(size_t{4} << 20, '\0');
    EXPECT_EQ(CallRaw(channel_, method, inflated, nullptr, &context).error_code(),
              grpc::StatusCode::UNIMPLEMENTED)
        << method;
  }
}

TEST_F(ErrorsTest, AnUnsetFamilyIsRefused) {
  v1::GetTableRequest request;
  request.mutable_spec();
  ExpectBadRequest("GetTable", request.SerializeAsString(), "spec");
}

TEST_F(ErrorsTest, UnknownEnumValuesAreRefused) {
  v1::GetTableRequest request = AlibiBias(1, 8, 8);
  request.mutable_format()->set_layout(static_cast<v1::Layout>(77));
  ExpectBadRequest("GetTable", request.SerializeAsString(), "format.layout");
  request = AlibiBias(1, 8, 8);
  request.mutable_spec()->mutable_alibi()->set_form(static_cast<v1::AlibiForm>(-3));
  ExpectBadRequest("GetTable", request.SerializeAsString(), "alibi.form");
}

TEST_F(ErrorsTest, AConfigThatIsNotJsonIsRefused) {
  v1::ResolveModelConfigRequest request;
  request.mutable_model()->set_config_json("{\"model_type\": ");
  const grpc::Status status = CallRaw(channel_, "ResolveModelConfig", request.SerializeAsString());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_TRUE(DetailOf<v1::BadRequest>(status).has_value());
}

TEST_F(ErrorsTest, ARequestAboveTheLimitIsRefusedWithTheLimit) {
  for (const char* method : kMethods) {
    SCOPED_TRACE(method);
    const grpc::Status status = CallRaw(channel_, method, std::string(100'001, '\0'));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_message(),
                HasSubstr("100001 bytes exceed max_request_bytes (100000)"));
    EXPECT_TRUE(DetailOf<v1::QuotaFailure>(status).has_value());
  }
}

TEST_F(ErrorsTest, ARequestFarAboveTheLimitIsRefusedByGrpc) {
  const grpc::Status status = CallRaw(channel_, "GetTable", std::string(10'000'000, '\0'));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(ErrorsTest, ATableAboveTheLimitIsRefusedWithAQuotaFailure) {
  const ReadResult read = Read(server_.stub(), TableOf(2 << 20));
  EXPECT_EQ(read.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(DetailOf<v1::QuotaFailure>(read.status).has_value());
}

TEST_F(ErrorsTest, TooManyPositionIdsAreRefusedWithAQuotaFailure) {
  v1::GetTableRequest request;
  request.mutable_spec()->mutable_sinusoidal()->set_d_model(8);
  for (int i = 0; i < 1001; ++i) request.mutable_selection()->mutable_position_ids()->add_ids(i);
  const ReadResult read = Read(server_.stub(), request);
  EXPECT_EQ(read.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(DetailOf<v1::QuotaFailure>(read.status).has_value());
}

TEST_F(ErrorsTest, AnUnknownMethodIsUnimplemented) {
  EXPECT_EQ(CallRaw(channel_, "Frobnicate", "").error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

// gRPC carries an error's text in metadata, of which a client takes 8 KiB.
TEST_F(ErrorsTest, AnErrorAboutAHugeValueStillFitsAClient) {
  v1::GetTableRequest request = AlibiBias(1, 8, 8);
  request.set_if_table_id(std::string(50'000, '\x01'));
  grpc::Status status = CallRaw(channel_, "GetTable", request.SerializeAsString());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), SizeIs(::testing::Le(1024u)));

  v1::ResolveModelConfigRequest config;
  config.mutable_model()->set_config_json(
      absl::StrCat("{\"model_type\": \"", std::string(50'000, 'x'), "\"}"));
  status = CallRaw(channel_, "ResolveModelConfig", config.SerializeAsString());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(DetailOf<v1::BadRequest>(status).has_value());
}

TEST_F(ErrorsTest, AConfigThatIsNotUtf8GetsAReadableError) {
  v1::ResolveModelConfigRequest request;
  request.mutable_model()->set_config_json("{\"model_type\": \"\xc3\x28\"}");
  const grpc::Status status = CallRaw(channel_, "ResolveModelConfig", request.SerializeAsString());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_TRUE(DetailOf<v1::BadRequest>(status).has_value());
}

// Custom initial metadata makes gRPC clients treat a call as begun, and so
// silently switches their retries off.
TEST_F(ErrorsTest, TheRequestIdTravelsInTrailingMetadataOnly) {
  for (const auto& request : {AlibiBias(0, 8, 8), AlibiBias(1, 8, 8)}) {
    grpc::ClientContext context;
    context.AddMetadata("x-request-id", "job-17.a_b");
    Read(server_.stub(), request, &context);
    EXPECT_THAT(context.GetServerInitialMetadata(), Not(Contains(Key("x-request-id"))));
    const auto found = context.GetServerTrailingMetadata().find("x-request-id");
    ASSERT_NE(found, context.GetServerTrailingMetadata().end());
    EXPECT_EQ(found->second, "job-17.a_b");
  }
}

TEST_F(ErrorsTest, ARequestIdThatCouldForgeALogLineIsReplaced) {
  for (const std::string& id : {std::string("a b"), std::string("a\"b"), std::string(65, 'x')}) {
    grpc::ClientContext context;
    context.AddMetadata("x-request-id", id);
    v1::GetServerInfoResponse info;
    ASSERT_TRUE(server_.stub().GetServerInfo(&context, {}, &info).ok());
    const auto found = context.GetServerTrailingMetadata().find("x-request-id");
    ASSERT_NE(found, context.GetServerTrailingMetadata().end());
    EXPECT_THAT(std::string(found->second.data(), found->second.size()),
                ::testing::MatchesRegex("[0-9a-f]{16}"));
  }
}

TEST_F(ErrorsTest, ServesOnAfterAllOfThis) {
  for (const char* method : kMethods) CallRaw(channel_, method, NestedGroups(1000));
  EXPECT_TRUE(Read(server_.stub(), AlibiBias(1, 8, 8)).status.ok());
}

TEST_F(ErrorsTest, GetServerInfoReportsTheLimits) {
  const v1::GetServerInfoResponse info = server_.Info();
  EXPECT_EQ(info.limits().max_table_bytes(), 1u << 20);
  EXPECT_EQ(info.limits().max_request_bytes(), 100'000u);
  EXPECT_EQ(info.limits().max_position_ids(), 1000u);
  EXPECT_EQ(info.limits().max_queue(), 128u);
  EXPECT_EQ(info.limits().max_concurrent_streams(), 128u);
  EXPECT_EQ(info.limits().compute_threads(), 2u);
  EXPECT_EQ(info.limits().chunk_bytes(), 1u << 20);
  EXPECT_EQ(info.active_streams(), 0u);
  EXPECT_EQ(static_cast<size_t>(info.encodings_size()), AllFamilies().size());
}

TEST_F(ErrorsTest, GetServerInfoCountsTheCache) {
  Read(server_.stub(), TableOf(1 << 20));
  Read(server_.stub(), TableOf(1 << 20));
  const v1::GetServerInfoResponse info = server_.Info();
  EXPECT_EQ(info.page_cache().misses(), 1u);
  EXPECT_EQ(info.page_cache().hits(), 1u);
  EXPECT_GE(info.page_cache().bytes(), 1u << 20);
  EXPECT_EQ(info.plan_cache().hits(), 1u);
}

}  // namespace
}  // namespace posenc::testing
