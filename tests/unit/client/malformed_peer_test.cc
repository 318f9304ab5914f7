// A peer that does not keep to the protocol gets a clear Status: never a crash,
// never a byte outside the caller's memory, never a table that is not what it says.

#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "posenc/client.h"
#include "tests/support/fake_peer.h"

namespace posenc::testing {
namespace {

using ::testing::HasSubstr;

constexpr size_t kChunk = 16;  // the table has 200 bytes: 13 messages

// How the first attempt goes wrong, and what the client says about it.
struct Malformed {
  std::string name;
  std::function<void(Attempt*)> bend;
  absl::StatusCode code;
  std::string message;
};

void PrintTo(const Malformed& malformed, std::ostream* out) { *out << malformed.name; }

class MalformedPeerTest : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedPeerTest, IsRefused) {
  const FakeTable table = MakeFakeTable(25);
  FakeTime time;
  const auto connection =
      std::make_shared<FakeConnection>([&](const v1::GetTableRequest& request, size_t) {
        Attempt attempt = Serve(table, request, kChunk);
        GetParam().bend(&attempt);
        return attempt;
      });
  absl::StatusOr<TableReader> reader =
      Client(connection, OptionsWith(&time)).GetTable(v1::GetTableRequest());
  absl::Status status = reader.status();
  if (status.ok()) {
    std::string bytes(reader->header().total_bytes(), '\0');
    const auto out = std::as_writable_bytes(std::span<char>(bytes));
    status = reader->ReadAll(out);
    EXPECT_EQ(reader->content_hash(), "");
    EXPECT_EQ(reader->Read(out).status(), status) << "a spent reader repeats its error";
  }
  EXPECT_EQ(status.code(), GetParam().code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
  EXPECT_EQ(connection->requests().size(), 1U) << "not worth a retry";
}

constexpr auto kInternal = absl::StatusCode::kInternal;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

v1::TableHeader* Header(Attempt* attempt) { return attempt->messages[0].mutable_header(); }

INSTANTIATE_TEST_SUITE_P(
    Streams, MalformedPeerTest,
    ::testing::Values(
        Malformed{"NothingAtAll", [](Attempt* a) { a->messages.clear(); }, kInternal,
                  "it ended without a message"},
        Malformed{"NoHeader", [](Attempt* a) { a->messages[0].clear_header(); }, kInternal,
                  "its first message has no header"},
        Malformed{"ASecondHeader",
                  [](Attempt* a) { *a->messages[1].mutable_header() = a->messages[0].header(); },
                  kInternal, "a second header"},
        Malformed{"AnOffsetTooLow", [](Attempt* a) { a->messages[2].set_offset(31); }, kInternal,
                  "a message at offset 31 follows byte 32"},
        Malformed{"AnOffsetTooHigh", [](Attempt* a) { a->messages[2].set_offset(~uint64_t{0}); },
                  kInternal, "a message at offset 18446744073709551615 follows byte 32"},
        Malformed{"AMessageLeftOut", [](Attempt* a) { a->messages.erase(a->messages.begin() + 3); },
                  kInternal, "a message at offset 64 follows byte 48"},
        Malformed{"AMessageTwice",
                  [](Attempt* a) { a->messages.insert(a->messages.begin() + 3, a->messages[2]); },
                  kInternal, "a message at offset 32 follows byte 48"},
        Malformed{"ALastMessageTooLong",
                  [](Attempt* a) {
                    a->messages[12].mutable_data()->append("x");
                    Seal(&a->messages[12]);
                  },
                  kInternal, "9 bytes at offset 192 of a table of 200"},
        Malformed{"AMessageAfterTheEnd",
                  [](Attempt* a) {
                    v1::GetTableResponse extra;
                    extra.set_offset(200);
                    extra.set_data("x");
                    Seal(&extra);
                    a->messages.push_back(extra);
                  },
                  kInternal, "1 bytes at offset 200 of a table of 200"},
        Malformed{"AFirstMessageLargerThanTheTable",
                  [](Attempt* a) {
                    a->messages[0].set_data(std::string(1 << 20, 'x'));
                    Seal(&a->messages[0]);
                  },
                  kInternal, "1048576 bytes at offset 0 of a table of 200"},
        Malformed{"MessagesThatSayNothing",
                  [](Attempt* a) {
                    v1::GetTableResponse empty;
                    empty.set_offset(16);
                    Seal(&empty);
                    a->messages.insert(a->messages.begin() + 1, empty);
                  },
                  kInternal, "an empty message at offset 16"},
        Malformed{"AnEndTooSoon", [](Attempt* a) { a->messages.resize(5); }, kDataLoss,
                  "the stream ended at byte 80 of 200"},
        Malformed{"AFlippedBit", [](Attempt* a) { (*a->messages[4].mutable_data())[7] ^= 1; },
                  kDataLoss, "checksum of the 16 bytes at offset 64"},
        Malformed{"NoChecksum", [](Attempt* a) { a->messages[4].clear_checksum(); }, kDataLoss,
                  "the server said 0000000000000000"},
        Malformed{"AFlippedBitUnderAChecksumOfItsOwn",
                  [](Attempt* a) {
                    (*a->messages[4].mutable_data())[7] ^= 1;
                    Seal(&a->messages[4]);
                  },
                  kDataLoss, "content_hash of what arrived is"},
        Malformed{"AnotherContentHash",
                  [](Attempt* a) { a->messages[12].set_content_hash(std::string(32, '0')); },
                  kDataLoss, "the server said 00000000000000000000000000000000"},
        Malformed{"NoContentHash", [](Attempt* a) { a->messages[12].clear_content_hash(); },
                  kDataLoss, "the stream ended without the content hash"},
        Malformed{"AContentHashTooSoon",
                  [](Attempt* a) { a->messages[3].set_content_hash(std::string(32, '0')); },
                  kInternal, "a content hash at offset 64 of 200"}),
    [](const auto& param_info) { return param_info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Headers, MalformedPeerTest,
    ::testing::Values(
        Malformed{"NoTableId", [](Attempt* a) { Header(a)->clear_table_id(); }, kInternal,
                  "table_id \"\" is not 32"},
        Malformed{"ATableIdInCapitals",
                  [](Attempt* a) { Header(a)->set_table_id(std::string(32, 'A')); }, kInternal,
                  "is not 32 lower-case hex digits"},
        Malformed{"ATotalThatIsNotTheSum", [](Attempt* a) { Header(a)->set_total_bytes(204); },
                  kInternal, "the tensors have 200 bytes, total_bytes is 204"},
        Malformed{"AHoleBetweenTensors",
                  [](Attempt* a) { Header(a)->mutable_tensors(1)->set_offset(104); }, kInternal,
                  "tensor \"sin\" contradict each other"},
        Malformed{"ADTypeThatIsUnknown",
                  [](Attempt* a) { Header(a)->mutable_tensors(0)->set_dtype(v1::DType(99)); },
                  kInternal, "tensor \"cos\" contradict each other"},
        Malformed{"ABytesThatAreNotTheShapes",
                  [](Attempt* a) { Header(a)->mutable_tensors(0)->set_shape(0, 26); }, kInternal,
                  "tensor \"cos\" contradict each other"},
        Malformed{"ANegativeShape",
                  [](Attempt* a) { Header(a)->mutable_tensors(0)->set_shape(0, -25); }, kInternal,
                  "tensor \"cos\" contradict each other"},
        Malformed{"AShapeThatOverflows",
                  [](Attempt* a) {
                    v1::TensorInfo* tensor = Header(a)->mutable_tensors(0);
                    tensor->set_shape(0, int64_t{1} << 62);
                    tensor->add_shape(4);
                    tensor->set_bytes(0);  // 2^66, in 64 bits
                  },
                  kInternal, "tensor \"cos\" contradict each other"}),
    [](const auto& param_info) { return param_info.param.name; });

// The offset was the caller's own; a server that goes along with it is at fault.
TEST(MalformedPeer, AReadOffsetPastTheEndIsRefusedEvenIfTheServerAnswers) {
  FakeTime time;
  const auto connection =
      std::make_shared<FakeConnection>([&](const v1::GetTableRequest& request, size_t) {
        v1::GetTableResponse message;
        *message.mutable_header() = MakeFakeTable(25).header;
        message.set_offset(request.read_offset());
        Seal(&message);
        return Attempt{{message}, absl::OkStatus()};
      });
  v1::GetTableRequest request;
  request.set_read_offset(201);
  const auto reader = Client(connection, OptionsWith(&time)).GetTable(request);
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace posenc::testing
