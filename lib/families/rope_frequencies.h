// Inverse frequencies of a RoPE, by rope_type, in both arithmetics.
//
//   default   f[i] = rope_theta^(-2i/rotary_dim)
//   linear    f[i] / factor                                     arXiv:2306.15595
//   yarn      between f[i]/factor and f[i], by a ramp over i    arXiv:2309.00071
//   llama3    between f[i]/factor and f[i], by a ramp over the wavelength 2π/f[i]
//   dynamic, ntk  f[i] with a larger base; ntk with mixed_b divides f[i] the more the larger i
//   longrope  f[i] / short_factor[i] or f[i] / long_factor[i]   arXiv:2402.13753
//   proportional  f[i] / factor for the first pairs, 0 for the others
//   frequencies   the caller's
//
// reference/hf-rope.md, sections 2.1 to 2.9 and 5.3. FLOAT32 is the order of operations of the
// frameworks' float32 code, with a correctly rounded pow. EXACT is the real number to some 220
// bits.
#ifndef POSENC_LIB_FAMILIES_ROPE_FREQUENCIES_H_
#define POSENC_LIB_FAMILIES_ROPE_FREQUENCIES_H_

#include <vector>

#include "lib/numeric/wide_float.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// [rotary_dim / 2], radians per position. REQUIRES: `rope` is canonical.
std::vector<float> RopeInvFreqFloat32(const v1::RopeSpec& rope);
std::vector<WideFloat> RopeInvFreqExact(const v1::RopeSpec& rope);

// The base of the geometric frequencies: rope_theta, or what dynamic and ntk make
// of it, in float64 as Python computes it.
double RopeBase(const v1::RopeSpec& rope);

// The same is said of these: how a POWER_OF_TWO base grows, and which list is in use.
double PowerOfTwoAlpha(const v1::DynamicScaling& dynamic);
const google::protobuf::RepeatedField<double>& LongRopeFactors(const v1::LongRopeScaling& longrope);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_ROPE_FREQUENCIES_H_
