#include "lib/families/alibi_slopes.h"

#include <bit>
#include <cstdint>

#include "lib/numeric/dtype.h"
#include "lib/numeric/elementary.h"

namespace posenc {
namespace {

// Press et al.'s code: ratio * ratio^k in Python's double, rounded to float32 by
// the tensor that takes it.
float PressSlope(double ratio, int64_t power) {
  return static_cast<float>(ratio * Pow(ratio, static_cast<double>(power - 1)));
}

// BLOOM's: the ratio is a float32 tensor, and so is its power.
float BloomSlope(double ratio, int64_t power) {
  return PowF(static_cast<float>(ratio), static_cast<float>(power));
}

// slopes = ratio^1 ... ratio^P, then the odd powers of the ratio of 2P heads.
template <typename Slope>
std::vector<float> GeometricSlopes(int64_t num_heads, double alibi_bias_max, Slope slope) {
  const int64_t power_of_two =
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(num_heads)));
  const double exponent = -alibi_bias_max / static_cast<double>(power_of_two);
  const double ratio = Pow(2.0, exponent);
  const double ratio_of_twice = Pow(2.0, exponent / 2);
  std::vector<float> slopes;
  slopes.reserve(static_cast<size_t>(num_heads));
  for (int64_t head = 0; head < num_heads; ++head) {
    slopes.push_back(head < power_of_two ? slope(ratio, head + 1)
                                         : slope(ratio_of_twice, 2 * (head - power_of_two) + 1));
  }
  return slopes;
}

// MPT's: the exponent k * (M / Q) is rounded to float32, then 2^exponent, then
// its reciprocal, where Q is the power of two from num_heads on. Of those Q slopes
// the odd ones stand first, then the even ones, when Q is not num_heads itself.
std::vector<float> MptSlopes(int64_t num_heads, double alibi_bias_max) {
  const int64_t power_of_two =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(num_heads)));
  const float step = static_cast<float>(alibi_bias_max / static_cast<double>(power_of_two));
  const auto slope = [step](int64_t power) {
    return 1.0f / PowF(2.0f, static_cast<float>(power) * step);
  };
  std::vector<float> slopes;
  slopes.reserve(static_cast<size_t>(num_heads));
  for (int64_t head = 0; head < num_heads; ++head) {
    if (num_heads == power_of_two) {
      slopes.push_back(slope(head + 1));
    } else if (head < power_of_two / 2) {
      slopes.push_back(slope(2 * head + 2));
    } else {
      slopes.push_back(slope(2 * (head - power_of_two / 2) + 1));
    }
  }
  return slopes;
}

// [num_heads], in the spec's rounding.
std::vector<float> BiasedSlopes(const v1::AlibiSpec& spec) {
  const int64_t num_heads = spec.num_heads();
  const double alibi_bias_max = spec.alibi_bias_max();
  switch (spec.slope_rounding()) {
    case v1::SLOPE_ROUNDING_BLOOM:
      return GeometricSlopes(num_heads, alibi_bias_max, BloomSlope);
    case v1::SLOPE_ROUNDING_GGML:
      // Correctly rounded powers of the same base are BLOOM's; but its maximum is float32.
      return GeometricSlopes(num_heads, static_cast<float>(alibi_bias_max), BloomSlope);
    case v1::SLOPE_ROUNDING_FALCON_BF16: {
      std::vector<float> slopes = GeometricSlopes(num_heads, alibi_bias_max, BloomSlope);
      for (float& slope : slopes) slope = Bf16ToFloat(RoundToBf16(slope));
      return slopes;
    }
    case v1::SLOPE_ROUNDING_MPT:
      return MptSlopes(num_heads, alibi_bias_max);
    default:  // PRESS: a canonical spec has no other
      return GeometricSlopes(num_heads, alibi_bias_max, PressSlope);
  }
}

}  // namespace

int64_t AlibiHeads(const v1::AlibiSpec& spec) {
  return AlibiTotalHeads(spec) / AlibiTensorParallelSize(spec);
}

std::vector<float> AlibiSlopes(const v1::AlibiSpec& spec) {
  std::vector<float> all = BiasedSlopes(spec);
  if (spec.has_seq_len_interpolation_factor()) {
    const auto reciprocal = static_cast<float>(1.0 / spec.seq_len_interpolation_factor());
    for (float& slope : all) slope *= reciprocal;
  }
  all.resize(static_cast<size_t>(AlibiTotalHeads(spec)), 0.0f);
  const int64_t heads = AlibiHeads(spec);
  const auto first = all.begin() + spec.tensor_parallel_rank() * heads;
  return std::vector<float>(first, first + heads);
}

}  // namespace posenc
