// The frequencies of a sinusoidal table, in radians per position.
//
// With n frequencies and k = 0, 1, ... n - 1, frequency k is base^(-j / m):
//
//   rule   j   m                       rule    j   m
//   THETA  2k  d_model                 SHIFT   k   n - frequency_shift
//   T2T    k   n - 1 (times min_timescale, of base / min_timescale)
//
// EXACT takes the real number. FLOAT32 evaluates one of the expressions of
// FrequencyExpression (sinusoidal.proto) in the order of a framework's code:
//
//   EXP_PRODUCT     exp(f32(j) * f32(-ln(base) / m)): the annotated transformer, fairseq,
//                   Whisper. ln and the division are double, as Python evaluates them
//   EXP_QUOTIENT    exp(f32(f32(-ln(base)) * f32(j)) / f32(m)): diffusers
//   POW_RECIPROCAL  1 / pow(f32(base), f32(j) / f32(m)): Transformer-XL, XLNet
//   POW             pow(f32(base), -(f32(j) / f32(m))): x-transformers
//   EXP_LINSPACE    exp((1 - f32(j) / f32(m)) * f32(ln(base)) - f32(ln(base))): MLX
//   ROUNDED         the real number, rounded once: TGAT
//
// with exp and pow correctly rounded.
#ifndef POSENC_LIB_FAMILIES_SINUSOIDAL_FREQUENCIES_H_
#define POSENC_LIB_FAMILIES_SINUSOIDAL_FREQUENCIES_H_

#include <vector>

#include "lib/numeric/wide_float.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// [SinusoidalPairs(spec)]. REQUIRES: a canonical spec.
std::vector<float> SinusoidalFrequencies32(const v1::SinusoidalSpec& spec);
// Relative error below 2^-220: far inside what rounding once needs.
std::vector<WideFloat> SinusoidalFrequencies(const v1::SinusoidalSpec& spec);

// The real frequencies lie between these, up to a rounding.
struct FrequencyRange {
  double min = 0;
  double max = 0;
};
// REQUIRES: defaults are filled in, base and min_timescale are positive, the rule is
// not GIVEN.
FrequencyRange SinusoidalFrequencyRange(const v1::SinusoidalSpec& spec);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_SINUSOIDAL_FREQUENCIES_H_
