// The threads that compute: nothing else does, and least of all gRPC's, which
// must stay free to answer health checks and to move bytes.
#ifndef POSENC_SERVER_COMPUTE_POOL_H_
#define POSENC_SERVER_COMPUTE_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace posenc::server {

// Thread-safe. Jobs start in the order they came, so streams take turns.
class ComputePool {
 public:
  using Job = std::function<void()>;  // must not throw

  struct Options {
    size_t threads = 1;    // at least 1
    size_t max_queue = 0;  // new jobs that may wait for a thread
    // Runs on the thread right before each job: where a test stands a gate.
    std::function<void()> before_job;
  };

  explicit ComputePool(Options options);
  ~ComputePool();  // runs what waits, then joins

  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  // Takes the first job of a request; false when max_queue of them wait already.
  [[nodiscard]] bool TrySubmit(Job job);

  // Takes a further job of a request that got in: never refused, since each has
  // at most one at a time and their number is bounded by admission.
  void Continue(Job job);

 private:
  struct Waiting {
    Job job;
    bool is_new;
  };

  void Work();

  const Options options_;

  // While mutex_ is free: new_waiting_ is the number of new jobs in queue_, and
  // idle_ the number of threads that have no job, those not yet running included.
  // Jobs run outside the lock.
  std::mutex mutex_;
  std::condition_variable work_;
  std::deque<Waiting> queue_;
  size_t new_waiting_ = 0;
  size_t idle_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_COMPUTE_POOL_H_
