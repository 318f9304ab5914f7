// DeBERTa's log buckets of distance as a table of integer thresholds.
//
//   n = |distance|, mid = position_buckets / 2
//   bucket = distance                                                     n <= mid
//            sign * (mid + ceil(log(n / mid) / log((M - 1) / mid) * (mid - 1)))
//
// with M = max_relative_positions. The thresholds are decided once, in the float32
// operation order of the reference (transformers, make_log_bucket_position); the
// original code takes the second logarithm in double.
// reference/other-encodings.md, section 4.4.
#ifndef POSENC_LIB_FAMILIES_DEBERTA_BUCKETS_H_
#define POSENC_LIB_FAMILIES_DEBERTA_BUCKETS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "posenc/v1/relative.pb.h"

namespace posenc {

// Immutable, thread-safe.
class DebertaBuckets {
 public:
  // Distances, in magnitude, that a grid can have (family.h).
  static constexpr int64_t kMaxDistance = int64_t{1} << 32;

  // REQUIRES: scheme is canonical; one without position_buckets has no table.
  explicit DebertaBuckets(const v1::DebertaScheme& scheme);

  // Half the rows of the model's table.
  int64_t span() const { return span_; }

  // The bucket of query - key, with its sign. REQUIRES: |distance| <= kMaxDistance.
  int64_t BucketOf(int64_t distance) const;

  size_t bytes() const { return first_distances_.capacity() * sizeof(int64_t); }

 private:
  int64_t mid_ = 0;  // distances up to here are their own bucket
  int64_t span_ = 0;
  int64_t max_distance_ = kMaxDistance;  // magnitudes are clamped to it first
  // [i]: the smallest distance whose bucket is above mid_ + i. Non-decreasing.
  std::vector<int64_t> first_distances_;
};

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_DEBERTA_BUCKETS_H_
