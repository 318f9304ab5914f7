#include "client/resuming_stream.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/chunk_check.h"

namespace posenc {
namespace {

// More than the caches of a core hold.
constexpr size_t kPastCachesBytes = size_t{4} << 20;

}  // namespace

ResumingStream::ResumingStream(std::shared_ptr<Connection> connection,
                               const v1::GetTableRequest& request, const ClientOptions& options)
    : connection_(std::move(connection)),
      options_(options),
      request_(request),
      offset_(request.read_offset()),
      hashes_all_(request.read_offset() == 0),
      backoff_(options.retry, options.clock) {}

absl::Status ResumingStream::Open() {
  while (!opened_ && error_.ok()) Step();
  return error_;
}

absl::StatusOr<size_t> ResumingStream::Read(std::span<std::byte> out) {
  const bool past_caches = out.size() >= kPastCachesBytes;
  while (error_.ok()) {
    if (!unread_.empty()) return TakeUnread(out);
    if (chunk_.has_value()) {
      const size_t bytes = DataBytes(*chunk_);
      const bool fits = bytes <= out.size();
      Note(Verify({.to = fits ? out.data() : nullptr, .past_caches = past_caches}));
      if (error_.ok() && fits && bytes > 0) return bytes;
    } else if (ended_) {
      return 0;
    } else if (past_caches && ReadRest(out)) {
      return out.size();
    } else {
      Step();
    }
  }
  return error_;
}

// One message, one end, or one recovery.
void ResumingStream::Step() {
  if (stream_ == nullptr) OpenAttempt();
  absl::StatusOr<std::optional<TableChunk>> message = stream_->Read();
  if (message.ok() && message->has_value()) {
    Note(Accept(**message));
  } else if (opened_ && offset_ == header_.total_bytes() && !hash_due_) {
    Close();  // all bytes are here and verified: how the stream ends does not matter
  } else {
    Note(message.ok() ? EndedTooSoon() : Recover(message.status()));
  }
}

// An error is for ever, and the stream is of no more use.
void ResumingStream::Note(absl::Status status) {
  if (status.ok()) return;
  error_ = std::move(status);
  stream_.reset();
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

// All that can be said of a message before its bytes are looked at.
absl::Status ResumingStream::Accept(const TableChunk& chunk) {
  const bool first = first_message_;
  if (absl::Status status = AcceptHeader(chunk); !status.ok()) return status;
  if (absl::Status status = CheckChunk(chunk, offset_, header_.total_bytes()); !status.ok()) {
    return status;
  }
  const uint64_t end = offset_ + DataBytes(chunk);
  // Without this a peer could keep a reader for ever with messages that say nothing.
  if (end == offset_ && !first && chunk.content_hash.empty()) {
    return absl::InternalError(
        absl::StrCat("malformed stream: an empty message at offset ", offset_));
  }
  const bool hash_is_due = end == header_.total_bytes() && hash_due_;
  if (!chunk.content_hash.empty() && !hash_is_due) {
    return absl::InternalError(absl::StrCat("malformed stream: a content hash at offset ", end,
                                            " of ", header_.total_bytes(),
                                            hash_due_ ? "" : ", where none is due"));
  }
  chunk_ = chunk;
  return absl::OkStatus();
}

// Hashes the data of chunk_ and copies it to `target`; if that is nowhere, leaves
// it unread.
absl::Status ResumingStream::Verify(CopyTarget target) {
  const TableChunk chunk = *std::exchange(chunk_, std::nullopt);
  const uint64_t checksum = HashAndCopy(chunk, hashes_all_ ? &hash_ : nullptr, target);
  if (absl::Status status = CheckChecksum(chunk, checksum); !status.ok()) return status;
  const size_t bytes = DataBytes(chunk);
  offset_ += bytes;
  if (bytes > 0) backoff_.Reset();
  if (target.to == nullptr) {
    KeepUnread(chunk.data);
    for (const std::span<const std::byte> piece : chunk.more_data) KeepUnread(piece);
  }
  return chunk.content_hash.empty() ? absl::OkStatus() : CheckContentHash(chunk.content_hash);
}

// Whether the stream wrote all that is left, and that is `out`. Such bytes never were
// a message, so there is nothing to check; what they are is hashed like others.
bool ResumingStream::ReadRest(std::span<std::byte> out) {
  if (stream_ == nullptr || first_message_ || out.size() != header_.total_bytes() - offset_ ||
      !stream_->ReadRest(out)) {
    return false;
  }
  if (hashes_all_) hash_.Update(out);
  offset_ += out.size();
  return true;
}

void ResumingStream::KeepUnread(std::span<const std::byte> piece) {
  if (!piece.empty()) unread_.push(piece);
}

size_t ResumingStream::TakeUnread(std::span<std::byte> out) {
  size_t taken = 0;
  while (taken < out.size() && !unread_.empty()) {
    std::span<const std::byte>& piece = unread_.front();
    const size_t count = std::min(piece.size(), out.size() - taken);
    std::copy_n(piece.data(), count, out.data() + taken);
    taken += count;
    piece = piece.subspan(count);
    if (piece.empty()) unread_.pop();
  }
  return taken;
}

absl::Status ResumingStream::CheckContentHash(absl::string_view from_server) {
  hash_due_ = false;
  const std::string ours = hash_.Hex128();
  if (ours == from_server) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("content_hash of what arrived is ", ours,
                                          ", the server said ", absl::CHexEscape(from_server)));
}

void ResumingStream::Close() {
  stream_.reset();
  ended_ = true;
  if (hashes_all_) content_hash_ = hash_.Hex128();
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
  chunk_.reset();
  unread_ = {};
  stream_.reset();
  offset_ = offset;
  hash_ = Xxh3();
  hashes_all_ = offset == 0;
  content_hash_.clear();
  ended_ = false;
}

}  // namespace posenc
