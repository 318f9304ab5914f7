#include "server/compute_pool.h"

#include <utility>

namespace posenc::server {

ComputePool::ComputePool(Options options) : options_(std::move(options)), idle_(options_.threads) {
  for (size_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { Work(); });
}

ComputePool::~ComputePool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool ComputePool::TrySubmit(Job job) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    // An idle thread will take one that is counted as waiting until it wakes.
    if (new_waiting_ >= options_.max_queue + idle_) return false;
    queue_.push_back({std::move(job), /*is_new=*/true});
    ++new_waiting_;
  }
  work_.notify_one();
  return true;
}

void ComputePool::Continue(Job job) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back({std::move(job), /*is_new=*/false});
  }
  work_.notify_one();
}

void ComputePool::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    --idle_;
    if (queue_.empty()) return;  // stopping, and nothing waits
    Waiting next = std::move(queue_.front());
    queue_.pop_front();
    if (next.is_new) --new_waiting_;
    lock.unlock();
    if (options_.before_job) options_.before_job();
    next.job();
    next.job = nullptr;  // what it captured goes outside the lock
    lock.lock();
    ++idle_;
  }
}

}  // namespace posenc::server
