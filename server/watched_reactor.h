// A call whose peer is not waited for longer than the stall timeout: one that opens it
// and sends nothing, or does not take what is written, is cut off.
#ifndef POSENC_SERVER_WATCHED_REACTOR_H_
#define POSENC_SERVER_WATCHED_REACTOR_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

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

  // From `since` on the peer keeps the call waiting.
  void WaitSince(Clock::time_point since) { waiting_since_ = since; }
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
