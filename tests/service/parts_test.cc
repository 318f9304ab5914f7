// The server's parts, each by itself: pool, statuses, frames, log lines.
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/cord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "rapidjson/document.h"
#include "server/chunk_writer.h"
#include "server/compute_pool.h"
#include "server/content_hashes.h"
#include "server/grpc_status.h"
#include "server/log.h"
#include "server/places.h"
#include "server/request.h"
#include "server/small_answers.h"
#include "server/text.h"
#include "tests/service/test_server.h"
#include "xxhash.h"

namespace posenc::server {
namespace {

using testing::DetailOf;
using ::testing::ElementsAre;
using testing::Gate;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ComputePoolTest, RunsJobsInTheOrderTheyCame) {
  std::vector<int> order;
  {
    ComputePool pool({.threads = 1, .max_queue = 8, .before_job = nullptr});
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(pool.TrySubmit([&order, i] { order.push_back(i); }));
      pool.Continue([&order, i] { order.push_back(10 + i); });
    }
  }
  EXPECT_THAT(order, ElementsAre(0, 10, 1, 11, 2, 12, 3, 13));
}

TEST(ComputePoolTest, RefusesNewJobsWhenTheQueueIsFullButNeverContinuations) {
  Gate gate;
  gate.Close();
  ComputePool pool({.threads = 1, .max_queue = 2, .before_job = gate.Hook()});
  std::atomic<int> ran{0};
  const auto job = [&ran] { ++ran; };
  ASSERT_TRUE(pool.TrySubmit(job));
  gate.WaitForArrivals(1);  // the only thread is busy
  EXPECT_TRUE(pool.TrySubmit(job));
  for (int i = 0; i < 5; ++i) pool.Continue(job);
  EXPECT_TRUE(pool.TrySubmit(job));
  EXPECT_FALSE(pool.TrySubmit(job));
  gate.Open();
  while (ran < 8) std::this_thread::yield();
  EXPECT_TRUE(pool.TrySubmit(job));
}

