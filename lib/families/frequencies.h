// Frequencies of a run of columns, and the sines and cosines of one coordinate
// at all of them, in the bits of the output dtype.
//
// The encodings of grids are separable: a token's row is put together from one
// such run per axis, so a run is computed once per coordinate and then copied.
#ifndef POSENC_LIB_FAMILIES_FREQUENCIES_H_
#define POSENC_LIB_FAMILIES_FREQUENCIES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "lib/numeric/wide_float.h"
#include "posenc/v1/encoding.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Radians per unit of the coordinate. Immutable.
class Frequencies {
 public:
  Frequencies() = default;
  // FLOAT32: an angle is coordinate * frequency, rounded to float32.
  explicit Frequencies(std::vector<float> rounded) : rounded_(std::move(rounded)) {}
  // EXACT: the angle is the real product.
  explicit Frequencies(std::vector<WideFloat> exact) : exact_(std::move(exact)) {}

  size_t size() const { return rounded_.size() + exact_.size(); }
  size_t bytes() const {
    return rounded_.size() * sizeof(float) + exact_.size() * sizeof(WideFloat);
  }
  double at(size_t k) const;  // rounded

  // Writes sin and cos of coordinate * frequency k to element k of `sin` and
  // `cos`, size() elements each. FLOAT32: the coordinate is rounded to float32.
  // Thread-safe. REQUIRES: |coordinate * frequency| < 2^60.
  void SinCos(double coordinate, v1::DType dtype, std::byte* sin, std::byte* cos) const;

 private:
  std::vector<float> rounded_;  // one of the two is empty
  std::vector<WideFloat> exact_;
};

// base^(-k / denominator) for k in [0, count). FLOAT32 order: the exponent is
// divided in float32, then 1 / pow. REQUIRES: base > 0, denominator > 0.
Frequencies PowerFrequencies(double base, int64_t count, int64_t denominator,
                             v1::Arithmetic arithmetic);

// The same numbers; FLOAT32 order: exp(k * -(ln(base) / denominator)), where the
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
  // Valid as long as this object.
  Row At(double coordinate);

 private:
  const Frequencies& frequencies_;
  const v1::DType dtype_;
  std::map<double, std::vector<std::byte>> rows_;
};

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_FREQUENCIES_H_
