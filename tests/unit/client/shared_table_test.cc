// TableReader over shared memory, and when it takes the stream instead.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "posenc/client.h"
#include "tests/support/fake_peer.h"

namespace posenc::testing {
namespace {

using ::testing::HasSubstr;

// Shares what the test says, and streams the fake table.
class SharingConnection final : public FakeConnection {
 public:
  using FakeConnection::FakeConnection;

  absl::StatusOr<SharedTable> ShareTable(const v1::GetTableRequest&,
                                         const CallContext& context) override {
    progress_timeout = context.progress_timeout;
    return shared;
  }

  absl::StatusOr<SharedTable> shared = absl::UnimplementedError("");
  absl::Duration progress_timeout;
};

class SharedTableTest : public ::testing::Test {
 protected:
  SharedTableTest() {
    auto memory = std::make_shared<const std::string>(table_.bytes);
    connection_->shared =
        SharedTable{table_.header, "hash", std::as_bytes(std::span<const char>(*memory)), memory};
  }

  absl::StatusOr<TableReader> Open() {
    return Client(connection_, OptionsWith(&time_)).GetTable(request_);
  }

  // Of a table that must come as a stream, and come whole.
  absl::Status WhyStreamed() {
    absl::StatusOr<TableReader> reader = Open();
    EXPECT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(reader->transport(), Transport::kStream);
    EXPECT_EQ(ReadRest(&*reader), table_.bytes.substr(request_.read_offset()));
    return reader->why_streamed();
  }

  static std::string ReadRest(TableReader* reader) {
    std::string bytes(reader->header().total_bytes() - reader->offset(), '\0');
    EXPECT_TRUE(reader->ReadAll(std::as_writable_bytes(std::span<char>(bytes))).ok());
    return bytes;
  }

