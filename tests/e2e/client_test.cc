// The client library against a server process: refusals, offsets, cuts, threads.
// That every way gives the same bytes is tests/conformance's.

#include "posenc/client.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "posenc/embedded_connection.h"
#include "posenc/v1/error_details.pb.h"
#include "tests/e2e/cutting_proxy.h"
#include "tests/support/process.h"

namespace posenc::testing {
namespace {

using ::testing::HasSubstr;

v1::GetTableRequest Request(const std::string& json) {
  v1::GetTableRequest request;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &request);
  EXPECT_TRUE(status.ok()) << status.ToString() << " " << json;
  return request;
}

// One of each family, with several tensors, an empty one, a long one.
std::vector<v1::GetTableRequest> Requests() {
  return {
      Request(R"({"spec": {"rope": {"head_dim": 128}},
                  "selection": {"position_range": {"begin": 5, "end": 9005}}})"),
      Request(
          R"({"spec": {"rope": {"head_dim": 64}}, "format": {"layout": "LAYOUT_COS_AND_SIN_HALF",
                  "dtype": "DTYPE_BF16"}, "selection": {"position_ids": {"ids": [7, 0, 131071]}}})"),
      Request(R"({"spec": {"sinusoidal": {"d_model": 33}}, "format": {"dtype": "DTYPE_F64"},
                  "selection": {"position_range": {"end": 777}}})"),
      Request(
          R"({"spec": {"rope": {"head_dim": 64}}, "format": {"layout": "LAYOUT_COS_AND_SIN_FULL"},
                  "selection": {"position_range": {"begin": 1, "end": 9004}}})"),
      Request(R"({"spec": {"alibi": {"num_heads": 14}}, "format": {"dtype": "DTYPE_F16"},
                  "selection": {"attention_grid": {"query_length": 300, "key_length": 500}}})"),
      Request(R"({"spec": {"t5": {}},
                  "selection": {"attention_grid": {"query_length": 401, "key_length": 501}}})"),
      Request(R"({"spec": {"rope": {"head_dim": 128}},
                  "selection": {"position_range": {"begin": 3, "end": 3}}})"),
  };
}

struct Read {
  std::string bytes;
  std::string table_id;
  std::string content_hash;
  bool operator==(const Read&) const = default;
};

absl::StatusOr<Read> ReadTable(const Client& client, const v1::GetTableRequest& request) {
  absl::StatusOr<TableReader> reader = client.GetTable(request);
  if (!reader.ok()) return reader.status();
  Read read{std::string(reader->header().total_bytes() - reader->offset(), '\0'),
            reader->header().table_id(), ""};
  const absl::Status status = reader->ReadAll(std::as_writable_bytes(std::span<char>(read.bytes)));
  if (!status.ok()) return status;
  read.content_hash = reader->content_hash();
  return read;
}

class ClientEndToEndTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new ServerProcess({"--listen", "127.0.0.1:0"}); }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  static Client Tcp() { return Client(MakeConnection(server_->address())); }
  static Client Embedded() { return Client(MakeEmbeddedConnection()); }

  static ServerProcess* server_;
};

ServerProcess* ClientEndToEndTest::server_ = nullptr;

TEST_F(ClientEndToEndTest, DescriptionsAreTheEmbeddedLibrarys) {
  for (const v1::GetTableRequest& request : Requests()) {
    v1::DescribeTableRequest describe;
    *describe.mutable_spec() = request.spec();
    *describe.mutable_selection() = request.selection();
    *describe.mutable_format() = request.format();
    const auto embedded = Embedded().DescribeTable(describe);
    const auto served = Tcp().DescribeTable(describe);
    ASSERT_TRUE(embedded.ok() && served.ok()) << embedded.status() << served.status();
    EXPECT_EQ(served->SerializeAsString(), embedded->SerializeAsString());
  }
}

TEST_F(ClientEndToEndTest, RefusalsAreTheEmbeddedLibrarysWithTheirDetails) {
  const std::vector<v1::GetTableRequest> refused = {
      Request("{}"),
      Request(R"({"spec": {"rope": {"head_dim": 65}}})"),
      Request(R"({"spec": {"alibi": {"num_heads": 0}}})"),
      Request(R"({"spec": {"alibi": {"num_heads": 8}}, "if_table_id": "00", "selection":
                  {"attention_grid": {"query_length": 1, "key_length": 1}}})"),
      Request(R"({"spec": {"alibi": {"num_heads": 8}}, "read_offset": 1000, "selection":
                  {"attention_grid": {"query_length": 1, "key_length": 1}}})"),
      Request(R"({"model": {"config_json": "e30="}})"),
  };
  for (const v1::GetTableRequest& request : refused) {
    const absl::Status embedded = Embedded().GetTable(request).status();
    ASSERT_FALSE(embedded.ok()) << request.ShortDebugString();
    EXPECT_EQ(Tcp().GetTable(request).status(), embedded);  // payloads too
  }
}

TEST_F(ClientEndToEndTest, ARefusalNamesItsFieldInADetail) {
  const absl::Status status =
      Tcp().GetTable(Request(R"({"spec": {"alibi": {"num_heads": 0}}})")).status();
  const auto payload = status.GetPayload("type.googleapis.com/google.rpc.BadRequest");
  ASSERT_TRUE(payload.has_value()) << status;
  v1::BadRequest detail;
  ASSERT_TRUE(detail.ParseFromString(std::string(*payload)));
  EXPECT_EQ(detail.field_violations(0).field(), "alibi.num_heads");
}

