#include "server/stall_watchdog.h"

namespace posenc::server {

StallWatchdog::StallWatchdog(std::chrono::nanoseconds stall_timeout)
    : stall_timeout_(stall_timeout) {
  if (stall_timeout_ > std::chrono::nanoseconds::zero()) thread_ = std::thread([this] { Run(); });
}

StallWatchdog::~StallWatchdog() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StallWatchdog::Watch(Stallable* stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  streams_.insert(stream);
}

void StallWatchdog::Forget(Stallable* stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  streams_.erase(stream);
}

// Looks four times a timeout, so a stream ends after 1 to 1.25 of it.
void StallWatchdog::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_.wait_for(lock, stall_timeout_ / 4, [this] { return stopping_; })) {
    const auto limit = std::chrono::steady_clock::now() - stall_timeout_;
    for (Stallable* stream : streams_) {
      if (stream->waiting_since() <= limit) stream->EndStalled();
    }
  }
}

}  // namespace posenc::server