  static std::string TextOf(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  FakeTime time_;
  const FakeTable table_ = MakeFakeTable(25);  // cos and sin, 100 bytes each
  v1::GetTableRequest request_;
  std::shared_ptr<SharingConnection> connection_ = std::make_shared<SharingConnection>(
      [this](const v1::GetTableRequest& request, size_t) { return Serve(table_, request, 16); });
};

TEST_F(SharedTableTest, ReadsCopyFromItAndNothingIsStreamed) {
  absl::StatusOr<TableReader> reader = Open();
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->transport(), Transport::kSharedMemory);
  EXPECT_TRUE(reader->why_streamed().ok());
  EXPECT_EQ(reader->header().table_id(), table_.header.table_id());
  EXPECT_EQ(reader->content_hash(), "hash");
  EXPECT_EQ(ReadRest(&*reader), table_.bytes);
  std::byte more;
  EXPECT_EQ(*reader->Read({&more, 1}), 0u);
  EXPECT_TRUE(connection_->requests().empty());
}

TEST_F(SharedTableTest, ReadsInPiecesOfAnySize) {
  for (const size_t piece : {1u, 7u, 199u, 200u, 1000u}) {
    absl::StatusOr<TableReader> reader = Open();
    std::string all;
    std::string bytes(piece, '\0');
    while (const size_t count = *reader->Read(std::as_writable_bytes(std::span<char>(bytes)))) {
      all += bytes.substr(0, count);
      EXPECT_EQ(reader->offset(), all.size());
    }
    EXPECT_EQ(all, table_.bytes);
  }
}

TEST_F(SharedTableTest, BeginsAtTheOffsetThatWasAskedFor) {
  request_.set_read_offset(150);
  absl::StatusOr<TableReader> reader = Open();
  EXPECT_EQ(reader->offset(), 150u);
  EXPECT_EQ(ReadRest(&*reader), table_.bytes.substr(150));
}

TEST_F(SharedTableTest, TensorsAreReadInAnyOrder) {
  absl::StatusOr<TableReader> reader = Open();
  std::string bytes(100, '\0');
  for (const std::string name : {"sin", "cos", "cos", "sin"}) {
    ASSERT_TRUE(reader->ReadTensor(name, std::as_writable_bytes(std::span<char>(bytes))).ok());
    EXPECT_EQ(bytes, table_.bytes.substr(name == "sin" ? 100 : 0, 100));
  }
  EXPECT_TRUE(connection_->requests().empty());
}

TEST_F(SharedTableTest, AViewIsTheMemoryItselfAndOutlivesTheReader) {
  const std::byte* const memory = connection_->shared->bytes.data();
  TensorView view;
  {
    absl::StatusOr<TableReader> reader = Open();
    view = *reader->ViewTensor("sin");
    EXPECT_EQ(reader->ViewTensor("tan").status().code(), absl::StatusCode::kNotFound);
  }
  connection_->shared = absl::UnimplementedError("");
  EXPECT_EQ(view.bytes.data(), memory + 100);
  EXPECT_EQ(TextOf(view.bytes), table_.bytes.substr(100));  // ASan sees it freed otherwise
}

TEST_F(SharedTableTest, AStreamedTableHasNoView) {
  connection_->shared = absl::UnavailableError("no socket");
  const absl::Status status = Open()->ViewTensor("cos").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no socket"));
}

TEST_F(SharedTableTest, WhateverGoesWrongTheTableIsStreamedAndTheReaderKnowsWhy) {
  for (const absl::Status& status :
       {absl::UnavailableError("no socket"), absl::UnimplementedError("off"),
        absl::PermissionDeniedError("another user"), absl::DataLossError("unsealed"),
        absl::InternalError("two descriptors"), absl::DeadlineExceededError("slow"),
        absl::ResourceExhaustedError("share_memory_bytes"), absl::CancelledError("gone")}) {
    connection_->shared = status;
    EXPECT_EQ(WhyStreamed(), status);
  }
}

TEST_F(SharedTableTest, AVerdictOnTheRequestIsTheAnswer) {
  for (const absl::Status& status :
       {absl::InvalidArgumentError("rope.head_dim: must be even, got 9"),
        absl::OutOfRangeError("read_offset"), absl::FailedPreconditionError("if_table_id")}) {
    connection_->shared = status;
    EXPECT_EQ(Open().status(), status);
    EXPECT_TRUE(connection_->requests().empty());
  }
}

TEST_F(SharedTableTest, AHeaderThatLiesIsNotBelieved) {
  const SharedTable honest = *connection_->shared;
  const auto streamed_with = [&](const std::function<void(SharedTable*)>& bend) {
    SharedTable bent = honest;
    bend(&bent);
    connection_->shared = bent;
    return WhyStreamed().code();
  };
  constexpr auto kInternal = absl::StatusCode::kInternal;
  EXPECT_EQ(streamed_with([](SharedTable* t) { t->header.set_total_bytes(199); }), kInternal);
  EXPECT_EQ(streamed_with([](SharedTable* t) { t->header.set_table_id("x"); }), kInternal);
  EXPECT_EQ(streamed_with([](SharedTable* t) { t->bytes = t->bytes.first(199); }), kInternal);
  EXPECT_EQ(streamed_with([](SharedTable* t) {
              t->header.mutable_tensors(1)->set_offset(uint64_t{1} << 40);
            }),
            kInternal);
}

TEST_F(SharedTableTest, AnotherTableThanTheOneAskedForIsNotTaken) {
  request_.set_if_table_id(table_.header.table_id());
  connection_->shared->header.set_table_id(std::string(32, 'f'));
  EXPECT_EQ(WhyStreamed().code(), absl::StatusCode::kInternal);
}

TEST_F(SharedTableTest, AnOffsetPastTheEndIsLeftToTheStream) {
  request_.set_read_offset(201);
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(SharedTableTest, TheAttemptHasTheProgressTimeout) {
  ClientOptions options = OptionsWith(&time_);
  options.progress_timeout = absl::Seconds(7);
  ASSERT_TRUE(Client(connection_, options).GetTable(request_).ok());
  EXPECT_EQ(connection_->progress_timeout, absl::Seconds(7));
}

}  // namespace
}  // namespace posenc::testing
