#include "lib/families/cubic_spline.h"

#include <cstdint>
#include <utility>

namespace posenc {

// The second derivatives M at the samples y solve, for each inner sample i,
//
//   h[i-1] M[i-1] + 2 (h[i-1] + h[i]) M[i] + h[i] M[i+1]
//       = 6 ((y[i+1] - y[i]) / h[i] - (y[i] - y[i-1]) / h[i-1])
//
// and not-a-knot makes those of the ends M[0] = (1 + r) M[1] - r M[2], r = h[0] / h[1], and
// its mirror image. With these put in, each row's diagonal exceeds the rest of the row, so
// elimination needs no pivoting.
CubicSpline::CubicSpline(std::vector<double> coordinates)
    : coordinates_(std::move(coordinates)),
      steps_(last()),
      lower_(last() + 1),
      upper_(last() + 1),
      pivots_(last() + 1) {
  for (size_t i = 0; i < last(); ++i) steps_[i] = coordinates_[i + 1] - coordinates_[i];
  for (size_t i = 1; i < last(); ++i) {
    lower_[i] = steps_[i - 1];
    upper_[i] = steps_[i];
    pivots_[i] = 2 * (steps_[i - 1] + steps_[i]);
  }
  first_ratio_ = steps_[0] / steps_[1];
  pivots_[1] += steps_[0] * (1 + first_ratio_);
  upper_[1] -= steps_[0] * first_ratio_;
  last_ratio_ = steps_[last() - 1] / steps_[last() - 2];
  pivots_[last() - 1] += steps_[last() - 1] * (1 + last_ratio_);
  lower_[last() - 1] -= steps_[last() - 1] * last_ratio_;
  for (size_t i = 2; i < last(); ++i) pivots_[i] -= lower_[i] * upper_[i - 1] / pivots_[i - 1];
}

// Between two samples, with a = (x[left+1] - x) / h and b = 1 - a, the spline is
//
//   a y[left] + b y[left+1] + h^2 / 6 ((a^3 - a) M[left] + (b^3 - b) M[left+1]).
//
// M is T^-1 R y, for the system T M = R y above, so what M adds to the weights is
// R^T T^-T c: one solution of the transposed system, whatever y.
void CubicSpline::TapsAt(size_t left, double x, std::vector<Tap>* taps) const {
  const double h = steps_[left];
  const double a = (coordinates_[left + 1] - x) / h;
  const double b = (x - coordinates_[left]) / h;
  taps->resize(last() + 1);
  for (size_t i = 0; i <= last(); ++i) (*taps)[i] = {static_cast<int64_t>(i), 0.0};
  (*taps)[left].weight = a;
  (*taps)[left + 1].weight = b;
  if (a == 0 || b == 0) return;

  std::vector<double> z(last() + 1);  // c, then T^-T c
  z[left] = h * h / 6 * (a * a * a - a);
  z[left + 1] = h * h / 6 * (b * b * b - b);
  z[1] += z[0] * (1 + first_ratio_);
  z[2] -= z[0] * first_ratio_;
  z[last() - 1] += z[last()] * (1 + last_ratio_);
  z[last() - 2] -= z[last()] * last_ratio_;
  for (size_t i = 2; i < last(); ++i) z[i] -= upper_[i - 1] / pivots_[i - 1] * z[i - 1];
  z[last() - 1] /= pivots_[last() - 1];
  for (size_t i = last() - 2; i > 0; --i) z[i] = (z[i] - lower_[i + 1] * z[i + 1]) / pivots_[i];

  for (size_t i = 1; i < last(); ++i) {
    const double before = 6 * z[i] / steps_[i - 1];
    const double after = 6 * z[i] / steps_[i];
    (*taps)[i - 1].weight += before;
    (*taps)[i].weight -= before + after;
    (*taps)[i + 1].weight += after;
  }
}

}  // namespace posenc
