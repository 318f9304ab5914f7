#include "lib/numeric/wide_float.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "lib/numeric/dtype.h"

namespace posenc {
namespace {

__extension__ using Uint128 = unsigned __int128;

constexpr int kLimbs = WideFloat::kLimbs;
constexpr int kBits = 64 * kLimbs;

// A significand on its way to being normalized: one more limb below.
using Guarded = std::array<uint64_t, kLimbs + 1>;

Guarded WithGuard(const WideFloat::Limbs& limbs) {
  return {0, limbs[0], limbs[1], limbs[2], limbs[3]};
}

template <size_t N>
bool AllZero(const std::array<uint64_t, N>& limbs) {
  for (const uint64_t limb : limbs) {
    if (limb != 0) return false;
  }
  return true;
}

// The bits that fall off are dropped.
template <size_t N>
std::array<uint64_t, N> ShiftRight(const std::array<uint64_t, N>& limbs, uint64_t count) {
  std::array<uint64_t, N> shifted = {};
  const uint64_t whole = count / 64;
  const unsigned part = count % 64;
  for (size_t i = 0; i + whole < N; ++i) {
    shifted[i] = limbs[i + whole] >> part;
    if (part != 0 && i + whole + 1 < N) shifted[i] |= limbs[i + whole + 1] << (64 - part);
  }
  return shifted;
}

template <size_t N>
std::array<uint64_t, N> ShiftLeft(const std::array<uint64_t, N>& limbs, uint64_t count) {
  std::array<uint64_t, N> shifted = {};
  const uint64_t whole = count / 64;
  const unsigned part = count % 64;
  for (size_t i = N; i-- > whole;) {
    shifted[i] = limbs[i - whole] << part;
    if (part != 0 && i > whole) shifted[i] |= limbs[i - whole - 1] >> (64 - part);
  }
  return shifted;
}

// a + b, and returns the carry.
template <size_t N>
uint64_t Add(const std::array<uint64_t, N>& a, const std::array<uint64_t, N>& b,
             std::array<uint64_t, N>* sum) {
  Uint128 carry = 0;
  for (size_t i = 0; i < N; ++i) {
    carry += Uint128{a[i]} + b[i];
    (*sum)[i] = static_cast<uint64_t>(carry);
    carry >>= 64;
  }
  return static_cast<uint64_t>(carry);
}

// a - b. REQUIRES: a >= b.
Guarded Subtract(const Guarded& a, const Guarded& b) {
  Guarded difference;
  uint64_t borrow = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const Uint128 subtrahend = Uint128{b[i]} + borrow;
    borrow = Uint128{a[i]} < subtrahend ? 1 : 0;
    difference[i] = static_cast<uint64_t>(Uint128{a[i]} - subtrahend);
  }
  return difference;
}

template <size_t N>
uint64_t LeadingZeros(const std::array<uint64_t, N>& limbs) {
  uint64_t zeros = 0;
  for (size_t i = N; i-- > 0;) {
    zeros += static_cast<uint64_t>(std::countl_zero(limbs[i]));
    if (limbs[i] != 0) break;
  }
  return zeros;
}

// The float whose significand is the top of `limbs`, truncated.
WideFloat Normalize(bool negative, int64_t exponent, const Guarded& limbs) {
  if (AllZero(limbs)) return WideFloat();
  const uint64_t zeros = LeadingZeros(limbs);
  const Guarded top = ShiftLeft(limbs, zeros);
  return WideFloat(negative, exponent - static_cast<int64_t>(zeros),
                   {top[1], top[2], top[3], top[4]});
}

bool SmallerMagnitude(const WideFloat& a, const WideFloat& b) {
  if (a.exponent() != b.exponent()) return a.exponent() < b.exponent();
  for (size_t i = kLimbs; i-- > 0;) {
    if (a.limbs()[i] != b.limbs()[i]) return a.limbs()[i] < b.limbs()[i];
  }
  return false;
}

// About 1 / value, to the 53 bits of a double.
WideFloat ReciprocalSeed(const WideFloat& value) {
  const double top = std::ldexp(static_cast<double>(value.limbs()[kLimbs - 1]), -64);
  const WideFloat seed = WideFloat::From(1.0 / top).TimesPowerOf2(-value.exponent());
  return value.negative() ? -seed : seed;
}

}  // namespace

