// What a stream carries: frames, checksums, hashes, resumption, and its errors.
#include <string>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/engine/engine.h"
#include "posenc/v1/error_details.pb.h"
#include "tests/service/test_server.h"
#include "xxhash.h"

namespace posenc::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Hash128(const std::string& bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

// The bytes as the engine gives them, without any server.
std::string EngineBytes(const v1::GetTableRequest& request) {
  Engine engine;
  auto table = engine.GetTable(request);
  EXPECT_TRUE(table.ok()) << table.status();
  std::string bytes;
  while (!(*table)->done()) {
    const Slice slice = (*table)->Next();
    bytes.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
  }
  return bytes;
}

class GetTableTest : public ::testing::Test {
 protected:
  ReadResult Get(const v1::GetTableRequest& request) { return Read(server_.stub(), request); }

  TestServer server_;
};

TEST_F(GetTableTest, GivesTheEnginesBytes) {
  const v1::GetTableRequest request = AlibiBias(12, 300, 500);  // 7.2 MB, no whole pages
  const ReadResult read = Get(request);
  ASSERT_TRUE(read.status.ok()) << read.status.error_message();
  EXPECT_EQ(read.header().total_bytes(), 12u * 300 * 500 * 4);
  EXPECT_EQ(read.data, EngineBytes(request));
}

TEST_F(GetTableTest, SendsTheHeaderFirstAndOnce) {
  const ReadResult read = Get(TableOf(5 << 20));
  ASSERT_GT(read.messages.size(), 1u);
  EXPECT_EQ(read.header().tensors(0).name(), "attention_bias");
  for (size_t i = 1; i < read.messages.size(); ++i) EXPECT_FALSE(read.messages[i].has_header());
}

TEST_F(GetTableTest, EachMessageCarriesItsOffsetAndTheChecksumOfItsData) {
  const ReadResult read = Get(AlibiBias(3, 700, 701));
  uint64_t offset = 0;
  for (const v1::GetTableResponse& message : read.messages) {
    EXPECT_EQ(message.offset(), offset);
    EXPECT_EQ(message.checksum(), XXH3_64bits(message.data().data(), message.data().size()));
    offset += message.data().size();
  }
  EXPECT_EQ(offset, read.header().total_bytes());
}

TEST_F(GetTableTest, TheLastMessageOfAReadFromTheStartCarriesTheContentHash) {
  const ReadResult read = Get(AlibiBias(3, 700, 701));
  EXPECT_EQ(read.content_hash(), Hash128(read.data));
  for (size_t i = 0; i + 1 < read.messages.size(); ++i) {
    EXPECT_THAT(read.messages[i].content_hash(), IsEmpty());
  }
}

TEST_F(GetTableTest, MessagesAreAboutAChunk) {
  const ReadResult read = Get(TableOf(10 << 20));
  EXPECT_EQ(read.messages.size(), 10u);
  for (const auto& message : read.messages) EXPECT_LE(message.data().size(), size_t{1} << 20);
}

TEST_F(GetTableTest, AnEmptyTableIsOneMessageWithHeaderAndHash) {
  const ReadResult read = Get(AlibiBias(4, 0, 10));
  ASSERT_TRUE(read.status.ok()) << read.status.error_message();
  ASSERT_EQ(read.messages.size(), 1u);
  EXPECT_EQ(read.header().total_bytes(), 0u);
  EXPECT_THAT(read.header().table_id(), ::testing::SizeIs(32));
  EXPECT_EQ(read.content_hash(), Hash128(""));
  EXPECT_EQ(read.messages[0].checksum(), XXH3_64bits("", 0));
}

// Small answers are kept, checksums stay with pages, content hashes with tables.
TEST_F(GetTableTest, EveryReadingIsTheSameMessages) {
  v1::GetTableRequest resumed = AlibiBias(3, 700, 701);
  resumed.set_read_offset(1'000'001);
  for (const auto& request :
       {AlibiBias(1, 8, 8), AlibiBias(4, 0, 10), AlibiBias(3, 700, 701), resumed}) {
    const ReadResult first = Get(request);
    for (int reading = 0; reading < 2; ++reading) {
      const ReadResult again = Get(request);
      ASSERT_EQ(again.messages.size(), first.messages.size());
      for (size_t i = 0; i < first.messages.size(); ++i) {
        EXPECT_TRUE(again.messages[i].SerializeAsString() == first.messages[i].SerializeAsString());
      }
    }
  }
}

// The frames are written by hand: they must be what protobuf would have written.
TEST_F(GetTableTest, FramesAreTheSerializedMessages) {
  for (const auto& request : {AlibiBias(2, 600, 700), AlibiBias(1, 0, 0)}) {
    std::vector<std::string> frames;
    const grpc::Status status =
        CallRaw(server_.NewChannel(), "GetTable", request.SerializeAsString(), &frames);
    ASSERT_TRUE(status.ok()) << status.error_message();
    for (const std::string& frame : frames) {
      v1::GetTableResponse message;
      ASSERT_TRUE(message.ParseFromString(frame));
      EXPECT_TRUE(message.SerializeAsString() == frame);
    }
  }
}

TEST_F(GetTableTest, ResumesAtAnyByte) {
  v1::GetTableRequest request = AlibiBias(3, 700, 701);
  const ReadResult whole = Get(request);
  const uint64_t total = whole.data.size();
  const uint64_t page = uint64_t{1} << 20;
  request.set_if_table_id(whole.header().table_id());
  for (const uint64_t offset : {uint64_t{1}, uint64_t{3}, uint64_t{4}, page - 1, page, page + 1,
                                2 * page + 17, total / 2, total - 4, total - 1, total}) {
    SCOPED_TRACE(offset);
    request.set_read_offset(offset);
    const ReadResult rest = Get(request);
    ASSERT_TRUE(rest.status.ok()) << rest.status.error_message();
    EXPECT_EQ(rest.messages.front().offset(), offset);
    EXPECT_EQ(rest.header().table_id(), whole.header().table_id());
    EXPECT_TRUE(rest.data == whole.data.substr(offset));
    EXPECT_THAT(rest.content_hash(), IsEmpty());
  }
}

TEST_F(GetTableTest, RefusesToResumePastTheEnd) {
  v1::GetTableRequest request = AlibiBias(1, 8, 8);
  request.set_read_offset(257);
  const ReadResult read = Get(request);
  EXPECT_EQ(read.status.error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_THAT(read.status.error_message(), HasSubstr("256 bytes, got 257"));
}

TEST_F(GetTableTest, RefusesToResumeAnotherTable) {
  v1::GetTableRequest request = AlibiBias(1, 8, 8);
  request.set_if_table_id("00000000000000000000000000000000");
  const ReadResult read = Get(request);
  EXPECT_EQ(read.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(read.messages, IsEmpty());
}

TEST_F(GetTableTest, ARefusedSpecNamesItsField) {
  const ReadResult read = Get(AlibiBias(0, 8, 8));
  EXPECT_EQ(read.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const auto detail = DetailOf<v1::BadRequest>(read.status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->field_violations(0).field(), "alibi.num_heads");
}

TEST_F(GetTableTest, SeveralReadersGetTheSameBytes) {
  const v1::GetTableRequest request = TableOf(8 << 20);
  const std::string expected = EngineBytes(request);
  std::vector<std::thread> readers;
  for (int i = 0; i < 8; ++i) {
    readers.emplace_back([&] {
      const auto stub = v1::PositionalEncodingService::NewStub(server_.NewChannel());
      const ReadResult read = Read(*stub, request);
      EXPECT_TRUE(read.status.ok()) << read.status.error_message();
      EXPECT_TRUE(read.data == expected) << "of " << read.data.size() << " bytes";
    });
  }
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace posenc::testing
