// Frequencies of a run of columns, and the sines and cosines of one coordinate
// at all of them, in the bits of the output dtype.
//
// The encodings of grids are separable: a token's row is put together from one
// such run per axis, so a run is computed once per coordinate and then copied.
#ifndef POSENC_LIB_FAMILIES_FREQUENCIES_H_
#define POSENC_LIB_FAMILIES_FREQUENCIES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/numeric/angle.h"
#include "lib/numeric/wide_float.h"
#include "posenc/v1/encoding.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// How FLOAT32 code gets from a coordinate to an angle; every step is rounded.
enum class AngleRule {
  kProduct,        // coordinate * frequency
  kQuotient,       // coordinate / period
  kProductTimesPi  // pi * (coordinate * frequency), pi in float32
};

// Immutable.
class Frequencies {
 public:
  Frequencies() = default;
  // FLOAT32. `rounded` are frequencies in radians per unit of the coordinate, or
  // periods, or frequencies in half turns, as the rule wants.
  // Angles, sines and cosines are rounded to `compute_dtype`.
  explicit Frequencies(std::vector<float> rounded, AngleRule rule = AngleRule::kProduct,
                       v1::ComputeDType compute_dtype = v1::COMPUTE_DTYPE_F32)
      : rule_(rule), compute_dtype_(compute_dtype), rounded_(std::move(rounded)) {}
  // EXACT: radians per unit; the angle is the real product.
  explicit Frequencies(const std::vector<WideFloat>& exact) : exact_(exact.begin(), exact.end()) {}

  size_t size() const { return rounded_.size() + exact_.size(); }
  size_t bytes() const {
    return rounded_.size() * sizeof(float) + exact_.size() * sizeof(ExactFrequency);
  }
  // Radians per unit, rounded.
  double at(size_t k) const;
  // The same as an element of a tensor, rounded once.
  void Store(size_t k, v1::DType dtype, std::byte* out) const;

  // Writes sin and cos of the angle at frequency k to element k of `sin` and
  // `cos`, size() elements each. FLOAT32 rounds the coordinate to float32 first.
  // Thread-safe. REQUIRES: the angle is below 2^100.
  void SinCos(const WideFloat& coordinate, v1::DType dtype, std::byte* sin, std::byte* cos) const;

  // The same of one frequency.
  void SinCosAt(size_t k, const WideFloat& coordinate, v1::DType dtype, std::byte* sin,
                std::byte* cos) const;

 private:
  // A coordinate as the arithmetics want it, taken apart once for all frequencies.
  struct Coordinate {
    const WideFloat& exact;
    float rounded;
    double number;
    bool is_number;  // exact is a float64: `number`

    explicit Coordinate(const WideFloat& coordinate);
  };

  float Angle(float coordinate, size_t k) const;
  void SinCosAt(size_t k, const Coordinate& coordinate, v1::DType dtype, std::byte* sin,
                std::byte* cos) const;
  template <typename Element>
  void SinCosAs(size_t k, const Coordinate& coordinate, std::byte* sin, std::byte* cos) const;

  AngleRule rule_ = AngleRule::kProduct;
  v1::ComputeDType compute_dtype_ = v1::COMPUTE_DTYPE_F32;
  std::vector<float> rounded_;  // one of the two is empty
  std::vector<ExactFrequency> exact_;
};

// base^(-k / denominator) for k in [0, count). FLOAT32 order: the exponent is
// divided in float32, then 1 / pow. REQUIRES: base > 0, denominator > 0.
Frequencies PowerFrequencies(double base, int64_t count, int64_t denominator,
                             v1::Arithmetic arithmetic);

// Every stride-th of them, from `first` on: k = first, first + stride, ...
Frequencies StridedPowerFrequencies(double base, int64_t first, int64_t stride, int64_t count,
                                    int64_t denominator, v1::Arithmetic arithmetic);

// The same numbers. FLOAT32 order: angles are coordinate / base^(k / denominator), each
// step rounded to `compute_dtype`.
Frequencies PowerPeriods(double base, int64_t count, int64_t denominator, v1::Arithmetic arithmetic,
                         v1::ComputeDType compute_dtype = v1::COMPUTE_DTYPE_F32);

// The same numbers. FLOAT32 order: exp(k * -(ln(base) / denominator)), where the
// quotient is computed in float64 and rounded to float32.
Frequencies ExpFrequencies(double base, int64_t count, int64_t denominator,
                           v1::Arithmetic arithmetic);

// What SinCos gives for the coordinates of one axis, each computed when it is
// first asked for. Not thread-safe: made for one Fill.
class SinCosRows {
 public:
  SinCosRows(const Frequencies& frequencies, v1::DType dtype)
      : frequencies_(frequencies), dtype_(dtype) {}

  struct Row {
    std::span<const std::byte> sin;
    std::span<const std::byte> cos;
  };
  // `key` names the coordinate. Valid as long as this object.
  Row At(int64_t key, const WideFloat& coordinate);

 private:
  const Frequencies& frequencies_;
  const v1::DType dtype_;
  std::unordered_map<int64_t, std::vector<std::byte>> rows_;
};

// Writes sin(angle 0), cos(angle 0), sin(angle 1), ... as DETR interleaves them.
// REQUIRES: out holds both.
void WriteInterleaved(const SinCosRows::Row& row, v1::DType dtype, std::span<std::byte> out);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_FREQUENCIES_H_
