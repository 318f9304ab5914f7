#include "lib/families/deberta_buckets.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lib/numeric/elementary.h"

namespace posenc {
namespace {

// The formula beyond mid, each step rounded to float32 as torch does.
class LogBuckets {
 public:
  explicit LogBuckets(const v1::DebertaScheme& scheme)
      : mid_(scheme.position_buckets() / 2),
        log_ratio_(LogRatio(scheme)),
        steps_(static_cast<float>(mid_ - 1)) {}

  // REQUIRES: distance > mid.
  int64_t Bucket(int64_t distance) const {
    const float ratio = static_cast<float>(distance) / static_cast<float>(mid_);
    return mid_ + static_cast<int64_t>(std::ceil(LogF(ratio) / log_ratio_ * steps_));
  }

  // The smallest distance whose bucket is above `bucket`; kMaxDistance + 1 when
  // there is none. Every step of the formula is monotone, so a search will do. It
  // starts from the inverse formula in double, which saves most of the steps and
  // decides nothing.
  int64_t FirstAbove(int64_t bucket) const {
    const double guess = static_cast<double>(mid_) *
                         std::exp(static_cast<double>(bucket - mid_) / static_cast<double>(steps_) *
                                  static_cast<double>(log_ratio_));
    const int64_t least = mid_ + 1;
    const int64_t most = DebertaBuckets::kMaxDistance + 1;
    int64_t high = guess < static_cast<double>(most) ? static_cast<int64_t>(guess) : most;
    high = std::clamp(high, least, most);
    int64_t low = high - 1;
    // Widen until Bucket(low) <= bucket < Bucket(high), then halve.
    for (int64_t step = 1; high < most && Bucket(high) <= bucket; step *= 2) {
      low = high;
      high = std::min(high + step, most);
    }
    for (int64_t step = 1; low >= least && Bucket(low) > bucket; step *= 2) {
      high = low;
      low = std::max(low - step, mid_);
    }
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (Bucket(middle) > bucket ? high : low) = middle;
    }
    return high;
  }

 private:
  static float LogRatio(const v1::DebertaScheme& scheme) {
    const double ratio = static_cast<double>(scheme.max_relative_positions() - 1) /
                         static_cast<double>(scheme.position_buckets() / 2);
    return scheme.clamp() == v1::DEBERTA_CLAMP_ORIGINAL ? static_cast<float>(Log(ratio))
                                                        : LogF(static_cast<float>(ratio));
  }

  int64_t mid_;
  float log_ratio_;
  float steps_;
};

}  // namespace

DebertaBuckets::DebertaBuckets(const v1::DebertaScheme& scheme) {
  span_ = scheme.max_relative_positions();
  mid_ = kMaxDistance;
  if (scheme.position_buckets() == 0) return;
  span_ = scheme.position_buckets();
  mid_ = span_ / 2;
  if (scheme.clamp() == v1::DEBERTA_CLAMP_ORIGINAL) {
    max_distance_ = scheme.max_relative_positions() - 1;
  }
  const LogBuckets buckets(scheme);
  for (int64_t bucket = mid_;; ++bucket) {
    const int64_t first = buckets.FirstAbove(bucket);
    if (first > max_distance_) break;
    first_distances_.push_back(first);
  }
}

int64_t DebertaBuckets::BucketOf(int64_t distance) const {
  const int64_t n = std::min(std::abs(distance), max_distance_);
  int64_t bucket = n;
  if (n > mid_) {
    const auto above = std::upper_bound(first_distances_.begin(), first_distances_.end(), n);
    bucket = mid_ + (above - first_distances_.begin());
  }
  return distance < 0 ? -bucket : bucket;
}

}  // namespace posenc
