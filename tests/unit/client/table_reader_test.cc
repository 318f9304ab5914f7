// TableReader over a peer that keeps to the protocol: every way to read, and every
// place to be cut.

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "posenc/client.h"
#include "tests/support/fake_peer.h"

namespace posenc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kElements = 25;  // a tensor; the table has 200 bytes
constexpr size_t kChunk = 16;      // 13 messages, the last of 8 bytes

class TableReaderTest : public ::testing::Test {
 protected:
  // Attempts beyond the first are served whole.
  void CutFirstAttemptAfter(size_t messages, absl::Status status = Gone()) {
    connection_ = std::make_shared<FakeConnection>(
        [this, messages, status](const v1::GetTableRequest& request, size_t attempt) {
          Attempt served = Serve(table_, request, kChunk);
          return attempt == 0 ? std::move(served).CutAfter(messages, status) : served;
        });
  }

  absl::StatusOr<TableReader> Open(const v1::GetTableRequest& request = {}) {
    return Client(connection_, OptionsWith(&time_)).GetTable(request);
  }

  // The whole table, by one ReadAll.
  absl::StatusOr<std::string> ReadWhole() {
    absl::StatusOr<TableReader> reader = Open();
    if (!reader.ok()) return reader.status();
    std::string bytes(reader->header().total_bytes(), '\0');
    if (absl::Status status = reader->ReadAll(Writable(&bytes)); !status.ok()) return status;
    content_hash_ = reader->content_hash();
    return bytes;
  }

  static std::span<std::byte> Writable(std::string* bytes) {
    return std::as_writable_bytes(std::span<char>(*bytes));
  }

  FakeTime time_;
  FakeTable table_ = MakeFakeTable(kElements);
  std::string hash_ = Serve(table_, {}, 1000).messages[0].content_hash();
  std::string content_hash_;
  std::shared_ptr<FakeConnection> connection_ =
      std::make_shared<FakeConnection>([this](const v1::GetTableRequest& request, size_t) {
        return Serve(table_, request, kChunk);
      });
};

TEST_F(TableReaderTest, TheHeaderComesFirst) {
  const absl::StatusOr<TableReader> reader = Open();
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->header().total_bytes(), 200U);
  EXPECT_EQ(reader->header().tensors(1).name(), "sin");
  EXPECT_EQ(reader->offset(), 0U);
  EXPECT_EQ(reader->content_hash(), "");
}

TEST_F(TableReaderTest, ReadsTheWholeTableIntoOneSpan) {
  const absl::StatusOr<std::string> bytes = ReadWhole();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, table_.bytes);
  EXPECT_EQ(content_hash_, hash_);
}

TEST_F(TableReaderTest, ReadsOfAnySizeConcatenateToTheTable) {
  for (size_t size = 1; size <= 201; ++size) {
    absl::StatusOr<TableReader> reader = Open();
    ASSERT_TRUE(reader.ok());
    std::string all;
    std::string piece(size, '\0');
    absl::StatusOr<size_t> count = 0;
    do {
      count = reader->Read(Writable(&piece));
      ASSERT_TRUE(count.ok()) << count.status();
      all += piece.substr(0, *count);
      EXPECT_EQ(reader->offset(), all.size());
    } while (*count == size);
    EXPECT_EQ(all, table_.bytes) << "reads of " << size;
    EXPECT_EQ(reader->content_hash(), hash_);
    EXPECT_EQ(*reader->Read(Writable(&piece)), 0U);
  }
}

TEST_F(TableReaderTest, TheCallThatDeliversTheLastByteHasVerifiedTheHash) {
  absl::StatusOr<TableReader> reader = Open();
  std::string bytes(200, '\0');
  ASSERT_EQ(*reader->Read(Writable(&bytes)), 200U);
  EXPECT_EQ(reader->content_hash(), hash_);
}

TEST_F(TableReaderTest, AnEmptyReadReadsNothing) {
  absl::StatusOr<TableReader> reader = Open();
  EXPECT_EQ(*reader->Read({}), 0U);
  EXPECT_EQ(reader->offset(), 0U);
}

TEST_F(TableReaderTest, ReadAllRefusesASpanOfAnotherSize) {
  absl::StatusOr<TableReader> reader = Open();
  for (const size_t size : {0U, 199U, 201U}) {
    std::string bytes(size, '\0');
    const absl::Status status = reader->ReadAll(Writable(&bytes));
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("200 bytes"));
  }
  std::string bytes(200, '\0');
  EXPECT_TRUE(reader->ReadAll(Writable(&bytes)).ok()) << "a refused span costs nothing";
}

