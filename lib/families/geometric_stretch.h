// A bias table stretched to another window, as BEiT's fine-tuning does it: its samples
// stand at geometric coordinates (geometric_spacing.h), each side at its own, and are read
// at the integers from -new_size / 2 to new_size / 2. What lies beyond the last sample
// equals it.
//
//   CUBIC_SPLINE  along each side the spline through all samples: unilm, by SciPy's interp2d
//   BILINEAR      the two samples around: timm, by its RegularGridInterpolator
//
// reference/other-encodings.md, section 4.5.
#ifndef POSENC_LIB_FAMILIES_GEOMETRIC_STRETCH_H_
#define POSENC_LIB_FAMILIES_GEOMETRIC_STRETCH_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/families/cubic_spline.h"
#include "lib/families/grid_selection.h"
#include "lib/families/resample_taps.h"
#include "posenc/v1/learned.pb.h"

namespace posenc {

// The sides that a kernel can stretch begin here.
int64_t MinOffsets(v1::ResampleKernel kernel);

// One side.
class GeometricAxis {
 public:
  // REQUIRES: both odd; size >= MinOffsets(kernel); CUBIC_SPLINE or BILINEAR.
  GeometricAxis(int64_t size, int64_t new_size, v1::ResampleKernel kernel);

  // Sets the taps of output sample `output`: two, or one for every sample.
  // REQUIRES: output is in [0, new_size).
  void TapsOf(int64_t output, std::vector<Tap>* taps) const;

 private:
  int64_t new_size_;
  std::vector<double> coordinates_;    // [size]
  std::optional<CubicSpline> spline_;  // none: bilinear
};

// Both sides. Not thread-safe: it keeps the line of samples that a row of the new grid is
// made of, so a caller that goes row by row sums over the table once a row.
class GeometricStretch {
 public:
  // `table` is [from.height, from.width, d_model], and outlives this.
  GeometricStretch(std::span<const float> table, const PatchGrid& from, const PatchGrid& to,
                   v1::ResampleKernel kernel);

  // Writes the d_model values of patch `patch` of the new grid.
  void FillPatch(int64_t patch, std::span<double> out);

 private:
  void MakeLine(int64_t y);
  // Sums the rows of sums.size() values that taps_ name.
  template <typename Sample>
  void SumTaps(std::span<const Sample> rows, std::span<double> sums) const;

  std::span<const float> table_;
  int64_t new_width_;
  GeometricAxis y_axis_;
  GeometricAxis x_axis_;
  int64_t line_y_ = -1;       // the row of the new grid that line_ is of
  std::vector<double> line_;  // [from.width, d_model]
  std::vector<Tap> taps_;
};

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_GEOMETRIC_STRETCH_H_