TEST(GrpcStatusTest, KeepsThePublicCodesAndCallsTheRestInternal) {
  EXPECT_EQ(ToGrpcStatus(absl::OutOfRangeError("x")).error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(ToGrpcStatus(absl::UnknownError("x")).error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(ToGrpcStatus(absl::NotFoundError("x")).error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
}

TEST(GrpcStatusTest, CarriesThePayloadsAsDetails) {
  const grpc::Status status = ToGrpcStatus(FieldError("rope.rotary_dim", "must be even, got 65"));
  EXPECT_EQ(status.error_message(), "rope.rotary_dim: must be even, got 65");
  const auto detail = DetailOf<v1::BadRequest>(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->field_violations(0).field(), "rope.rotary_dim");
}

TEST(GrpcStatusTest, ABusyServerSaysHowLongToWait) {
  const auto detail =
      DetailOf<v1::RetryInfo>(ToGrpcStatus(BusyError("full", absl::Milliseconds(1500))));
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->retry_delay().seconds(), 1);
  EXPECT_EQ(detail->retry_delay().nanos(), 500'000'000);
}

TEST(GrpcStatusTest, FitsIntoAClientsMetadata) {
  absl::Status status = absl::InvalidArgumentError(std::string(100'000, 'x'));
  status.SetPayload("type.googleapis.com/google.rpc.BadRequest",
                    absl::Cord(std::string(100'000, 'x')));
  const grpc::Status wire = ToGrpcStatus(status);
  EXPECT_LE(wire.error_message().size(), kMaxErrorMessageBytes);
  EXPECT_LE(wire.error_details().size(), 2 * kMaxErrorDetailBytes);
}

TEST(GrpcStatusTest, AMessageThatIsNotUtf8IsEscaped) {
  EXPECT_EQ(ToGrpcStatus(absl::InternalError("a\xff")).error_message(), "a\\xff");
}

TEST(GuardedTest, WhatIsThrownBecomesAStatus) {
  EXPECT_TRUE(Guarded([] { return absl::OkStatus(); }).ok());
  const absl::Status memory = Guarded([]() -> absl::Status { throw std::bad_alloc(); });
  EXPECT_EQ(memory.code(), absl::StatusCode::kUnavailable);
  const absl::Status bug = Guarded([]() -> absl::Status { throw std::logic_error("why"); });
  EXPECT_EQ(bug.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(bug.message(), "why");
}

// A header echoes explicit position ids, so it can be larger than a chunk.
TEST(ChunkWriterTest, ALargeHeaderTravelsAlone) {
  v1::TableHeader header;
  header.set_total_bytes(16);
  header.set_numerics_version(std::string(100'000, 'x'));
  ChunkWriter chunks(header, 0);
  EXPECT_TRUE(chunks.header_goes_alone());
  EXPECT_GT(chunks.Frame({}).Length(), 100'000u);
  EXPECT_FALSE(chunks.header_goes_alone());
  EXPECT_FALSE(chunks.done());

  const auto page = std::make_shared<Page>(16, std::make_shared<BlockPool>(1 << 20, 0));
  chunks.Frame({page, page->data()});
  EXPECT_TRUE(chunks.done());
}

TEST(ChunkWriterTest, AFramePinsItsPageAndCopiesNothing) {
  v1::TableHeader header;
  header.set_total_bytes(1 << 20);
  ChunkWriter chunks(header, 0);
  auto page = std::make_shared<Page>(1 << 20, std::make_shared<BlockPool>(1 << 20, 0));
  std::memset(page->mutable_data().data(), 7, page->bytes());
  const std::weak_ptr<Page> alive = page;
  const std::byte* const bytes = page->data().data();
  grpc::ByteBuffer frame = chunks.Frame({page, page->data()});
  page.reset();
  EXPECT_FALSE(alive.expired());
  {
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(frame.Dump(&slices).ok());
    ASSERT_EQ(slices.size(), 2u);
    EXPECT_EQ(static_cast<const void*>(slices[1].begin()), static_cast<const void*>(bytes));
  }
  frame.Clear();
  EXPECT_TRUE(alive.expired());
}

v1::GetTableResponse MessageOf(const grpc::ByteBuffer& frame) {
  grpc::ByteBuffer copy = frame;
  v1::GetTableResponse message;
  EXPECT_TRUE(ParseRequest(&copy, &message).ok());
  return message;
}

std::shared_ptr<Page> PageOf(size_t bytes, int value) {
  auto page = std::make_shared<Page>(bytes, std::make_shared<BlockPool>(bytes, 0));
  std::memset(page->mutable_data().data(), value, bytes);
  return page;
}

TEST(ChunkWriterTest, APageIsHashedWhenItIsFirstSent) {
  v1::TableHeader header;
  header.set_total_bytes(4096);
  const std::shared_ptr<Page> page = PageOf(4096, 7);
  EXPECT_FALSE(page->checksum().has_value());
  const grpc::ByteBuffer frame = ChunkWriter(header, 0).Frame({page, page->data()});
  EXPECT_EQ(MessageOf(frame).checksum(), XXH3_64bits(page->data().data(), 4096));
  EXPECT_EQ(page->checksum(), MessageOf(frame).checksum());

  page->KeepChecksum(17);  // so what is kept is what is sent
  EXPECT_EQ(MessageOf(ChunkWriter(header, 0).Frame({page, page->data()})).checksum(), 17u);
}

TEST(ChunkWriterTest, PartOfAPageHasAChecksumOfItsOwn) {
  v1::TableHeader header;
  header.set_total_bytes(100);
  const std::shared_ptr<Page> page = PageOf(4096, 7);
  const Slice slice{page, page->data().first(100)};
  EXPECT_EQ(MessageOf(ChunkWriter(header, 0).Frame(slice)).checksum(),
            XXH3_64bits(page->data().data(), 100));
  EXPECT_FALSE(page->checksum().has_value());
}

TEST(ChunkWriterTest, ATablesContentIsHashedWhenItIsFirstSent) {
  v1::TableHeader header;
  header.set_total_bytes(4096);
  const std::shared_ptr<Page> page = PageOf(4096, 7);
  const Slice slice{page, page->data()};
  ContentHashes known;
  const std::string hash = MessageOf(ChunkWriter(header, 0, &known).Frame(slice)).content_hash();
  EXPECT_EQ(known.Find(header.SerializeAsString()), hash);
  EXPECT_EQ(MessageOf(ChunkWriter(header, 0, &known).Frame(slice)).content_hash(), hash);

  v1::TableHeader other = header;
  other.set_numerics_version("other");
  known.Keep(other.SerializeAsString(), "kept");  // so what is kept is what is sent
  EXPECT_EQ(MessageOf(ChunkWriter(other, 0, &known).Frame(slice)).content_hash(), "kept");
}

TEST(PlacesTest, AreAsManyAsThereAre) {
  Places places(2);
  EXPECT_TRUE(places.TryEnter());
  EXPECT_TRUE(places.TryEnter());
  EXPECT_FALSE(places.TryEnter());
  places.Leave();
  EXPECT_TRUE(places.TryEnter());
  EXPECT_FALSE(places.TryEnter());
}

grpc::ByteBuffer Bytes(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

TEST(SmallAnswersTest, KnowARequestByItsMethodAndAllItsBytes) {
  SmallAnswers answers(1 << 20);
  const std::string key = SmallAnswers::KeyOf("GetTable", Bytes("request"));
  answers.Keep(key, Bytes("answer"), 6);
  ASSERT_NE(answers.Find(key), nullptr);
  EXPECT_EQ(answers.Find(key)->message.Length(), 6u);
  EXPECT_EQ(answers.Find(key)->table_bytes, 6u);
  EXPECT_EQ(answers.Find(SmallAnswers::KeyOf("DescribeTable", Bytes("request"))), nullptr);
  EXPECT_EQ(answers.Find(SmallAnswers::KeyOf("GetTable", Bytes("request."))), nullptr);
}

TEST(SmallAnswersTest, LeaveOutWhatIsLarge) {
  SmallAnswers answers(1 << 20);
  const std::string large(SmallAnswers::kMaxRequestBytes + 1, 'x');
  EXPECT_EQ(SmallAnswers::KeyOf("GetTable", Bytes(large)), "");
  answers.Keep("", Bytes("answer"), 0);
  EXPECT_EQ(answers.Find(""), nullptr);
  answers.Keep("key", Bytes(std::string(SmallAnswers::kMaxAnswerBytes + 1, 'x')), 0);
  EXPECT_EQ(answers.Find("key"), nullptr);

  SmallAnswers none(0);
  none.Keep("key", Bytes("answer"), 0);
  EXPECT_EQ(none.Find("key"), nullptr);
}

std::string JsonLine(absl::string_view message, std::initializer_list<LogField> fields) {
  return "{" + RenderLine(LogFormat::kJson, message, fields) + "}";
}

TEST(LogTest, AJsonLineIsJsonWhateverACallerSent) {
  for (const std::string& text :
       {std::string("plain"), std::string("a\"b\\c\n\r\t\x01 "), std::string("not utf-8 \xff\xc3"),
        std::string("nul \0 inside", 12), std::string("\u00e9\u4e2d\U0001f600"),
        std::string("\",\"level\":\"forged")}) {
    const std::string line = JsonLine(text, {{"key", text}, {"bytes", 17}});
    EXPECT_THAT(line, Not(HasSubstr("\n")));
    rapidjson::Document parsed;
    parsed.Parse(line.data(), line.size());
    ASSERT_FALSE(parsed.HasParseError()) << line;
    ASSERT_EQ(parsed.MemberCount(), 3u) << line;
    if (IsUtf8(text)) {
      EXPECT_EQ(std::string(parsed["key"].GetString(), parsed["key"].GetStringLength()), text);
    }
    EXPECT_EQ(parsed["bytes"].GetInt(), 17);
  }
}

TEST(LogTest, ATextLineIsOneLine) {
  const std::string line =
      RenderLine(LogFormat::kText, "served\nforged", {{"peer", "ipv4:1"}, {"id", "a b=\"c\n"}});
  EXPECT_EQ(line, "\"served\\nforged\" peer=ipv4:1 id=\"a b=\\\"c\\n\"");
}

TEST(TextTest, KnowsUtf8) {
  for (const char* valid : {"", "abc", "\u00e9", "\u4e2d", "\U0001f600"}) {
    EXPECT_TRUE(IsUtf8(valid)) << valid;
  }
  // A lone continuation, a cut sequence, an overlong slash, a surrogate.
  for (const char* invalid : {"\x80", "\xe4\xb8", "\xc0\xaf", "\xed\xa0\x80", "a\xff"}) {
    EXPECT_FALSE(IsUtf8(invalid)) << invalid;
  }
}

}  // namespace
}  // namespace posenc::server
