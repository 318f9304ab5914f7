#include "client/retry.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "posenc/v1/error_details.pb.h"

namespace posenc {
namespace {

constexpr char kRetryInfoUrl[] = "type.googleapis.com/google.rpc.RetryInfo";

// What the server asks for, zero when it says nothing that makes sense.
absl::Duration RequestedDelay(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryInfoUrl);
  v1::RetryInfo info;
  if (!payload.has_value() || !info.ParseFromString(std::string(*payload))) {
    return absl::ZeroDuration();
  }
  const absl::Duration delay =
      absl::Seconds(info.retry_delay().seconds()) + absl::Nanoseconds(info.retry_delay().nanos());
  return std::max(delay, absl::ZeroDuration());
}

}  // namespace

Clock CompleteClock(Clock clock) {
  if (clock.now == nullptr) clock.now = [] { return absl::Now(); };
  if (clock.sleep == nullptr) clock.sleep = [](absl::Duration delay) { absl::SleepFor(delay); };
  if (clock.random == nullptr) {
    clock.random = [] {
      thread_local absl::InsecureBitGen generator;
      return absl::Uniform(generator, 0.0, 1.0);
    };
  }
  return clock;
}

absl::Status Annotate(const absl::Status& status, absl::string_view text) {
  absl::Status annotated(status.code(), absl::StrCat(status.message(), " (", text, ")"));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

absl::Duration Backoff::NextDelay(const absl::Status& status) const {
  const double growth = std::pow(policy_.multiplier, failures_ - 1);
  const absl::Duration ceiling = std::min(policy_.initial_backoff * growth, policy_.max_backoff);
  // Half of it is drawn, so that clients cut off together do not come back together.
  return std::max(ceiling * (0.5 + 0.5 * clock_.random()), RequestedDelay(status));
}

absl::Status Backoff::WaitAfter(const absl::Status& status, absl::Time deadline) {
  if (!absl::IsUnavailable(status)) return status;
  ++failures_;
  if (failures_ >= policy_.max_attempts) {
    return Annotate(status, absl::StrCat(failures_, failures_ == 1 ? " attempt" : " attempts"));
  }
  const absl::Duration delay = NextDelay(status);
  if (clock_.now() + delay >= deadline) {
    return Annotate(status, absl::StrCat("no time left to wait ", absl::FormatDuration(delay),
                                         " for attempt ", failures_ + 1));
  }
  clock_.sleep(delay);
  return absl::OkStatus();
}

}  // namespace posenc
