#include "server/stall_watchdog.h"

namespace posenc::server {

// Looks four times a timeout, so a stream ends after 1 to 1.25 of it.
StallWatchdog::StallWatchdog(std::chrono::nanoseconds stall_timeout)
    : stall_timeout_(stall_timeout), looks_(stall_timeout / 4, [this] { Look(); }) {}

void StallWatchdog::Watch(Stallable* stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  streams_.insert(stream);
}

void StallWatchdog::Forget(Stallable* stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  streams_.erase(stream);
}

void StallWatchdog::Look() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto limit = std::chrono::steady_clock::now() - stall_timeout_;
  for (Stallable* stream : streams_) {
    if (stream->waiting_since() <= limit) stream->EndStalled();
  }
}

}  // namespace posenc::server
