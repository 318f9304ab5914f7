#include "lib/families/t5_buckets.h"

#include <algorithm>

#include "lib/numeric/elementary.h"

namespace posenc {
namespace {

// What the formula needs of (num_buckets, max_distance), rounded as Python and
// torch round it: the logarithm of the ratio is a double, made float32 by the
// division.
class LogBuckets {
 public:
  explicit LogBuckets(const T5Buckets& buckets)
      : last_(buckets.num_buckets - 1),
        max_exact_(buckets.num_buckets / 2),
        adds_before_truncation_(buckets.order == v1::BUCKET_ORDER_WAVLM),
        log_ratio_(static_cast<float>(
            Log(static_cast<double>(buckets.max_distance) / static_cast<double>(max_exact_)))) {}

  int64_t max_exact() const { return max_exact_; }

  int64_t Bucket(int64_t distance) const {
    if (distance < max_exact_) return distance;
    const auto exact = static_cast<float>(max_exact_);
    const auto log_buckets = static_cast<float>(last_ + 1 - max_exact_);
    const float position = LogF(static_cast<float>(distance) / exact) / log_ratio_ * log_buckets;
    const int64_t bucket = adds_before_truncation_ ? static_cast<int64_t>(exact + position)
                                                   : max_exact_ + static_cast<int64_t>(position);
    return std::min(bucket, last_);
  }

 private:
  int64_t last_;
  int64_t max_exact_;
  bool adds_before_truncation_;
  float log_ratio_;
};

}  // namespace

int64_t T5Bucket(const T5Buckets& buckets, int64_t distance) {
  return LogBuckets(buckets).Bucket(distance);
}

std::vector<int64_t> T5BucketFirstDistances(const T5Buckets& buckets) {
  const LogBuckets formula(buckets);
  std::vector<int64_t> first;
  first.reserve(static_cast<size_t>(buckets.num_buckets));
  for (int64_t bucket = 0; bucket < buckets.num_buckets; ++bucket) {
    // The last bucket is reached by max_distance at the latest, where the two
    // logarithms are of the same ratio and differ by a rounding at most.
    int64_t below = (bucket < formula.max_exact() ? bucket : first.back()) - 1;
    int64_t reached = buckets.max_distance;
    while (reached - below > 1) {
      const int64_t middle = below + (reached - below) / 2;
      (formula.Bucket(middle) < bucket ? below : reached) = middle;
    }
    first.push_back(reached);
  }
  return first;
}

}  // namespace posenc
