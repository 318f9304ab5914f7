// The frequencies of a sinusoidal table, in radians per position.
//
// With n frequencies and k = 0, 1, ... n - 1:
//
//   rule   real number (EXACT)      operation order of FLOAT32
//   THETA  base^(-2k / d_model)     exp(f32(2k) * f32(-ln(base) / d_model))
//   T2T    base^(-k / (n - 1))      exp(f32(k) * f32(-ln(base) / (n - 1)))
//
// ln and the division are double, as Python evaluates them; exp is the correctly
// rounded float32 one. The THETA order is that of the annotated transformer and of
// diffusers' SinusoidalPositionalEmbedding, the T2T order that of fairseq and Whisper.
#ifndef POSENC_LIB_FAMILIES_SINUSOIDAL_FREQUENCIES_H_
#define POSENC_LIB_FAMILIES_SINUSOIDAL_FREQUENCIES_H_

#include <cstdint>
#include <vector>

#include "lib/numeric/wide_float.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// How many: one a sine column. REQUIRES: d_model, layout and odd_dim_rule are canonical.
int64_t SinusoidalPairs(const v1::SinusoidalSpec& spec);

// [SinusoidalPairs(spec)]. REQUIRES: a canonical spec.
std::vector<float> SinusoidalFrequencies32(const v1::SinusoidalSpec& spec);
// Relative error below 2^-220: far inside what Rotation::Exact needs to round once.
std::vector<WideFloat> SinusoidalFrequencies(const v1::SinusoidalSpec& spec);

// An upper bound of all of them, for checks before anything is computed.
double MaxSinusoidalFrequency(const v1::SinusoidalSpec& spec);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_SINUSOIDAL_FREQUENCIES_H_