TEST_F(TableReaderTest, ReadAllReadsTheRest) {
  absl::StatusOr<TableReader> reader = Open();
  std::string head(50, '\0');
  std::string rest(150, '\0');
  ASSERT_TRUE(reader->Read(Writable(&head)).ok());
  ASSERT_TRUE(reader->ReadAll(Writable(&rest)).ok());
  EXPECT_EQ(head + rest, table_.bytes);
}

TEST_F(TableReaderTest, ReadsTensorsByNameInAnyOrder) {
  absl::StatusOr<TableReader> reader = Open();
  std::string sine(100, '\0');
  std::string cosine(100, '\0');
  ASSERT_TRUE(reader->ReadTensor("sin", Writable(&sine)).ok());
  ASSERT_TRUE(reader->ReadTensor("cos", Writable(&cosine)).ok());
  EXPECT_EQ(cosine + sine, table_.bytes);
}

TEST_F(TableReaderTest, TensorsInOrderNeedOneRequestAndGiveTheHash) {
  absl::StatusOr<TableReader> reader = Open();
  std::string cosine(100, '\0');
  std::string sine(100, '\0');
  ASSERT_TRUE(reader->ReadTensor("cos", Writable(&cosine)).ok());
  ASSERT_TRUE(reader->ReadTensor("sin", Writable(&sine)).ok());
  EXPECT_EQ(connection_->requests().size(), 1U);
  EXPECT_EQ(reader->content_hash(), hash_);
}

TEST_F(TableReaderTest, ATensorAlonePaysForItsOwnBytesOnly) {
  absl::StatusOr<TableReader> reader = Open();
  std::string sine(100, '\0');
  ASSERT_TRUE(reader->ReadTensor("sin", Writable(&sine)).ok());
  ASSERT_EQ(connection_->requests().size(), 2U);
  EXPECT_EQ(connection_->requests()[1].read_offset(), 100U);
  EXPECT_EQ(connection_->requests()[1].if_table_id(), table_.header.table_id());
  EXPECT_EQ(reader->content_hash(), "") << "nobody saw all bytes";
}

TEST_F(TableReaderTest, RefusesATensorThatIsNotThereAndASpanOfAnotherSize) {
  absl::StatusOr<TableReader> reader = Open();
  std::string bytes(100, '\0');
  EXPECT_TRUE(absl::IsNotFound(reader->ReadTensor("tan", Writable(&bytes))));
  bytes.resize(99);
  EXPECT_TRUE(absl::IsInvalidArgument(reader->ReadTensor("cos", Writable(&bytes))));
}

TEST_F(TableReaderTest, ReadsFromAnOffsetOfTheRequest) {
  for (uint64_t offset = 0; offset <= 200; ++offset) {
    v1::GetTableRequest request;
    request.set_read_offset(offset);
    absl::StatusOr<TableReader> reader = Open(request);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(reader->offset(), offset);
    std::string bytes(200 - offset, '\0');
    ASSERT_TRUE(reader->ReadAll(Writable(&bytes)).ok());
    EXPECT_EQ(bytes, table_.bytes.substr(offset));
    EXPECT_EQ(reader->content_hash(), offset == 0 ? hash_ : "");
  }
}

TEST_F(TableReaderTest, AnEmptyTableIsReadAndVerified) {
  table_ = MakeFakeTable(0);
  const absl::StatusOr<std::string> bytes = ReadWhole();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, "");
  // XXH3-128 of nothing, from the reference implementation's own tests (xxhash 0.8.1).
  EXPECT_EQ(content_hash_, "99aa06d3014798d86001c324468d497f");
}

TEST_F(TableReaderTest, ACutAfterAnyMessageResumesAtItsOffset) {
  for (size_t messages = 0; messages <= 13; ++messages) {
    CutFirstAttemptAfter(messages);
    const absl::StatusOr<std::string> bytes = ReadWhole();
    ASSERT_TRUE(bytes.ok()) << messages << " messages: " << bytes.status();
    EXPECT_EQ(*bytes, table_.bytes);
    EXPECT_EQ(content_hash_, hash_);
    if (messages == 13) continue;  // all was there: no second attempt
    ASSERT_EQ(connection_->requests().size(), 2U);
    EXPECT_EQ(connection_->requests()[1].read_offset(), messages * kChunk);
    EXPECT_EQ(connection_->requests()[1].if_table_id(),
              messages == 0 ? "" : table_.header.table_id());
  }
}

