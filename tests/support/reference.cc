#include "tests/support/reference.h"

namespace posenc::testing {
namespace {

constexpr mpfr_prec_t kPrecision = 600;

}  // namespace

Real::Real(double value) {
  mpfr_init2(value_, kPrecision);
  mpfr_set_d(value_, value, MPFR_RNDN);
}

Real::Real(const WideFloat& value) : Real(0.0) {
  if (value.is_zero()) return;
  for (size_t i = WideFloat::kLimbs; i-- > 0;) {
    mpfr_mul_2ui(value_, value_, 64, MPFR_RNDN);
    mpfr_add_ui(value_, value_, value.limbs()[i], MPFR_RNDN);
  }
  mpfr_mul_2si(value_, value_, value.exponent() - 64 * WideFloat::kLimbs, MPFR_RNDN);
  if (value.negative()) mpfr_neg(value_, value_, MPFR_RNDN);
}

Real Real::FromInt(int64_t value) {
  Real real;
  mpfr_set_si(real.value_, value, MPFR_RNDN);
  return real;
}

Real::Real(const Real& other) : Real(0.0) { mpfr_set(value_, other.value_, MPFR_RNDN); }

Real& Real::operator=(const Real& other) {
  if (this != &other) mpfr_set(value_, other.value_, MPFR_RNDN);
  return *this;
}

Real::~Real() { mpfr_clear(value_); }

Real Real::Pi() {
  Real pi;
  mpfr_const_pi(pi.value_, MPFR_RNDN);
  return pi;
}

Real operator+(const Real& a, const Real& b) {
  Real result;
  mpfr_add(result.value_, a.value_, b.value_, MPFR_RNDN);
  return result;
}

Real operator-(const Real& a, const Real& b) {
  Real result;
  mpfr_sub(result.value_, a.value_, b.value_, MPFR_RNDN);
  return result;
}

Real operator*(const Real& a, const Real& b) {
  Real result;
  mpfr_mul(result.value_, a.value_, b.value_, MPFR_RNDN);
  return result;
}

Real operator/(const Real& a, const Real& b) {
  Real result;
  mpfr_div(result.value_, a.value_, b.value_, MPFR_RNDN);
  return result;
}

bool operator<(const Real& a, const Real& b) { return mpfr_less_p(a.value_, b.value_) != 0; }

Real Real::operator-() const {
  Real result;
  mpfr_neg(result.value_, value_, MPFR_RNDN);
  return result;
}

double Real::RoundedTo(mpfr_prec_t precision, mpfr_exp_t min_exponent,
                       mpfr_exp_t max_exponent) const {
  const mpfr_exp_t old_min = mpfr_get_emin();
  const mpfr_exp_t old_max = mpfr_get_emax();
  mpfr_t rounded;
  mpfr_init2(rounded, precision);
  // MPFR counts a significand in [1/2, 1): the exponent of 2^e is e + 1.
  mpfr_set_emin(min_exponent + 1);
  mpfr_set_emax(max_exponent);
  int ternary = mpfr_set(rounded, value_, MPFR_RNDN);
  ternary = mpfr_check_range(rounded, ternary, MPFR_RNDN);
  mpfr_subnormalize(rounded, ternary, MPFR_RNDN);
  const double result = mpfr_get_d(rounded, MPFR_RNDN);
  mpfr_set_emin(old_min);
  mpfr_set_emax(old_max);
  mpfr_clear(rounded);
  return result;
}

double Real::ToDouble() const { return RoundedTo(53, -1074, 1024); }
float Real::ToFloat() const { return static_cast<float>(RoundedTo(24, -149, 128)); }
uint16_t Real::ToF16() const { return RoundToF16(static_cast<float>(RoundedTo(11, -24, 16))); }
uint16_t Real::ToBf16() const { return RoundToBf16(static_cast<float>(RoundedTo(8, -133, 128))); }

Real Abs(const Real& x) {
  Real result;
  mpfr_abs(result.value_, x.value_, MPFR_RNDN);
  return result;
}

Real Sqrt(const Real& x) {
  Real result;
  mpfr_sqrt(result.value_, x.value_, MPFR_RNDN);
  return result;
}

Real Exp(const Real& x) {
  Real result;
  mpfr_exp(result.value_, x.value_, MPFR_RNDN);
  return result;
}

Real Log(const Real& x) {
  Real result;
  mpfr_log(result.value_, x.value_, MPFR_RNDN);
  return result;
}

Real Pow(const Real& base, const Real& exponent) {
  Real result;
  mpfr_pow(result.value_, base.value_, exponent.value_, MPFR_RNDN);
  return result;
}

Real Sin(const Real& radians) {
  Real result;
  mpfr_sin(result.value_, radians.value_, MPFR_RNDN);
  return result;
}

Real Cos(const Real& radians) {
  Real result;
  mpfr_cos(result.value_, radians.value_, MPFR_RNDN);
  return result;
}

double RelativeError(const Real& value, const Real& exact) {
  const Real difference = Abs(value - exact);
  if (!(Real(0.0) < difference)) return 0.0;
  return (difference / Abs(exact)).ToDouble();
}

WideFloat ToWide(const Real& value) {
  WideFloat wide;
  for (int i = 0; i < 5; ++i) {  // 53 bits each
    wide = wide + WideFloat::From((value - Real(wide)).ToDouble());
  }
  return wide;
}

}  // namespace posenc::testing