TEST_F(ClientEndToEndTest, AnyOffsetGivesTheRest) {
  v1::GetTableRequest request = Requests()[0];
  const absl::StatusOr<Read> whole = ReadTable(Tcp(), request);
  ASSERT_TRUE(whole.ok());
  const uint64_t size = whole->bytes.size();
  const uint64_t mib = 1 << 20;
  for (const uint64_t offset :
       {uint64_t{1}, uint64_t{511}, mib - 1, mib, mib + 1, size / 2 + 3, size - 1, size}) {
    request.set_read_offset(offset);
    const absl::StatusOr<Read> rest = ReadTable(Tcp(), request);
    ASSERT_TRUE(rest.ok()) << rest.status();
    EXPECT_TRUE(rest->bytes == whole->bytes.substr(offset)) << offset;
  }
}

TEST_F(ClientEndToEndTest, AConnectionCutAnywhereGivesTheSameTable) {
  const v1::GetTableRequest request = Requests()[0];  // 4.6 MB
  const absl::StatusOr<Read> whole = ReadTable(Tcp(), request);
  ASSERT_TRUE(whole.ok());
  for (const size_t cut_after : {1000U, 65536U, 1000003U, 1048576U, 1200000U, 2500000U, 4500000U}) {
    const CuttingProxy proxy(server_->address(), cut_after, /*cuts=*/2);
    ClientOptions options;
    options.retry.max_attempts = 20;  // gRPC's reconnection takes its own time
    const Client client(MakeConnection(proxy.address()), options);
    const absl::StatusOr<Read> read = ReadTable(client, request);
    ASSERT_TRUE(read.ok()) << cut_after << ": " << read.status();
    EXPECT_TRUE(*read == *whole) << cut_after;
    EXPECT_GE(proxy.cuts_made(), 1) << cut_after;
  }
}

// A table of 8 MiB: no message may be so large, so it goes in pieces, again after each cut.
TEST_F(ClientEndToEndTest, ALargeTableOfTheCallersIsUploaded) {
  v1::GetTableRequest request = Request(
      R"({"spec": {"table_resample": {"table": {"shape": [65536, 32]}}},
          "selection": {"patch_grid": {"height": 250, "width": 300}}})");
  std::vector<float> numbers(65536 * 32);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 1000);
  request.mutable_spec()->mutable_table_resample()->mutable_table()->set_f32(
      reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
  const absl::StatusOr<Read> embedded = ReadTable(Embedded(), request);
  ASSERT_TRUE(embedded.ok()) << embedded.status();
  const absl::StatusOr<Read> uploaded = ReadTable(Tcp(), request);
  ASSERT_TRUE(uploaded.ok()) << uploaded.status();
  EXPECT_TRUE(*uploaded == *embedded);

  const CuttingProxy proxy(server_->address(), /*cut_after=*/3000000, /*cuts=*/2);
  ClientOptions options;
  options.retry.max_attempts = 20;
  const absl::StatusOr<Read> resumed =
      ReadTable(Client(MakeConnection(proxy.address()), options), request);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_TRUE(*resumed == *embedded);
  EXPECT_GE(proxy.cuts_made(), 1);

  // The server's refusal reaches the caller, not the write that failed.
  request.mutable_spec()->mutable_table_resample()->set_scale_offset(2);
  EXPECT_EQ(Tcp().GetTable(request).status(), Embedded().GetTable(request).status());
}

TEST_F(ClientEndToEndTest, TensorsAreReadOneByOne) {
  const v1::GetTableRequest request = Request(
      R"({"spec": {"rope": {"head_dim": 128}}, "format": {"layout": "LAYOUT_COS_AND_SIN_FULL"},
          "selection": {"position_range": {"end": 5000}}})");
  const absl::StatusOr<Read> whole = ReadTable(Tcp(), request);
  ASSERT_TRUE(whole.ok());
  absl::StatusOr<TableReader> reader = Tcp().GetTable(request);
  ASSERT_TRUE(reader.ok());
  std::string sine(reader->header().tensors(1).bytes(), '\0');
  std::string cosine(reader->header().tensors(0).bytes(), '\0');
  ASSERT_TRUE(reader->ReadTensor("sin", std::as_writable_bytes(std::span<char>(sine))).ok());
  ASSERT_TRUE(reader->ReadTensor("cos", std::as_writable_bytes(std::span<char>(cosine))).ok());
  EXPECT_TRUE(cosine + sine == whole->bytes);
}

TEST_F(ClientEndToEndTest, EightThreadsShareOneClient) {
  const Client client = Tcp();
  const std::vector<v1::GetTableRequest> requests = Requests();
  std::vector<Read> expected;
  for (const auto& request : requests) expected.push_back(ReadTable(Embedded(), request).value());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (size_t j = 0; j < requests.size(); ++j) {
        const size_t k = (i + j) % requests.size();
        const absl::StatusOr<Read> read = ReadTable(client, requests[k]);
        EXPECT_TRUE(read.ok() && *read == expected[k]) << k << ": " << read.status();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ClientEndToEndTest, InfoAndHealthAnswer) {
  const absl::StatusOr<v1::GetServerInfoResponse> info = Tcp().GetServerInfo();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_GE(info->limits().chunk_bytes(), uint64_t{64} << 10);
  EXPECT_TRUE(Tcp().CheckHealth().ok());
  EXPECT_TRUE(Embedded().CheckHealth().ok());
}

TEST(ClientEndToEnd, ATableLargerThanTheServerAllowsIsRefusedWithItsQuota) {
  ServerProcess server({"--listen", "127.0.0.1:0", "--max-table-bytes", "1000"});
  const Client client(MakeConnection(server.address()));
  const absl::Status status = client.GetTable(Requests()[0]).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("max_table_bytes (1000)"));
  EXPECT_TRUE(status.GetPayload("type.googleapis.com/google.rpc.QuotaFailure").has_value());
}

}  // namespace
}  // namespace posenc::testing
