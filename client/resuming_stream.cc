#include "client/resuming_stream.h"

#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/chunk_check.h"

namespace posenc {

ResumingStream::ResumingStream(std::shared_ptr<Connection> connection,
                               const v1::GetTableRequest& request, const ClientOptions& options)
    : connection_(std::move(connection)),
      options_(options),
      request_(request),
      offset_(request.read_offset()),
      hashes_all_(request.read_offset() == 0),
      backoff_(options.retry, options.clock) {}

absl::Status ResumingStream::Open() {
  while (!opened_ && !ended_) {
    absl::StatusOr<std::span<const std::byte>> bytes = Step();
    if (!bytes.ok()) return bytes.status();
    first_bytes_ = *bytes;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::span<const std::byte>> ResumingStream::Next() {
  if (!first_bytes_.empty()) return std::exchange(first_bytes_, {});
  while (!ended_) {
    absl::StatusOr<std::span<const std::byte>> bytes = Step();
    if (!bytes.ok() || !bytes->empty()) return bytes;
  }
  return std::span<const std::byte>();
}

// One message, one end, or one recovery. The bytes may be empty.
absl::StatusOr<std::span<const std::byte>> ResumingStream::Step() {
  if (!error_.ok()) return error_;
  if (stream_ == nullptr) OpenAttempt();
  absl::StatusOr<std::optional<TableChunk>> message = stream_->Read();
  if (message.ok() && message->has_value()) {
    error_ = Accept(**message);
  } else if (opened_ && offset_ == header_.total_bytes() && !hash_due_) {
    Close();  // all bytes are here and verified: how the stream ends does not matter
  } else {
    error_ = message.ok() ? EndedTooSoon() : Recover(message.status());
  }
  if (!error_.ok()) {
    stream_.reset();
    return error_;
  }
  const bool has_bytes = message.ok() && message->has_value();
  return has_bytes ? (*message)->data : std::span<const std::byte>();
}

void ResumingStream::OpenAttempt() {
  request_.set_read_offset(offset_);
  if (opened_) request_.set_if_table_id(header_.table_id());
  stream_ =
      connection_->GetTable(request_, CallContext{.progress_timeout = options_.progress_timeout});
  first_message_ = true;
}

absl::Status ResumingStream::AcceptHeader(const TableChunk& chunk) {
  if (first_message_ != (chunk.header != nullptr)) {
    return absl::InternalError(first_message_ ? "malformed stream: its first message has no header"
                                              : "malformed stream: a second header");
  }
  if (!first_message_) return absl::OkStatus();
  first_message_ = false;
  hash_due_ = offset_ == 0 && chunk.checksum.has_value();
  if (opened_) return CheckSameTable(header_, *chunk.header);
  if (absl::Status status = CheckHeader(*chunk.header); !status.ok()) return status;
  header_ = *chunk.header;
  opened_ = true;
  if (offset_ <= header_.total_bytes()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("malformed stream: read_offset ", offset_,
                                          " of a table of ", header_.total_bytes(), " bytes"));
}

absl::Status ResumingStream::Accept(const TableChunk& chunk) {
  const bool first = first_message_;
  if (absl::Status status = AcceptHeader(chunk); !status.ok()) return status;
  if (absl::Status status = CheckChunk(chunk, offset_, header_.total_bytes()); !status.ok()) {
    return status;
  }
  offset_ += chunk.data.size();
  // Without this a peer could keep a reader for ever with messages that say nothing.
  if (chunk.data.empty() && !first && chunk.content_hash.empty()) {
    return absl::InternalError(
        absl::StrCat("malformed stream: an empty message at offset ", offset_));
  }
  if (!chunk.data.empty()) backoff_.Reset();
  if (hashes_all_) hash_.Update(chunk.data);
  return chunk.content_hash.empty() ? absl::OkStatus() : AcceptContentHash(chunk.content_hash);
}

absl::Status ResumingStream::AcceptContentHash(absl::string_view from_server) {
  if (offset_ != header_.total_bytes() || !hash_due_) {
    return absl::InternalError(absl::StrCat("malformed stream: a content hash at offset ", offset_,
                                            " of ", header_.total_bytes(),
                                            hash_due_ ? "" : ", where none is due"));
  }
  hash_due_ = false;
  const std::string ours = hash_.Hex();
  if (ours != from_server) {
    return absl::DataLossError(absl::StrCat("content_hash of what arrived is ", ours,
                                            ", the server said ", absl::CHexEscape(from_server)));
  }
  return absl::OkStatus();
}

void ResumingStream::Close() {
  stream_.reset();
  ended_ = true;
  if (hashes_all_) content_hash_ = hash_.Hex();
}

// What is wrong with a stream that says it is over when it cannot be.
absl::Status ResumingStream::EndedTooSoon() const {
  if (first_message_) return absl::InternalError("malformed stream: it ended without a message");
  if (offset_ == header_.total_bytes()) {
    return absl::DataLossError("the stream ended without the content hash");
  }
  return absl::DataLossError(
      absl::StrCat("the stream ended at byte ", offset_, " of ", header_.total_bytes()));
}

// After a cut: OK to go on with a new attempt, else what to report.
absl::Status ResumingStream::Recover(const absl::Status& status) {
  stream_.reset();
  const absl::Time latest = options_.clock.now() + options_.progress_timeout;
  const absl::Status wait = backoff_.WaitAfter(status, latest);
  if (wait.ok() || !opened_) return wait;
  return Annotate(wait, absl::StrCat("table ", header_.table_id(), ", at byte ", offset_, " of ",
                                     header_.total_bytes()));
}

void ResumingStream::Seek(uint64_t offset) {
  stream_.reset();
  first_bytes_ = {};
  offset_ = offset;
  hash_ = ContentHash();
  hashes_all_ = offset == 0;
  content_hash_.clear();
  ended_ = false;
}

}  // namespace posenc
