// Real: a number with 600 bits, on MPFR. What every fast path is tested against.
//
// MPFR rounds each operation correctly, so a formula written with Reals is right
// to about 590 bits, and a conversion rounds it once, ties to even.
#ifndef POSENC_TESTS_SUPPORT_REFERENCE_H_
#define POSENC_TESTS_SUPPORT_REFERENCE_H_

#include <mpfr.h>

#include <cstdint>

#include "lib/numeric/dtype.h"
#include "lib/numeric/wide_float.h"

namespace posenc::testing {

class Real {
 public:
  Real() : Real(0.0) {}
  Real(double value);                     // exact; implicit: formulas mix the two
  explicit Real(const WideFloat& value);  // exact
  static Real FromInt(int64_t value);     // exact
  Real(const Real& other);
  Real& operator=(const Real& other);
  ~Real();

  static Real Pi();

  friend Real operator+(const Real& a, const Real& b);
  friend Real operator-(const Real& a, const Real& b);
  friend Real operator*(const Real& a, const Real& b);
  friend Real operator/(const Real& a, const Real& b);
  friend bool operator<(const Real& a, const Real& b);
  Real operator-() const;

  // Once, to nearest, ties to even; subnormals and overflow as IEEE 754 has them.
  double ToDouble() const;
  float ToFloat() const;
  uint16_t ToF16() const;   // binary16 bits
  uint16_t ToBf16() const;  // bfloat16 bits

  friend Real Abs(const Real& x);
  friend Real Sqrt(const Real& x);
  friend Real Exp(const Real& x);
  friend Real Log(const Real& x);
  friend Real Pow(const Real& base, const Real& exponent);
  friend Real Sin(const Real& radians);
  friend Real Cos(const Real& radians);

 private:
  // The nearest number with `precision` bits, multiples of 2^min_exponent below
  // 2^max_exponent or infinite.
  double RoundedTo(mpfr_prec_t precision, mpfr_exp_t min_exponent, mpfr_exp_t max_exponent) const;

  mpfr_t value_;
};

Real Abs(const Real& x);
Real Sqrt(const Real& x);
Real Exp(const Real& x);
Real Log(const Real& x);
Real Pow(const Real& base, const Real& exponent);
Real Sin(const Real& radians);
Real Cos(const Real& radians);

// |value - exact| / |exact|; 0 when both are 0.
double RelativeError(const Real& value, const Real& exact);

// Rounded once to an element of a table.
template <typename Element>
Element RoundRealTo(const Real& value) = delete;
template <>
inline double RoundRealTo<double>(const Real& value) {
  return value.ToDouble();
}
template <>
inline float RoundRealTo<float>(const Real& value) {
  return value.ToFloat();
}
template <>
inline F16 RoundRealTo<F16>(const Real& value) {
  return {value.ToF16()};
}
template <>
inline Bf16 RoundRealTo<Bf16>(const Real& value) {
  return {value.ToBf16()};
}

// The nearest WideFloat, nearly: to 2^-250 of the value.
WideFloat ToWide(const Real& value);

}  // namespace posenc::testing

#endif  // POSENC_TESTS_SUPPORT_REFERENCE_H_
