#include "server/stall_watchdog.h"

#include <algorithm>

namespace posenc::server {

// Looks four times a timeout, so a stream ends after 1 to 1.25 of it.
StallWatchdog::StallWatchdog(std::chrono::nanoseconds stall_timeout)
    : stall_timeout_(stall_timeout),
      interval_(stall_timeout / 4),
      resumed_(std::chrono::steady_clock::now()),
      last_look_(resumed_),
      looks_(interval_, [this] { Look(); }) {}

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
  const auto now = std::chrono::steady_clock::now();
  if (now > last_look_ + 2 * interval_) resumed_ = now;
  last_look_ = now;
  for (Stallable* stream : streams_) {
    const auto since = std::max(stream->waiting_since(), resumed_);
    if (since <= now - stall_timeout_) stream->EndStalled();
  }
}

}  // namespace posenc::server
