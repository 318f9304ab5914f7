#include "lib/families/geometric_stretch.h"

#include <algorithm>
#include <cstddef>

#include "lib/families/add_scaled.h"
#include "lib/families/geometric_spacing.h"

namespace posenc {

int64_t MinOffsets(v1::ResampleKernel kernel) {
  if (kernel == v1::RESAMPLE_KERNEL_BILINEAR) return 1;
  return int64_t{CubicSpline::kMinSamples} + 1;  // sides are odd
}

GeometricAxis::GeometricAxis(int64_t size, int64_t new_size, v1::ResampleKernel kernel)
    : new_size_(new_size), coordinates_(GeometricCoordinates(size, new_size)) {
  if (kernel == v1::RESAMPLE_KERNEL_CUBIC_SPLINE) spline_.emplace(coordinates_);
}

void GeometricAxis::TapsOf(int64_t output, std::vector<Tap>* taps) const {
  if (coordinates_.size() == 1) return taps->assign(1, {.index = 0, .weight = 1.0});
  const double x = std::clamp(static_cast<double>(output - new_size_ / 2), coordinates_.front(),
                              coordinates_.back());
  const auto right = std::upper_bound(coordinates_.begin() + 1, coordinates_.end() - 1, x);
  const auto left = static_cast<size_t>(right - coordinates_.begin()) - 1;
  if (spline_.has_value()) return spline_->TapsAt(left, x, taps);
  const double step = *right - coordinates_[left];
  const auto index = static_cast<int64_t>(left);
  *taps = {{index, (*right - x) / step}, {index + 1, (x - coordinates_[left]) / step}};
}

GeometricStretch::GeometricStretch(std::span<const float> table, const PatchGrid& from,
                                   const PatchGrid& to, v1::ResampleKernel kernel)
    : table_(table),
      new_width_(to.width),
      y_axis_(from.height, to.height, kernel),
      x_axis_(from.width, to.width, kernel),
      line_(table.size() / static_cast<size_t>(from.height)) {}

void GeometricStretch::FillPatch(int64_t patch, std::span<double> out) {
  if (patch / new_width_ != line_y_) MakeLine(patch / new_width_);
  x_axis_.TapsOf(patch % new_width_, &taps_);
  SumTaps(std::span<const double>(line_), out);
}

void GeometricStretch::MakeLine(int64_t y) {
  y_axis_.TapsOf(y, &taps_);
  SumTaps(table_, std::span(line_));
  line_y_ = y;
}

template <typename Sample>
void GeometricStretch::SumTaps(std::span<const Sample> rows, std::span<double> sums) const {
  std::fill(sums.begin(), sums.end(), 0.0);
  for (const Tap& tap : taps_) {
    if (tap.weight == 0) continue;
    AddScaled(tap.weight, rows.subspan(static_cast<size_t>(tap.index) * sums.size(), sums.size()),
              sums);
  }
}

}  // namespace posenc
