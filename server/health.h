// grpc.health.v1, ours: gRPC's own keeps every open Watch in the way of a
// shutdown, and cannot end them.
#ifndef POSENC_SERVER_HEALTH_H_
#define POSENC_SERVER_HEALTH_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "server/router.h"
#include "server/stall_watchdog.h"

namespace posenc::server {

// Thread-safe. Knows the service "" (the server) and that of posenc.v1.
class HealthService final {
 public:
  // Calls that do not send their request are cut off by `stalls`.
  explicit HealthService(StallWatchdog* stalls) : stalls_(stalls) {}
  ~HealthService();

  // Must outlive the calls.
  void AddTo(Router* router);

  // Tells every Watch. NOT_SERVING until the first call.
  void SetServing(bool serving);

  // Ends every Watch after what it has yet to be told, and each that comes later
  // after its first answer. Waits for them until `deadline`; false when there
  // were none.
  bool EndWatches(std::chrono::steady_clock::time_point deadline);

 private:
  class Checker;
  class Watcher;
  // What a watcher does next; done outside the lock.
  enum class Step { kNothing, kWrite, kFinish };

  bool IsServing();
  void Watch(Watcher* watcher);
  Step NextStep(Watcher* watcher);
  void StepAll();

  StallWatchdog* const stalls_;

  // While mutex_ is free: watchers_ are alive, and each is either writing,
  // finished, or has nothing to tell.
  std::mutex mutex_;
  std::condition_variable ended_;  // a Watch is no more
  bool serving_ = false;
  bool ending_ = false;
  absl::flat_hash_set<Watcher*> watchers_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_HEALTH_H_
