#include "lib/families/t5_buckets.h"

#include <algorithm>
#include <ranges>

#include "lib/numeric/elementary.h"

namespace posenc {
namespace {

// What the formula needs of (num_buckets, max_distance), rounded as Python and
// torch round it: the logarithm of the ratio is a double, made float32 by the
// division.
struct LogBuckets {
  LogBuckets(int64_t num_buckets, int64_t max_distance)
      : last(num_buckets - 1),
        max_exact(num_buckets / 2),
        log_ratio(static_cast<float>(
            Log(static_cast<double>(max_distance) / static_cast<double>(max_exact)))) {}

  int64_t Bucket(int64_t distance) const {
    if (distance < max_exact) return distance;
    const float exact = static_cast<float>(max_exact);
    const float log_distance = LogF(static_cast<float>(distance) / exact);
    const float log_buckets = static_cast<float>(last + 1 - max_exact);
    const float position = log_distance / log_ratio * log_buckets;
    return std::min(max_exact + static_cast<int64_t>(position), last);
  }

  int64_t last;
  int64_t max_exact;
  float log_ratio;
};

}  // namespace

int64_t T5Bucket(int64_t num_buckets, int64_t max_distance, int64_t distance) {
  return LogBuckets(num_buckets, max_distance).Bucket(distance);
}

std::vector<int64_t> T5BucketFirstDistances(int64_t num_buckets, int64_t max_distance) {
  const LogBuckets buckets(num_buckets, max_distance);
  std::vector<int64_t> first;
  first.reserve(static_cast<size_t>(num_buckets));
  for (int64_t bucket = 0; bucket < num_buckets; ++bucket) {
    // The last bucket is reached by max_distance at the latest, where the two
    // logarithms are of the same ratio and differ by a rounding at most.
    const auto distances =
        std::views::iota(bucket < buckets.max_exact ? bucket : first.back(), max_distance + 1);
    first.push_back(*std::ranges::partition_point(
        distances, [&](int64_t distance) { return buckets.Bucket(distance) < bucket; }));
  }
  return first;
}

}  // namespace posenc
