// Whether to try again, and after how long. The rule is RetryPolicy's.
#ifndef POSENC_CLIENT_RETRY_H_
#define POSENC_CLIENT_RETRY_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "posenc/options.h"

namespace posenc {

// `clock` with the unset members filled in by the real thing.
Clock CompleteClock(Clock clock);

// `status` with ` (text)` at the end of its message, and its payloads.
absl::Status Annotate(const absl::Status& status, absl::string_view text);

// The attempts of one operation.
class Backoff {
 public:
  // REQUIRES: clock is complete.
  Backoff(const RetryPolicy& policy, const Clock& clock) : policy_(policy), clock_(clock) {}

  // Counts an attempt that ended with `status` and sleeps until the next one is
  // due. Returns OK to try again; else the status to report: when it is not worth
  // a retry, when the attempts are used up, or when the next one would come
  // after `deadline`.
  absl::Status WaitAfter(const absl::Status& status, absl::Time deadline);

  // The attempt got somewhere: the next failure is a first one again.
  void Reset() { failures_ = 0; }

 private:
  absl::Duration NextDelay(const absl::Status& status) const;

  const RetryPolicy policy_;
  const Clock clock_;
  int failures_ = 0;
};

}  // namespace posenc

#endif  // POSENC_CLIENT_RETRY_H_
