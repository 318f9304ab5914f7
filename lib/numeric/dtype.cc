#include "lib/numeric/dtype.h"

#include <bit>
#include <cmath>

namespace posenc {
namespace {

// To float32 by rounding to odd: an inexact result keeps its last bit set, so
// that a second rounding to fewer bits still sees on which side of a tie it lies.
float RoundToOdd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto bits = std::bit_cast<uint32_t>(nearest);
  const auto back = static_cast<double>(nearest);
  if (back == value || (bits & 1) != 0 || std::isnan(value)) return nearest;
  // An even neighbour: the odd one is a step away from or towards zero.
  return std::bit_cast<float>(std::fabs(back) < std::fabs(value) ? bits + 1 : bits - 1);
}

}  // namespace

uint16_t RoundToBf16(double value) { return RoundToBf16(RoundToOdd(value)); }

uint16_t RoundToF16(double value) { return RoundToF16(RoundToOdd(value)); }

float F16ToFloat(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

}  // namespace posenc