WideFloat WideFloat::From(double value) {
  if (value == 0) return WideFloat();
  int exponent = 0;
  const double mantissa = std::frexp(std::fabs(value), &exponent);
  const auto top = static_cast<uint64_t>(std::ldexp(mantissa, 64));
  return WideFloat(value < 0, exponent, {0, 0, 0, top});
}

WideFloat WideFloat::FromInt(int64_t value) {
  const uint64_t magnitude =
      value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  return Normalize(value < 0, 64, {0, 0, 0, 0, magnitude});
}

WideFloat WideFloat::operator-() const {
  return is_zero() ? *this : WideFloat(!negative_, exponent_, limbs_);
}

WideFloat WideFloat::TimesPowerOf2(int64_t power) const {
  return is_zero() ? *this : WideFloat(negative_, exponent_ + power, limbs_);
}

WideFloat operator+(const WideFloat& a, const WideFloat& b) {
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  if (SmallerMagnitude(a, b)) return b + a;
  const Guarded large = WithGuard(a.limbs());
  const Guarded small =
      ShiftRight(WithGuard(b.limbs()), static_cast<uint64_t>(a.exponent() - b.exponent()));
  if (a.negative() != b.negative()) {
    // Bits of `small` are lost only when it is shifted by more than a limb, and
    // then at most one leading bit of the difference cancels.
    return Normalize(a.negative(), a.exponent(), Subtract(large, small));
  }
  Guarded sum;
  if (Add(large, small, &sum) == 0) return Normalize(a.negative(), a.exponent(), sum);
  sum = ShiftRight(sum, 1);
  sum[kLimbs] |= uint64_t{1} << 63;
  return Normalize(a.negative(), a.exponent() + 1, sum);
}

WideFloat operator*(const WideFloat& a, const WideFloat& b) {
  if (a.is_zero() || b.is_zero()) return WideFloat();
  std::array<uint64_t, 2 * kLimbs> product = {};
  for (size_t i = 0; i < kLimbs; ++i) {
    Uint128 carry = 0;
    for (size_t j = 0; j < kLimbs; ++j) {
      carry += Uint128{a.limbs()[i]} * b.limbs()[j] + product[i + j];
      product[i + j] = static_cast<uint64_t>(carry);
      carry >>= 64;
    }
    product[i + kLimbs] = static_cast<uint64_t>(carry);
  }
  // The product of two numbers in [1/2, 1) is at least 1/4: one bit to shift, at most.
  return Normalize(a.negative() != b.negative(), a.exponent() + b.exponent(),
                   {product[3], product[4], product[5], product[6], product[7]});
}

WideFloat operator/(const WideFloat& a, const WideFloat& b) {
  // Newton doubles the 52 right bits of the seed three times; the last step
  // works on the quotient itself and makes up for the rounding of the others.
  const WideFloat one = WideFloat::From(1.0);
  WideFloat reciprocal = ReciprocalSeed(b);
  for (int i = 0; i < 3; ++i) reciprocal = reciprocal + reciprocal * (one - b * reciprocal);
  const WideFloat quotient = a * reciprocal;
  return quotient + reciprocal * (a - b * quotient);
}

WideFloat WideFloat::DividedBy(uint64_t divisor) const {
  Guarded quotient = {};
  Uint128 remainder = 0;
  const Guarded dividend = WithGuard(limbs_);
  for (size_t i = dividend.size(); i-- > 0;) {
    remainder = (remainder << 64) | dividend[i];
    quotient[i] = static_cast<uint64_t>(remainder / divisor);
    remainder %= divisor;
  }
  return Normalize(negative_, exponent_, quotient);
}

WideFloat WideFloat::Fraction() const {
  if (exponent_ <= 0) return *this;
  if (exponent_ >= kBits) return WideFloat();
  const Limbs below = ShiftLeft(limbs_, static_cast<uint64_t>(exponent_));
  return Normalize(negative_, 0, WithGuard(below));
}

