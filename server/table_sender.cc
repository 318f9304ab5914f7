#include "server/table_sender.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"
#include "lib/engine/engine.h"
#include "posenc/v1/table.pb.h"
#include "server/request.h"

namespace posenc::server {

template <typename Reactor>
TableSender<Reactor>::TableSender(const ServiceParts& parts, grpc::CallbackServerContext* context,
                                  absl::string_view method)
    : parts_(parts), context_(context), call_(context, method) {
  parts_.stalls->Watch(this);
}

template <typename Reactor>
absl::Status TableSender<Reactor>::Enter() {
  RETURN_IF_ERROR(parts_.admission->Enter(CallKind::kStream));
  entered_ = true;
  return absl::OkStatus();
}

template <typename Reactor>
void TableSender<Reactor>::BeginOnPool(Step step) {
  if (!parts_.pool->TrySubmit([this, step = std::move(step)] { Run(step); })) {
    End(QueueFullError(parts_));
  }
}

template <typename Reactor>
void TableSender<Reactor>::ContinueOnPool(Step step) {
  parts_.pool->Continue([this, step = std::move(step)] { Run(step); });
}

template <typename Reactor>
void TableSender<Reactor>::Run(const Step& step) {
  const absl::Status status = Guarded(step);
  if (!status.ok()) End(status);  // else the turn is gRPC's, and `this` maybe gone
}

template <typename Reactor>
absl::Status TableSender<Reactor>::Answer(v1::GetTableRequest request) {
  ASSIGN_OR_RETURN(table_, parts_.engine->GetTable(std::move(request)));
  chunks_.emplace(table_->header(), table_->offset());
  return Send();
}

template <typename Reactor>
absl::Status TableSender<Reactor>::Send() {
  RETURN_IF_ERROR(call_.Stopped());
  Slice slice;
  if (!chunks_->header_goes_alone() && !chunks_->done()) slice = NextSlice();
  chunk_ = chunks_->Frame(slice);
  bytes_sent_ += slice.bytes.size();
  WaitSince(Clock::now());
  if (chunks_->done()) {
    this->StartWriteAndFinish(&chunk_, grpc::WriteOptions(), call_.End(absl::OkStatus()));
  } else {
    this->StartWrite(&chunk_);
  }
  return absl::OkStatus();
}

// A page holds at least one unit, which a caller can make larger than a chunk.
template <typename Reactor>
Slice TableSender<Reactor>::NextSlice() {
  if (rest_.bytes.empty()) rest_ = table_->Next();
  const size_t size = std::min<size_t>(rest_.bytes.size(), parts_.limits.chunk_bytes());
  Slice slice{rest_.page, rest_.bytes.first(size)};
  rest_.bytes = rest_.bytes.subspan(size);
  if (rest_.bytes.empty()) rest_.page.reset();
  return slice;
}

template <typename Reactor>
void TableSender<Reactor>::OnWriteDone(bool ok) {
  StopWaiting();
  chunk_.Clear();  // unpins the page
  if (!ok) return End(LostConnection());
  ContinueOnPool([this] { return Send(); });
}

template <typename Reactor>
absl::Status TableSender<Reactor>::LostConnection() const {
  const absl::Status stopped = call_.Stopped();
  return stopped.ok() ? absl::CancelledError("the connection was lost") : stopped;
}

template <typename Reactor>
void TableSender<Reactor>::End(const absl::Status& status) {
  this->Finish(call_.End(status));
}

template <typename Reactor>
void TableSender<Reactor>::OnDone() {
  parts_.stalls->Forget(this);
  call_.Log(bytes_sent_);
  if (entered_) parts_.admission->Leave(CallKind::kStream);
  delete this;
}

template <typename Reactor>
void TableSender<Reactor>::EndStalled() {
  if (!stalled_.exchange(true)) context_->TryCancel();
}

template class TableSender<grpc::ServerWriteReactor<grpc::ByteBuffer>>;
template class TableSender<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>;

}  // namespace posenc::server