TEST_F(TableReaderTest, AStreamMayBeCutAfterEveryMessage) {
  connection_ =
      std::make_shared<FakeConnection>([this](const v1::GetTableRequest& request, size_t) {
        return Serve(table_, request, kChunk).CutAfter(1, Gone());
      });
  const absl::StatusOr<std::string> bytes = ReadWhole();
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, table_.bytes);
  EXPECT_EQ(connection_->requests().size(), 13U);
  EXPECT_EQ(content_hash_, hash_);
  EXPECT_EQ(time_.sleeps, std::vector<absl::Duration>(12, absl::Milliseconds(25)))
      << "each cut is a first one: bytes came in between";
}

TEST_F(TableReaderTest, FourAttemptsWithoutAByteAreEnough) {
  connection_ =
      std::make_shared<FakeConnection>([this](const v1::GetTableRequest& request, size_t attempt) {
        return Serve(table_, request, kChunk).CutAfter(attempt == 0 ? 2 : 0, Gone());
      });
  const absl::Status status = ReadWhole().status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("(4 attempts) (table 0123456789abcdef0123456789abcdef, at byte 32 of 200)"));
  EXPECT_EQ(connection_->requests().size(), 4U);
}

TEST_F(TableReaderTest, OpeningIsTriedFourTimes) {
  connection_ = std::make_shared<FakeConnection>([](const v1::GetTableRequest&, size_t) {
    return Attempt{{}, Gone()};
  });
  EXPECT_TRUE(absl::IsUnavailable(Open().status()));
  EXPECT_EQ(connection_->requests().size(), 4U);
}

TEST_F(TableReaderTest, ARetryInfoBeyondTheProgressTimeoutIsNotWaitedFor) {
  CutFirstAttemptAfter(3, GoneFor(absl::Seconds(21)));
  EXPECT_TRUE(absl::IsUnavailable(ReadWhole().status()));
  CutFirstAttemptAfter(3, GoneFor(absl::Seconds(19)));
  EXPECT_TRUE(ReadWhole().ok());
  EXPECT_THAT(time_.sleeps, ElementsAre(absl::Seconds(19)));
}

TEST_F(TableReaderTest, NoOtherStatusResumes) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kCancelled, absl::StatusCode::kDeadlineExceeded,
        absl::StatusCode::kInternal, absl::StatusCode::kInvalidArgument,
        absl::StatusCode::kResourceExhausted}) {
    CutFirstAttemptAfter(3, absl::Status(code, "no"));
    EXPECT_EQ(ReadWhole().status().code(), code);
    EXPECT_EQ(connection_->requests().size(), 1U);
  }
}

TEST_F(TableReaderTest, AServerWithAnotherTableRefusesTheResume) {
  connection_ =
      std::make_shared<FakeConnection>([this](const v1::GetTableRequest& request, size_t attempt) {
        if (attempt == 0) return Serve(table_, request, kChunk).CutAfter(3, Gone());
        FakeTable other = table_;
        other.header.set_table_id(std::string(32, 'f'));
        return Serve(other, request, kChunk);
      });
  const absl::Status status = ReadWhole().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("at byte 48 of 200"));
}

TEST_F(TableReaderTest, AServerThatIgnoresIfTableIdIsFoundOut) {
  connection_ =
      std::make_shared<FakeConnection>([this](const v1::GetTableRequest& request, size_t attempt) {
        Attempt served = Serve(table_, request, kChunk);
        if (attempt == 0) return std::move(served).CutAfter(3, Gone());
        served.messages[0].mutable_header()->set_table_id(std::string(32, 'f'));
        return served;
      });
  const absl::Status status = ReadWhole().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the table changed while it was read"));
}

TEST_F(TableReaderTest, HowAStreamEndsNoLongerMattersOnceAllIsVerified) {
  CutFirstAttemptAfter(13, absl::InternalError("too late to matter"));
  EXPECT_TRUE(ReadWhole().ok());
}

TEST_F(TableReaderTest, AReaderMovesWithItsPlace) {
  absl::StatusOr<TableReader> opened = Open();
  std::string bytes(200, '\0');
  ASSERT_TRUE(opened->Read(Writable(&bytes).first(30)).ok());
  TableReader reader = *std::move(opened);
  ASSERT_TRUE(reader.ReadAll(Writable(&bytes).subspan(30)).ok());
  EXPECT_EQ(bytes, table_.bytes);
}

}  // namespace
}  // namespace posenc::testing