int64_t WideFloat::Floor() const {
  if (is_zero()) return 0;
  if (exponent_ <= 0) return negative_ ? -1 : 0;
  const auto whole = static_cast<int64_t>(limbs_[kLimbs - 1] >> (64 - exponent_));
  if (!negative_) return whole;
  return Fraction().is_zero() ? -whole : -whole - 1;
}

// To the nearest multiple of 2^(exponent - bits), ties to even.
WideFloat WideFloat::Rounded(int bits) const {
  if (is_zero() || bits >= kBits) return *this;
  if (bits < 0) return WideFloat();
  const auto dropped = static_cast<uint64_t>(kBits - bits);
  if (bits == 0) {
    // Below half a unit, or at the tie, it is zero; above, one unit.
    const bool tie = limbs_ == Limbs{0, 0, 0, uint64_t{1} << 63};
    return tie ? WideFloat() : WideFloat(negative_, exponent_ + 1, {0, 0, 0, uint64_t{1} << 63});
  }
  constexpr uint64_t kTopBit = uint64_t{1} << 63;
  const Limbs tail = ShiftLeft(limbs_, static_cast<uint64_t>(bits));
  const Limbs truncated = ShiftLeft(ShiftRight(limbs_, dropped), dropped);
  const Limbs unit = ShiftLeft(Limbs{1, 0, 0, 0}, dropped);
  const bool odd = (truncated[dropped / 64] & unit[dropped / 64]) != 0;
  const bool tie = tail == Limbs{0, 0, 0, kTopBit};
  const bool up = tie ? odd : (tail[kLimbs - 1] & kTopBit) != 0;
  if (!up) return WideFloat(negative_, exponent_, truncated);
  Limbs sum;
  if (Add(truncated, unit, &sum) == 0) return WideFloat(negative_, exponent_, sum);
  return WideFloat(negative_, exponent_ + 1, {0, 0, 0, kTopBit});
}

// To a binary format with `precision` bits, whose smallest positive number is
// 2^min_exponent and whose numbers lie below 2^max_exponent.
double WideFloat::RoundedTo(int precision, int64_t min_exponent, int64_t max_exponent) const {
  const double sign = negative_ ? -1.0 : 1.0;
  const WideFloat value = Rounded(kWideRoundingBits);
  const int64_t bits = std::min<int64_t>(precision, value.exponent_ - min_exponent);
  const WideFloat rounded = value.Rounded(static_cast<int>(std::max<int64_t>(bits, -1)));
  if (rounded.is_zero()) return sign * 0.0;
  if (rounded.exponent_ > max_exponent) return sign * std::numeric_limits<double>::infinity();
  const double mantissa = static_cast<double>(rounded.limbs_[kLimbs - 1] >> 11);
  return sign * std::ldexp(mantissa, static_cast<int>(rounded.exponent_) - 53);
}

double WideFloat::ToDouble() const { return RoundedTo(53, -1074, 1024); }

float WideFloat::ToFloat() const { return static_cast<float>(RoundedTo(24, -149, 128)); }

// The second rounding, of a number that the type has, changes nothing.
uint16_t WideFloat::ToF16() const { return RoundToF16(static_cast<float>(RoundedTo(11, -24, 16))); }

uint16_t WideFloat::ToBf16() const {
  return RoundToBf16(static_cast<float>(RoundedTo(8, -133, 128)));
}

WideFloat Sqrt(const WideFloat& value) {
  if (value.is_zero()) return value;
  // Newton for 1/sqrt from a double, then once for the root itself.
  const int64_t half_exponent = value.exponent() >> 1;
  const WideFloat scaled = value.TimesPowerOf2(-2 * half_exponent);  // in [1/2, 2)
  const WideFloat one = WideFloat::From(1.0);
  WideFloat inverse = WideFloat::From(1.0 / std::sqrt(scaled.ToDouble()));
  for (int i = 0; i < 3; ++i) {
    inverse = inverse + inverse * (one - scaled * inverse * inverse).TimesPowerOf2(-1);
  }
  const WideFloat root = scaled * inverse;
  const WideFloat correction = inverse * (scaled - root * root).TimesPowerOf2(-1);
  return (root + correction).TimesPowerOf2(half_exponent);
}

}  // namespace posenc
