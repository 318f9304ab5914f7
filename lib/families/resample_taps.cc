#include "lib/families/resample_taps.h"

#include <algorithm>
#include <cmath>

namespace posenc {
namespace {

constexpr double kBicubicA = -0.75;
constexpr double kAntialiasBicubicA = -0.5;  // PIL's

// A position between samples floor and floor + 1, in [0, 1) from the first.
struct SourcePosition {
  int64_t floor = 0;
  double fraction = 0;
};

SourcePosition FromRatio(int64_t numerator, int64_t denominator) {
  int64_t floor = numerator / denominator;
  int64_t rest = numerator % denominator;
  if (rest < 0) {
    --floor;
    rest += denominator;
  }
  return {floor, static_cast<double>(rest) / static_cast<double>(denominator)};
}

SourcePosition PositionOf(const ResampleAxis& axis, int64_t output) {
  if (axis.align_corners) {
    return FromRatio(output * (axis.size - 1), std::max<int64_t>(axis.new_size - 1, 1));
  }
  if (axis.scale_offset == 0) {
    return FromRatio((2 * output + 1) * axis.size - axis.new_size, 2 * axis.new_size);
  }
  const double step =
      static_cast<double>(axis.size) / (static_cast<double>(axis.new_size) + axis.scale_offset);
  const double position = step * (static_cast<double>(output) + 0.5) - 0.5;
  const double floor = std::floor(position);
  return {static_cast<int64_t>(floor), position - floor};
}

// Keys' cubic convolution kernel at x >= 0.
double Cubic(double x, double a) {
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

double Triangle(double x) { return x < 1 ? 1 - x : 0; }

void AddClamped(const ResampleAxis& axis, int64_t index, double weight, std::vector<Tap>* taps) {
  taps->push_back({std::clamp<int64_t>(index, 0, axis.size - 1), weight});
}

void InterpolatingTaps(const ResampleAxis& axis, int64_t output, std::vector<Tap>* taps) {
  const auto [floor, t] = PositionOf(axis, output);
  if (axis.kernel == v1::RESAMPLE_KERNEL_BILINEAR) {
    const double weight = floor < 0 ? 0 : t;  // before the first sample is the first
    AddClamped(axis, std::max<int64_t>(floor, 0), 1 - weight, taps);
    AddClamped(axis, std::max<int64_t>(floor, 0) + 1, weight, taps);
    return;
  }
  AddClamped(axis, floor - 1, Cubic(1 + t, kBicubicA), taps);
  AddClamped(axis, floor, Cubic(t, kBicubicA), taps);
  AddClamped(axis, floor + 1, Cubic(1 - t, kBicubicA), taps);
  AddClamped(axis, floor + 2, Cubic(2 - t, kBicubicA), taps);
}

void AntialiasTaps(const ResampleAxis& axis, int64_t output, std::vector<Tap>* taps) {
  const bool bicubic = axis.kernel == v1::RESAMPLE_KERNEL_BICUBIC;
  const double step =
      static_cast<double>(axis.size) / (static_cast<double>(axis.new_size) + axis.scale_offset);
  const double stretch = std::max(step, 1.0);
  const double support = (bicubic ? 2 : 1) * stretch;
  const double center = step * (static_cast<double>(output) + 0.5);
  const auto begin = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
  const auto end = std::min<int64_t>(static_cast<int64_t>(center + support + 0.5), axis.size);
  double sum = 0;
  for (int64_t index = begin; index < end; ++index) {
    const double x = std::fabs((static_cast<double>(index) - center + 0.5) / stretch);
    const double weight = bicubic ? Cubic(x, kAntialiasBicubicA) : Triangle(x);
    taps->push_back({index, weight});
    sum += weight;
  }
  for (Tap& tap : *taps) tap.weight /= sum;
}

}  // namespace

void TapsOf(const ResampleAxis& axis, int64_t output, std::vector<Tap>* taps) {
  taps->clear();
  if (axis.antialias) {
    AntialiasTaps(axis, output, taps);
  } else {
    InterpolatingTaps(axis, output, taps);
  }
}

}  // namespace posenc
