#include "server/reactor.h"

#include <utility>

namespace posenc::server {

void IncomingCall::Expect(grpc::AsyncGenericService* service, grpc::ServerCompletionQueue* queue,
                          Event* arrived) {
  context_.AsyncNotifyWhenDone(static_cast<Event*>(&ended_));
  service->RequestCall(&context_, &stream_, queue, queue, arrived);
}

void IncomingCall::Ended(bool /*ok*/) { reactor_->Ended(); }

Reactor::Reactor(std::unique_ptr<IncomingCall> call) : call_(std::move(call)) {
  call_->reactor_ = this;
}

// An operation may be done, and this object gone, before the call that starts it is
// back: so it is counted first.

void Reactor::StartRead(grpc::ByteBuffer* message) {
  awaited_.fetch_add(1, std::memory_order_relaxed);
  call_->stream_.Read(message, static_cast<Event*>(&read_done_));
}

void Reactor::StartWrite(const grpc::ByteBuffer& message) {
  awaited_.fetch_add(1, std::memory_order_relaxed);
  call_->stream_.Write(message, static_cast<Event*>(&write_done_));
}

void Reactor::StartWriteAndFinish(const grpc::ByteBuffer& message, const grpc::Status& status) {
  call_->stream_.WriteAndFinish(message, grpc::WriteOptions(), status,
                                static_cast<Event*>(&finished_));
}

void Reactor::Finish(const grpc::Status& status) {
  call_->stream_.Finish(status, static_cast<Event*>(&finished_));
}

// A reaction may start what follows, so its own event counts until it is back.

void Reactor::ReadDone(bool ok) {
  OnReadDone(ok);
  Settle();
}

void Reactor::WriteDone(bool ok) {
  OnWriteDone(ok);
  Settle();
}

void Reactor::Finished(bool /*ok*/) {
  is_finished_ = true;
  Settle();
}

void Reactor::Ended() {
  if (!is_finished_ && call_->context_.IsCancelled()) OnCancel();
  Settle();
}

void Reactor::Settle() {
  if (awaited_.fetch_sub(1, std::memory_order_acq_rel) == 1) OnDone();
}

}  // namespace posenc::server
