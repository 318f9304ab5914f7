// Ends streams whose peer takes nothing, or sends nothing: each holds memory and a place.
#ifndef POSENC_SERVER_STALL_WATCHDOG_H_
#define POSENC_SERVER_STALL_WATCHDOG_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/container/flat_hash_set.h"

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
  ~StallWatchdog();

  StallWatchdog(const StallWatchdog&) = delete;
  StallWatchdog& operator=(const StallWatchdog&) = delete;

  void Watch(Stallable* stream);
  void Forget(Stallable* stream);  // on return it is not touched any more

 private:
  void Run();

  const std::chrono::nanoseconds stall_timeout_;

  // While mutex_ is free: streams_ are those watched and not forgotten, alive.
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  absl::flat_hash_set<Stallable*> streams_;
  std::thread thread_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_STALL_WATCHDOG_H_
