#include "server/table_sender.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"
#include "lib/engine/engine.h"
#include "posenc/v1/table.pb.h"
#include "server/request.h"

namespace posenc::server {

TableSender::TableSender(const ServiceParts& parts, std::unique_ptr<IncomingCall> call,
                         absl::string_view method)
    : WatchedReactor(std::move(call), parts.stalls), parts_(parts), call_(context(), method) {}

absl::Status TableSender::Enter(CallKind kind) {
  RETURN_IF_ERROR(parts_.admission->Enter(kind));
  entered_ = kind;
  return absl::OkStatus();
}

void TableSender::BeginOnPool(Step step) {
  if (!parts_.pool->TrySubmit([this, step = std::move(step)] { Run(step); })) {
    End(QueueFullError(parts_));
  }
}

void TableSender::ContinueOnPool(Step step) {
  parts_.pool->Continue([this, step = std::move(step)] { Run(step); });
}

void TableSender::Run(const Step& step) {
  const absl::Status status = Guarded(step);
  if (!status.ok()) End(status);  // else the turn is gRPC's, and `this` maybe gone
}

absl::Status TableSender::Answer(v1::GetTableRequest request, const std::string& key) {
  ASSIGN_OR_RETURN(table_, parts_.engine->GetTable(std::move(request)));
  chunks_.emplace(table_->header(), table_->offset(), parts_.content_hashes);
  ASSIGN_OR_RETURN(next_, Prepare());
  if (next_->is_last) parts_.small_answers->Keep(key, next_->frame, next_->bytes);
  WriteNext();
  return absl::OkStatus();
}

void TableSender::AnswerAgain(const SmallAnswer& known) {
  next_ = Chunk{known.message, known.table_bytes, /*is_last=*/true};
  WriteNext();
}

absl::StatusOr<TableSender::Chunk> TableSender::Prepare() {
  RETURN_IF_ERROR(call_.Stopped());
  Slice slice;
  if (!chunks_->header_goes_alone() && !chunks_->done()) slice = NextSlice();
  return Frame(slice);
}

TableSender::Chunk TableSender::Frame(const Slice& slice) {
  at_hand_ = chunks_->knows(slice);
  grpc::ByteBuffer frame = chunks_->Frame(slice);
  return Chunk{std::move(frame), slice.bytes.size(), chunks_->done()};
}

// Frames the next page if that needs no computing: it is cached and was sent before.
// REQUIRES: as WriteNext.
bool TableSender::PrepareAtHand() {
  if (!at_hand_ || !rest_.bytes.empty()) return false;
  std::optional<Slice> cached = table_->NextIfCached();
  if (!cached.has_value()) return false;
  rest_ = *std::move(cached);
  if (rest_.bytes.size() > parts_.limits.chunk_bytes() || !chunks_->knows(rest_)) return false;
  next_ = Frame(std::exchange(rest_, {}));
  return true;
}

// REQUIRES: preparing_, so that this object stays.
void TableSender::PrepareOnPool() {
  parts_.pool->Continue([this] {
    absl::StatusOr<Chunk> chunk;
    const absl::Status status = Guarded([&] {
      chunk = Prepare();
      return chunk.status();
    });
    Deliver(status.ok() ? std::move(chunk) : status);
  });
}

// The end of a job.
void TableSender::Deliver(absl::StatusOr<Chunk> chunk) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    preparing_ = false;
    failure_.Update(chunk.status());
    if (chunk.ok()) next_ = *std::move(chunk);
    if (writing_) return;  // OnWriteDone goes on
  }
  WriteNext();
}

// Writes next_, or ends the call. What follows is prepared meanwhile, unless it is
// likely to be at hand, if the server has a place for a chunk ahead of its turn; else
// when the write is done.
// REQUIRES: neither a write nor a job is under way.
void TableSender::WriteNext() {
  if (!failure_.ok()) return End(failure_);
  if (std::exchange(is_ahead_, false)) parts_.places_ahead->Leave();
  const bool is_last = next_->is_last;
  bytes_sent_ += next_->bytes;
  written_ = std::move(next_->frame);
  next_.reset();
  if (is_last) {
    return StartWriteAndFinish(written_, call_.End(absl::OkStatus()));
  }
  const bool goes_ahead = !at_hand_ && parts_.places_ahead->TryEnter();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    writing_ = true;
    preparing_ = is_ahead_ = goes_ahead;
  }
  StartWrite(written_);  // from here on `this` may be gone, unless it is preparing
  if (goes_ahead) PrepareOnPool();
}

// A page holds at least one unit, which a caller can make larger than a chunk.
Slice TableSender::NextSlice() {
  if (rest_.bytes.empty()) rest_ = table_->Next();
  const size_t size = std::min<size_t>(rest_.bytes.size(), parts_.limits.chunk_bytes());
  Slice slice{rest_.page, rest_.bytes.first(size)};
  rest_.bytes = rest_.bytes.subspan(size);
  if (rest_.bytes.empty()) rest_.page.reset();
  return slice;
}

void TableSender::OnWriteDone(bool ok) {
  StopWaiting();
  written_.Clear();  // unpins the page
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    writing_ = false;
    if (!ok) failure_.Update(LostConnection());
    if (preparing_) return;  // Deliver goes on
  }
  if (failure_.ok() && !next_.has_value() && !PrepareAtHand()) {
    preparing_ = true;
    return PrepareOnPool();
  }
  WriteNext();
}

absl::Status TableSender::LostConnection() const {
  const absl::Status stopped = call_.Stopped();
  return stopped.ok() ? absl::CancelledError("the connection was lost") : stopped;
}

void TableSender::End(const absl::Status& status) { Finish(call_.End(status)); }

void TableSender::OnDone() {
  if (is_ahead_) parts_.places_ahead->Leave();
  call_.Log(bytes_sent_);
  if (entered_.has_value()) parts_.admission->Leave(*entered_);
  delete this;
}

}  // namespace posenc::server
