// A call whose peer is not waited for longer than the stall timeout: one that opens it
// and sends nothing, or does not take what is written, is cut off.
#ifndef POSENC_SERVER_WATCHED_REACTOR_H_
#define POSENC_SERVER_WATCHED_REACTOR_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "server/reactor.h"
#include "server/stall_watchdog.h"

namespace posenc::server {

class WatchedReactor : public Reactor, public Stallable {
 protected:
  using Clock = std::chrono::steady_clock;

  WatchedReactor(std::unique_ptr<IncomingCall> call, StallWatchdog* stalls)
      : Reactor(std::move(call)), stalls_(stalls) {
    stalls_->Watch(this);
  }
  ~WatchedReactor() override { stalls_->Forget(this); }

  // Each begins to wait for the peer, the first one maybe since earlier.
  void StartRead(grpc::ByteBuffer* message, Clock::time_point since = Clock::now()) {
    waiting_since_ = since;
    Reactor::StartRead(message);
  }
  void StartWrite(const grpc::ByteBuffer& message) {
    waiting_since_ = Clock::now();
    Reactor::StartWrite(message);
  }
  void StartWriteAndFinish(const grpc::ByteBuffer& message, const grpc::Status& status) {
    waiting_since_ = Clock::now();
    Reactor::StartWriteAndFinish(message, status);
  }

  // For the reaction: what it does is no waiting.
  void StopWaiting() { waiting_since_ = Clock::time_point::max(); }

 private:
  Clock::time_point waiting_since() const final { return waiting_since_; }
  void EndStalled() final {
    if (!stalled_.exchange(true)) context()->TryCancel();
  }

  StallWatchdog* const stalls_;
  std::atomic<Clock::time_point> waiting_since_{Clock::time_point::max()};
  std::atomic<bool> stalled_{false};
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_WATCHED_REACTOR_H_
