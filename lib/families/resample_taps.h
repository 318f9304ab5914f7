// Resampling along one axis: which source samples an output sample is made of, and
// with what weights, as torch's interpolate has them.
//
//   source position   size / new_size (o + 1/2) - 1/2, or with align_corners
//                     o (size - 1) / (new_size - 1)
//   bicubic           4 taps around it, Keys' kernel with a = -0.75, edges repeated
//   bilinear          2 taps; positions before the first sample are the first
//   antialias         the kernel (bicubic: a = -0.5) stretched by size / new_size when that
//                     is above 1, taps outside dropped, weights scaled to sum to 1
//
// Positions are kept as exact fractions, so that none is on the wrong side of a sample.
// reference/other-encodings.md, section 5.2.
#ifndef POSENC_LIB_FAMILIES_RESAMPLE_TAPS_H_
#define POSENC_LIB_FAMILIES_RESAMPLE_TAPS_H_

#include <cstdint>
#include <vector>

#include "posenc/v1/learned.pb.h"

namespace posenc {

struct ResampleAxis {
  int64_t size = 1;                                         // samples; >= 1
  int64_t new_size = 1;                                     // >= 1
  v1::ResampleKernel kernel = v1::RESAMPLE_KERNEL_BICUBIC;  // or BILINEAR
  bool antialias = false;
  bool align_corners = false;  // not with the next or the one before
  double scale_offset = 0;     // steps of size / (new_size + scale_offset)
};

struct Tap {
  int64_t index = 0;  // in [0, size)
  double weight = 0;
};

// The taps of output sample `output`, by ascending source position. Without antialias
// always 4 (bicubic) or 2 (bilinear), indexes clamped to the edges and so perhaps
// equal. REQUIRES: output is in [0, new_size).
void TapsOf(const ResampleAxis& axis, int64_t output, std::vector<Tap>* taps);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_RESAMPLE_TAPS_H_
