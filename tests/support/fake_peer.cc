#include "tests/support/fake_peer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_format.h"
#include "posenc/v1/error_details.pb.h"
#include "xxhash.h"

namespace posenc::testing {
namespace {

using ::testing::_;
using ::testing::AnyNumber;

class FakeStream final : public TableStream {
 public:
  explicit FakeStream(Attempt attempt) : attempt_(std::move(attempt)) {}

  absl::StatusOr<std::optional<TableChunk>> Read() override {
    if (next_ == attempt_.messages.size()) {
      if (!attempt_.end.ok()) return attempt_.end;
      return std::nullopt;
    }
    // A copy on the heap: a reader that holds on to an older view is seen by ASan.
    message_ = std::make_unique<v1::GetTableResponse>(attempt_.messages[next_++]);
    TableChunk chunk;
    if (message_->has_header()) chunk.header = &message_->header();
    chunk.offset = message_->offset();
    chunk.checksum = message_->checksum();
    chunk.content_hash = message_->content_hash();
    chunk.data = std::as_bytes(std::span<const char>(message_->data()));
    return chunk;
  }

 private:
  const Attempt attempt_;
  size_t next_ = 0;
  std::unique_ptr<v1::GetTableResponse> message_;
};

void AddTensor(const std::string& name, int64_t elements, v1::TableHeader* header) {
  v1::TensorInfo* tensor = header->add_tensors();
  tensor->set_name(name);
  tensor->set_dtype(v1::DTYPE_F32);
  tensor->add_shape(elements);
  tensor->set_offset(header->total_bytes());
  tensor->set_bytes(static_cast<uint64_t>(elements) * 4);
  header->set_total_bytes(header->total_bytes() + tensor->bytes());
}

std::string Hash128(const std::string& bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

}  // namespace

FakeTable MakeFakeTable(int64_t elements) {
  FakeTable table;
  table.header.set_table_id("0123456789abcdef0123456789abcdef");
  AddTensor("cos", elements, &table.header);
  AddTensor("sin", elements, &table.header);
  uint32_t state = 1;
  for (uint64_t i = 0; i < table.header.total_bytes(); ++i) {
    state = state * 1664525 + 1013904223;
    table.bytes += static_cast<char>(state >> 24);
  }
  return table;
}

void Seal(v1::GetTableResponse* message) {
  message->set_checksum(XXH3_64bits(message->data().data(), message->data().size()));
}

Attempt Serve(const FakeTable& table, const v1::GetTableRequest& request, size_t chunk_bytes) {
  if (!request.if_table_id().empty() && request.if_table_id() != table.header.table_id()) {
    return {{}, absl::FailedPreconditionError("if_table_id: another table")};
  }
  if (request.read_offset() > table.bytes.size()) {
    return {{}, absl::OutOfRangeError("read_offset: past the end")};
  }
  Attempt attempt;
  size_t offset = request.read_offset();
  do {
    v1::GetTableResponse message;
    if (attempt.messages.empty()) *message.mutable_header() = table.header;
    message.set_offset(offset);
    message.set_data(table.bytes.substr(offset, chunk_bytes));
    Seal(&message);
    offset += message.data().size();
    attempt.messages.push_back(std::move(message));
  } while (offset < table.bytes.size());
  if (request.read_offset() == 0) attempt.messages.back().set_content_hash(Hash128(table.bytes));
  return attempt;
}

Attempt Attempt::CutAfter(size_t count, absl::Status status) && {
  messages.resize(std::min(count, messages.size()));
  end = std::move(status);
  return std::move(*this);
}

absl::Status Gone() { return absl::UnavailableError("the connection was lost"); }

absl::Status GoneFor(absl::Duration delay) {
  v1::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(delay));
  info.mutable_retry_delay()->set_nanos(
      static_cast<int>(absl::ToInt64Nanoseconds(delay % absl::Seconds(1))));
  absl::Status status = Gone();
  status.SetPayload("type.googleapis.com/google.rpc.RetryInfo",
                    absl::Cord(info.SerializeAsString()));
  return status;
}

FakeConnection::FakeConnection(Script script) : script_(std::move(script)) {
  EXPECT_CALL(*this, GetTable(_, _))
      .Times(AnyNumber())
      .WillRepeatedly([this](const v1::GetTableRequest& request, const CallContext&) {
        requests_.push_back(request);
        return std::make_unique<FakeStream>(script_(request, requests_.size() - 1));
      });
}

ClientOptions OptionsWith(FakeTime* time) {
  ClientOptions options;
  options.clock.now = [time] { return time->now; };
  options.clock.sleep = [time](absl::Duration delay) {
    time->sleeps.push_back(delay);
    time->now += delay;
  };
  options.clock.random = [time] { return time->random; };
  return options;
}

}  // namespace posenc::testing
