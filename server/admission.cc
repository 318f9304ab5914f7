#include "server/admission.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/grpc_status.h"

namespace posenc::server {
namespace {

// By then another replica has taken over, or a stream has ended.
constexpr absl::Duration kRetryDelay = absl::Milliseconds(500);

}  // namespace

absl::Status Admission::Enter(CallKind kind) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return BusyError("the server is draining", kRetryDelay);
  if (kind == CallKind::kUnary) {
    ++unaries_;
    return absl::OkStatus();
  }
  if (streams_ >= max_streams_) {
    return BusyError(absl::StrCat("max_concurrent_streams (", max_streams_, ") are being sent"),
                     kRetryDelay);
  }
  ++streams_;
  return absl::OkStatus();
}

void Admission::Leave(CallKind kind) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    --(kind == CallKind::kStream ? streams_ : unaries_);
    last_leave_ = std::chrono::steady_clock::now();
  }
  changed_.notify_all();
}

void Admission::Close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
}

bool Admission::WaitUntilEmpty(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto empty = [this] { return streams_ + unaries_ == 0; };
  changed_.wait_until(lock, deadline, [&] { return hurry_ || empty(); });
  return empty();
}

void Admission::HurryUp() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    hurry_ = true;
  }
  changed_.notify_all();
}

std::chrono::steady_clock::time_point Admission::last_leave() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_leave_;
}

uint64_t Admission::active_streams() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return streams_;
}

}  // namespace posenc::server
