// ALiBi's slopes: one positive number a head.
//
// With P the largest power of two <= num_heads and M = alibi_bias_max, the real
// numbers are, for heads h = 0, 1, ...:
//
//   h <  P   2^(-M (h + 1) / P)
//   h >= P   2^(-M (2 (h - P) + 1) / 2P)   every other slope of 2P heads
//
// Published code computes them in ways that give other bits; which one is
// slope_rounding, since a model was trained with its own.
#ifndef POSENC_LIB_FAMILIES_ALIBI_SLOPES_H_
#define POSENC_LIB_FAMILIES_ALIBI_SLOPES_H_

#include <cstdint>
#include <vector>

#include "posenc/v1/encoding.pb.h"

namespace posenc {

// The smallest slope is 2^-alibi_bias_max: up to here it is a normal float32 in
// every rounding (BLOOM's float32 powers drift a little below it).
inline constexpr double kMaxAlibiBiasMax = 100.0;

// The fields with their defaults, which a canonical spec leaves out.
inline int64_t AlibiTotalHeads(const v1::AlibiSpec& spec) {
  return spec.has_total_heads() ? spec.total_heads() : spec.num_heads();
}
inline int64_t AlibiTensorParallelSize(const v1::AlibiSpec& spec) {
  return spec.has_tensor_parallel_size() ? spec.tensor_parallel_size() : 1;
}

// How many heads a tensor has: total_heads, or one rank's part of them.
// REQUIRES: a canonical spec.
int64_t AlibiHeads(const v1::AlibiSpec& spec);

// [AlibiHeads(spec)]; 0 for heads without a bias. REQUIRES: a canonical spec.
std::vector<float> AlibiSlopes(const v1::AlibiSpec& spec);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_ALIBI_SLOPES_H_
