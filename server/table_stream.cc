#include "server/table_stream.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"
#include "lib/engine/engine.h"
#include "posenc/v1/table.pb.h"
#include "server/request.h"

namespace posenc::server {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

TableStream::TableStream(const ServiceParts& parts, grpc::CallbackServerContext* context,
                         const grpc::ByteBuffer& request)
    : parts_(parts), context_(context), call_(context, "GetTable"), request_(request) {
  parts_.stalls->Watch(this);
}

void TableStream::Start() {
  if (const absl::Status status = Enter(); !status.ok()) return End(status);
  if (!parts_.pool->TrySubmit([this] { RunOnPool(&TableStream::Begin); })) {
    End(QueueFullError(parts_));
  }
}

absl::Status TableStream::Enter() {
  RETURN_IF_ERROR(parts_.admission->Enter(CallKind::kStream));
  entered_ = true;
  return CheckRequestSize(request_, parts_.limits.max_request_bytes());
}

void TableStream::RunOnPool(absl::Status (TableStream::*step)()) {
  const absl::Status status = Guarded([&] { return (this->*step)(); });
  if (!status.ok()) End(status);  // else the turn is gRPC's, and `this` maybe gone
}

absl::Status TableStream::Begin() {
  RETURN_IF_ERROR(call_.Stopped());
  v1::GetTableRequest request;
  RETURN_IF_ERROR(ParseRequest(&request_, &request));
  ASSIGN_OR_RETURN(table_, parts_.engine->GetTable(request));
  chunks_.emplace(table_->header(), table_->offset());
  return Send();
}

// On OK the turn has passed on: a write is under way.
absl::Status TableStream::Send() {
  RETURN_IF_ERROR(call_.Stopped());
  Slice slice;
  if (!chunks_->header_goes_alone() && !chunks_->done()) slice = NextSlice();
  chunk_ = chunks_->Frame(slice);
  bytes_sent_ += slice.bytes.size();
  write_began_ = Clock::now();
  if (chunks_->done()) {
    StartWriteAndFinish(&chunk_, grpc::WriteOptions(), call_.End(absl::OkStatus()));
  } else {
    StartWrite(&chunk_);
  }
  return absl::OkStatus();
}

// A page holds at least one unit, which a caller can make larger than a chunk.
Slice TableStream::NextSlice() {
  if (rest_.bytes.empty()) rest_ = table_->Next();
  const size_t size = std::min<size_t>(rest_.bytes.size(), parts_.limits.chunk_bytes());
  Slice slice{rest_.page, rest_.bytes.first(size)};
  rest_.bytes = rest_.bytes.subspan(size);
  if (rest_.bytes.empty()) rest_.page.reset();
  return slice;
}

void TableStream::OnWriteDone(bool ok) {
  write_began_ = Clock::time_point::max();
  chunk_.Clear();  // unpins the page
  if (!ok)
    return End(call_.Stopped().ok() ? absl::CancelledError("the connection was lost")
                                    : call_.Stopped());
  parts_.pool->Continue([this] { RunOnPool(&TableStream::Send); });
}

void TableStream::End(const absl::Status& status) { Finish(call_.End(status)); }

void TableStream::OnDone() {
  parts_.stalls->Forget(this);
  call_.Log(bytes_sent_);
  if (entered_) parts_.admission->Leave(CallKind::kStream);
  delete this;
}

Clock::time_point TableStream::write_began() const { return write_began_; }

void TableStream::EndStalled() {
  if (!stalled_.exchange(true)) context_->TryCancel();
}

}  // namespace posenc::server
