// Ends streams whose peer takes nothing, or sends nothing: each holds memory and a place.
#ifndef POSENC_SERVER_STALL_WATCHDOG_H_
#define POSENC_SERVER_STALL_WATCHDOG_H_

#include <chrono>
#include <mutex>

#include "absl/container/flat_hash_set.h"
#include "server/periodic.h"

namespace posenc::server {

// What a stream shows of itself.
class Stallable {
 public:
  virtual ~Stallable() = default;
  // Since when the peer has kept it waiting, with one write or one part of an upload;
  // time_point::max() when it does not.
  virtual std::chrono::steady_clock::time_point waiting_since() const = 0;
  // Called at any time between Watch and Forget, at least once. Must not block.
  virtual void EndStalled() = 0;
};

// Thread-safe.
class StallWatchdog {
 public:
  // Zero never ends a stream.
  explicit StallWatchdog(std::chrono::nanoseconds stall_timeout);

  StallWatchdog(const StallWatchdog&) = delete;
  StallWatchdog& operator=(const StallWatchdog&) = delete;

  void Watch(Stallable* stream);
  void Forget(Stallable* stream);  // on return it is not touched any more

 private:
  void Look();

  const std::chrono::nanoseconds stall_timeout_;
  const std::chrono::nanoseconds interval_;

  // While mutex_ is free: streams_ are those watched and not forgotten, alive.
  std::mutex mutex_;
  // When this process ran again after it had not: nobody could take anything then.
  std::chrono::steady_clock::time_point resumed_;
  std::chrono::steady_clock::time_point last_look_;
  absl::flat_hash_set<Stallable*> streams_;

  Periodic looks_;  // the first to go
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_STALL_WATCHDOG_H_
