// The element types of tables, as bits: float32 and float64 are the machine's,
// float16 (binary16) and bfloat16 are 16-bit patterns made here.
#ifndef POSENC_LIB_NUMERIC_DTYPE_H_
#define POSENC_LIB_NUMERIC_DTYPE_H_

#include <bit>
#include <cstdint>

namespace posenc {

// float32 to the nearest value of the 16-bit type, ties to even. NaN stays a
// (quiet) NaN; float16 overflows to infinity from 65520 on. Without branches, so that
// a loop over them becomes vector code.
inline uint16_t RoundToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  return static_cast<uint16_t>(is_nan ? (bits >> 16) | 0x40 : rounded);
}

inline uint16_t RoundToF16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffff;
  const uint32_t normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Subnormal in float16: adding 0.5 makes the float unit do the rounding at 2^-24.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  const uint32_t subnormal = std::bit_cast<uint32_t>(shifted) - 0x3f000000;
  uint32_t rounded = magnitude < 0x38800000 ? subnormal : normal;
  rounded = magnitude >= 0x477ff000 ? 0x7c00 : rounded;  // >= 65520
  rounded = magnitude > 0x7f800000 ? 0x7e00 : rounded;
  return static_cast<uint16_t>(((bits >> 16) & 0x8000) | rounded);
}

// float64 to the 16-bit type in one rounding: by way of float32 a tie of the
// second rounding could be one that the first has made.
uint16_t RoundToBf16(double value);
uint16_t RoundToF16(double value);

// Exact.
inline float Bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
float F16ToFloat(uint16_t bits);

// The 16-bit element types, to overload on.
struct F16 {
  uint16_t bits = 0;
  friend bool operator==(const F16&, const F16&) = default;
};
struct Bf16 {
  uint16_t bits = 0;
  friend bool operator==(const Bf16&, const Bf16&) = default;
};

// A number to the nearest element, ties to even, in one rounding.
template <typename Element, typename Number>
Element RoundTo(Number value) = delete;

template <>
inline double RoundTo<double>(double value) {
  return value;
}
template <>
inline float RoundTo<float>(double value) {
  return static_cast<float>(value);
}
template <>
inline F16 RoundTo<F16>(double value) {
  return {RoundToF16(value)};
}
template <>
inline Bf16 RoundTo<Bf16>(double value) {
  return {RoundToBf16(value)};
}
template <>
inline double RoundTo<double>(float value) {
  return static_cast<double>(value);
}
template <>
inline float RoundTo<float>(float value) {
  return value;
}
template <>
inline F16 RoundTo<F16>(float value) {
  return {RoundToF16(value)};
}
template <>
inline Bf16 RoundTo<Bf16>(float value) {
  return {RoundToBf16(value)};
}

// Ziv's test: rounds `value`, known to within `error`. False if the error leaves it open.
template <typename Element>
bool RoundIfSafe(double value, double error, Element* out) {
  *out = RoundTo<Element>(value - error);
  return *out == RoundTo<Element>(value + error);
}

}  // namespace posenc

#endif  // POSENC_LIB_NUMERIC_DTYPE_H_
