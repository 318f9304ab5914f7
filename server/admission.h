// Who may come in, and whether anybody is still inside.
//
// A call enters before anything is spent on it and leaves when it is done. While
// draining nobody enters; the one who drains waits until all have left.
#ifndef POSENC_SERVER_ADMISSION_H_
#define POSENC_SERVER_ADMISSION_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "absl/status/status.h"

namespace posenc::server {

enum class CallKind { kUnary, kStream };

// Thread-safe.
class Admission {
 public:
  explicit Admission(size_t max_concurrent_streams) : max_streams_(max_concurrent_streams) {}

  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // UNAVAILABLE when draining or, for a stream, when max_concurrent_streams run.
  absl::Status Enter(CallKind kind);
  // REQUIRES: Enter(kind) was OK, once for each.
  void Leave(CallKind kind);

  // From now on nobody enters.
  void Close();
  // Until nobody is inside, the deadline, or HurryUp. True when nobody is.
  bool WaitUntilEmpty(std::chrono::steady_clock::time_point deadline);
  // Ends every WaitUntilEmpty, now and later.
  void HurryUp();

  // When somebody last left; the clock's epoch when nobody has yet.
  std::chrono::steady_clock::time_point last_leave() const;

  uint64_t active_streams() const;

 private:
  const size_t max_streams_;

  // While mutex_ is free: the counts are of those who entered and did not leave.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  size_t streams_ = 0;
  size_t unaries_ = 0;
  bool closed_ = false;
  bool hurry_ = false;
  std::chrono::steady_clock::time_point last_leave_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_ADMISSION_H_
