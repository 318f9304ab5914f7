// The cubic spline through samples at given coordinates, with not-a-knot ends: its third
// derivative is continuous at the second sample and at the last but one too. It is what
// FITPACK's regrid_smth makes of each side of a table when it is to smooth nothing.
//
// It is linear in the samples: a value read from it is a sum of all of them, with weights
// that depend on coordinates alone, so they serve every column of a table.
// reference/other-encodings.md, section 4.5; de Boor, A Practical Guide to Splines, IV.
#ifndef POSENC_LIB_FAMILIES_CUBIC_SPLINE_H_
#define POSENC_LIB_FAMILIES_CUBIC_SPLINE_H_

#include <cstddef>
#include <vector>

#include "lib/families/resample_taps.h"

namespace posenc {

class CubicSpline {
 public:
  // Fewer samples do not make a not-a-knot spline.
  static constexpr size_t kMinSamples = 4;

  // REQUIRES: kMinSamples or more coordinates, ascending. O(samples).
  explicit CubicSpline(std::vector<double> coordinates);

  // Sets the taps of the value at x, one for every sample in order; at a sample its own
  // weight is 1 and the others 0. REQUIRES: coordinates[left] <= x <= coordinates[left + 1].
  // O(samples).
  void TapsAt(size_t left, double x, std::vector<Tap>* taps) const;

 private:
  size_t last() const { return coordinates_.size() - 1; }

  std::vector<double> coordinates_;
  std::vector<double> steps_;  // [samples - 1], h[i] = coordinates[i + 1] - coordinates[i]
  double first_ratio_;         // r of the not-a-knot ends below
  double last_ratio_;
  // Row i, of sample i, of the system below; [samples], those of the two ends unused.
  std::vector<double> lower_;
  std::vector<double> upper_;
  std::vector<double> pivots_;  // of its elimination
};

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_CUBIC_SPLINE_H_
