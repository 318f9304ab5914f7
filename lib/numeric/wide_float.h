// WideFloat: a software float with a 256-bit significand.
//
// The slow, obviously right engine of the numeric core: every fast path falls
// back to it where a double cannot tell which way to round. It has no libm in
// it, so its bits are the same on every machine.
//
// A WideFloat is zero or ±m·2^(exponent-256) with 2^255 <= m < 2^256, that is a
// magnitude in [2^(exponent-1), 2^exponent). There is no infinity and no NaN:
// callers check their input, and the exponent is an int64.
#ifndef POSENC_LIB_NUMERIC_WIDE_FLOAT_H_
#define POSENC_LIB_NUMERIC_WIDE_FLOAT_H_

#include <array>
#include <cstdint>

#include "lib/numeric/dtype.h"

namespace posenc {

// Relative error of one +, -, *, / or Sqrt. The operations truncate, so that
// each is off by at most a few units of the last of the 256 bits.
inline constexpr double kWideOpError = 0x1p-252;

// The conversions below round to nearest, ties to even, after they have rounded
// to this many bits. So a value that is off by less than 2^-224 (relative) from
// a tie, or from a number of the target type, is taken for it: exact results
// of inexact arithmetic round as exact ones.
inline constexpr int kWideRoundingBits = 224;

class WideFloat {
 public:
  static constexpr int kLimbs = 4;
  using Limbs = std::array<uint64_t, kLimbs>;  // least significant first

  constexpr WideFloat() = default;  // zero
  constexpr WideFloat(bool negative, int64_t exponent, const Limbs& limbs)
      : limbs_(limbs), exponent_(exponent), negative_(negative) {}

  // Exact. REQUIRES: value is finite.
  static WideFloat From(double value);
  static WideFloat FromInt(int64_t value);

  bool is_zero() const { return limbs_[kLimbs - 1] == 0; }
  bool negative() const { return negative_; }
  int64_t exponent() const { return exponent_; }
  const Limbs& limbs() const { return limbs_; }

  WideFloat operator-() const;
  friend WideFloat operator+(const WideFloat& a, const WideFloat& b);
  friend WideFloat operator-(const WideFloat& a, const WideFloat& b) { return a + (-b); }
  friend WideFloat operator*(const WideFloat& a, const WideFloat& b);
  // REQUIRES: b is not zero.
  friend WideFloat operator/(const WideFloat& a, const WideFloat& b);
  friend bool operator<(const WideFloat& a, const WideFloat& b) { return (a - b).negative(); }
  friend bool operator>(const WideFloat& a, const WideFloat& b) { return b < a; }
  friend bool operator<=(const WideFloat& a, const WideFloat& b) { return !(b < a); }
  friend bool operator>=(const WideFloat& a, const WideFloat& b) { return !(a < b); }
  friend bool operator==(const WideFloat& a, const WideFloat& b) { return (a - b).is_zero(); }

  WideFloat Abs() const { return negative_ ? -*this : *this; }
  WideFloat TimesPowerOf2(int64_t power) const;  // exact
  // REQUIRES: divisor > 0.
  WideFloat DividedBy(uint64_t divisor) const;
  // What is left of a number when its integer part is taken away; keeps the
  // sign. Exact.
  WideFloat Fraction() const;
  // Rounded down. REQUIRES: |value| < 2^62.
  int64_t Floor() const;

  // To the nearest number of the type, ties to even (see kWideRoundingBits);
  // subnormals are rounded once, overflow gives infinity.
  double ToDouble() const;
  float ToFloat() const;
  uint16_t ToF16() const;   // binary16 bits
  uint16_t ToBf16() const;  // bfloat16 bits

 private:
  WideFloat Rounded(int bits) const;
  double RoundedTo(int precision, int64_t min_exponent, int64_t max_exponent) const;

  Limbs limbs_ = {};
  int64_t exponent_ = 0;
  bool negative_ = false;
};

// To the element type of a table.
template <typename Element>
Element RoundWideTo(const WideFloat& value) = delete;
template <>
inline double RoundWideTo<double>(const WideFloat& value) {
  return value.ToDouble();
}
template <>
inline float RoundWideTo<float>(const WideFloat& value) {
  return value.ToFloat();
}
template <>
inline F16 RoundWideTo<F16>(const WideFloat& value) {
  return {value.ToF16()};
}
template <>
inline Bf16 RoundWideTo<Bf16>(const WideFloat& value) {
  return {value.ToBf16()};
}

// REQUIRES: value >= 0.
WideFloat Sqrt(const WideFloat& value);

}  // namespace posenc

#endif  // POSENC_LIB_NUMERIC_WIDE_FLOAT_H_
