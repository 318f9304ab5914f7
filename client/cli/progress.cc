#include "client/cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/time/clock.h"

namespace posenc::cli {
namespace {

constexpr absl::Duration kFirstAfter = absl::Seconds(1);  // short work shows nothing
constexpr absl::Duration kEvery = absl::Milliseconds(200);
constexpr double kMiB = 1 << 20;

}  // namespace

Progress::Progress(uint64_t total_bytes)
    : total_bytes_(total_bytes),
      on_terminal_(isatty(STDERR_FILENO) == 1),
      next_(absl::Now() + kFirstAfter) {}

Progress::~Progress() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
}

void Progress::Update(uint64_t done_bytes) {
  if (!on_terminal_ || absl::Now() < next_) return;
  next_ = absl::Now() + kEvery;
  shown_ = true;
  const double total = static_cast<double>(std::max<uint64_t>(total_bytes_, 1));
  const double done = static_cast<double>(done_bytes);
  std::fprintf(stderr, "\r%3.0f%%  %.0f of %.0f MiB\033[K", 100 * done / total, done / kMiB,
               total / kMiB);
}

}  // namespace posenc::cli
