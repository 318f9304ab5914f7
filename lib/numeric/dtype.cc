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

uint16_t RoundToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  const uint32_t lowest_kept = (bits >> 16) & 1;
  return static_cast<uint16_t>((bits + 0x7fff + lowest_kept) >> 16);
}

uint16_t RoundToBf16(double value) { return RoundToBf16(RoundToOdd(value)); }

uint16_t RoundToF16(double value) { return RoundToF16(RoundToOdd(value)); }

float Bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

uint16_t RoundToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // >= 65520
  if (magnitude < 0x38800000) {
    // Subnormal in float16: adding 0.5 makes the float unit do the rounding at 2^-24.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
  }
  const uint32_t lowest_kept = (magnitude >> 13) & 1;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xfff + lowest_kept) >> 13));
}

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
