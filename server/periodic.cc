#include "server/periodic.h"

#include <utility>

namespace posenc::server {

Periodic::Periodic(std::chrono::nanoseconds interval, std::function<void()> job) {
  if (interval <= std::chrono::nanoseconds::zero()) return;
  thread_ = std::thread([this, interval, job = std::move(job)] {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stop_.wait_for(lock, interval, [this] { return stopping_; })) {
      lock.unlock();
      job();
      lock.lock();
    }
  });
}

Periodic::~Periodic() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace posenc::server
