// T5's buckets of distance as a table of integer thresholds.
//
// One direction has num_buckets buckets. The first max_exact = num_buckets / 2 hold
// one distance each; beyond, bucket edges grow with the logarithm of the distance:
//
//   bucket(n) = max_exact + trunc(log(n / max_exact) / log(max_distance / max_exact)
//                                 * (num_buckets - max_exact)), at most num_buckets - 1
//
// WavLM's order adds max_exact before it truncates.
//
// The edges are decided once, in the float32 operation order of the reference
// (transformers, T5Attention._relative_position_bucket): a float64 logarithm gives
// another bucket at hundreds of (num_buckets, max_distance, distance), all listed in
// tests/golden/t5_float32_float64.jsonl; e.g. (16, 800, 80): 12, not 11.
#ifndef POSENC_LIB_FAMILIES_T5_BUCKETS_H_
#define POSENC_LIB_FAMILIES_T5_BUCKETS_H_

#include <cstdint>
#include <vector>

#include "posenc/v1/encoding.pb.h"

namespace posenc {

// How one direction is cut.
struct T5Buckets {
  int64_t num_buckets = 0;   // of the direction; at least 2
  int64_t max_distance = 0;  // above num_buckets / 2
  v1::BucketOrder order = v1::BUCKET_ORDER_T5;
};

// The bucket of a distance >= 0 by the formula, slowly. Non-decreasing in
// `distance` (each step is a correctly rounded monotone function), which is what
// makes thresholds possible; a test walks it.
int64_t T5Bucket(const T5Buckets& buckets, int64_t distance);

// [num_buckets]: the smallest distance whose bucket is that one or a later one.
// Ascending from 0; equal neighbours are buckets that no distance falls into.
std::vector<int64_t> T5BucketFirstDistances(const T5Buckets& buckets);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_T5_BUCKETS_H_
