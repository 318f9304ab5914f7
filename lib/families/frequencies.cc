#include "lib/families/frequencies.h"

#include <cstring>

#include "lib/families/store.h"
#include "lib/numeric/dtype.h"
#include "lib/numeric/elementary.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

// base^(k / denominator), exponent and power in float32 or less.
float PowerF(double base, int64_t k, int64_t denominator,
             v1::ComputeDType compute_dtype = v1::COMPUTE_DTYPE_F32) {
  const float exponent =
      RoundToComputeDType(compute_dtype, static_cast<float>(k) / static_cast<float>(denominator));
  return RoundToComputeDType(compute_dtype, PowF(static_cast<float>(base), exponent));
}

Frequencies ExactPowers(double base, int64_t first, int64_t stride, int64_t count,
                        int64_t denominator) {
  const WideFloat log_base = Log(WideFloat::From(base));
  std::vector<WideFloat> exact;
  for (int64_t k = first; k < first + stride * count; k += stride) {
    const WideFloat exponent = WideFloat::FromInt(-k).DividedBy(static_cast<uint64_t>(denominator));
    exact.push_back(Exp(exponent * log_base));
  }
  return Frequencies(exact);
}

}  // namespace

double Frequencies::at(size_t k) const {
  if (rounded_.empty()) return exact_[k].wide().ToDouble();
  switch (rule_) {
    case AngleRule::kProduct:
      return static_cast<double>(rounded_[k]);
    case AngleRule::kQuotient:
      return static_cast<double>(1.0f / rounded_[k]);
    case AngleRule::kProductTimesPi:
      return static_cast<double>(kWidePi.ToFloat() * rounded_[k]);
  }
  return 0;
}

float Frequencies::Angle(float coordinate, size_t k) const {
  switch (rule_) {
    case AngleRule::kProduct:
      return coordinate * rounded_[k];
    case AngleRule::kQuotient:
      return coordinate / rounded_[k];
    case AngleRule::kProductTimesPi:
      return kWidePi.ToFloat() * (coordinate * rounded_[k]);
  }
  return 0;
}

Frequencies::Coordinate::Coordinate(const WideFloat& coordinate)
    : exact(coordinate),
      rounded(coordinate.ToFloat()),
      number(coordinate.ToDouble()),
      is_number(WideFloat::From(number) == coordinate) {}

void Frequencies::SinCos(const WideFloat& coordinate, v1::DType dtype, std::byte* sin,
                         std::byte* cos) const {
  const Coordinate parts(coordinate);
  const auto step = static_cast<size_t>(ElementBytes(dtype));
  for (size_t k = 0; k < size(); ++k) SinCosAt(k, parts, dtype, sin + k * step, cos + k * step);
}

void Frequencies::SinCosAt(size_t k, const WideFloat& coordinate, v1::DType dtype, std::byte* sin,
                           std::byte* cos) const {
  SinCosAt(k, Coordinate(coordinate), dtype, sin, cos);
}

void Frequencies::SinCosAt(size_t k, const Coordinate& coordinate, v1::DType dtype, std::byte* sin,
                           std::byte* cos) const {
  switch (dtype) {
    case v1::DTYPE_F64:
      return SinCosAs<double>(k, coordinate, sin, cos);
    case v1::DTYPE_F16:
      return SinCosAs<F16>(k, coordinate, sin, cos);
    case v1::DTYPE_BF16:
      return SinCosAs<Bf16>(k, coordinate, sin, cos);
    default:  // F32
      return SinCosAs<float>(k, coordinate, sin, cos);
  }
}

template <typename Element>
void Frequencies::SinCosAs(size_t k, const Coordinate& coordinate, std::byte* sin,
                           std::byte* cos) const {
  Element sin_element;
  Element cos_element;
  if (exact_.empty()) {
    const auto round = [&](float value) { return RoundToComputeDType(compute_dtype_, value); };
    const FloatSinCos value = SinCosF(round(Angle(coordinate.rounded, k)));
    sin_element = RoundTo<Element>(round(value.sin));
    cos_element = RoundTo<Element>(round(value.cos));
  } else if (coordinate.is_number) {
    exact_[k].SinCos(coordinate.number, &sin_element, &cos_element);
  } else {
    // A coordinate with more than 53 bits: the product is the frequency of 1.
    ExactFrequency(coordinate.exact * exact_[k].wide()).SinCos(1.0, &sin_element, &cos_element);
  }
  std::memcpy(sin, &sin_element, sizeof(Element));
  std::memcpy(cos, &cos_element, sizeof(Element));
}

void Frequencies::Store(size_t k, v1::DType dtype, std::byte* out) const {
  if (exact_.empty()) return StoreElement(static_cast<float>(at(k)), dtype, out);
  StoreElement(exact_[k].wide(), dtype, out);
}

Frequencies PowerFrequencies(double base, int64_t count, int64_t denominator,
                             v1::Arithmetic arithmetic) {
  return StridedPowerFrequencies(base, 0, 1, count, denominator, arithmetic);
}

Frequencies StridedPowerFrequencies(double base, int64_t first, int64_t stride, int64_t count,
                                    int64_t denominator, v1::Arithmetic arithmetic) {
  if (arithmetic == v1::ARITHMETIC_EXACT) {
    return ExactPowers(base, first, stride, count, denominator);
  }
  std::vector<float> rounded;
  for (int64_t k = first; k < first + stride * count; k += stride) {
    rounded.push_back(1.0f / PowerF(base, k, denominator));
  }
  return Frequencies(std::move(rounded));
}

Frequencies PowerPeriods(double base, int64_t count, int64_t denominator, v1::Arithmetic arithmetic,
                         v1::ComputeDType compute_dtype) {
  if (arithmetic == v1::ARITHMETIC_EXACT) return ExactPowers(base, 0, 1, count, denominator);
  std::vector<float> rounded;
  for (int64_t k = 0; k < count; ++k) {
    rounded.push_back(PowerF(base, k, denominator, compute_dtype));
  }
  return Frequencies(std::move(rounded), AngleRule::kQuotient, compute_dtype);
}

Frequencies ExpFrequencies(double base, int64_t count, int64_t denominator,
                           v1::Arithmetic arithmetic) {
  if (arithmetic == v1::ARITHMETIC_EXACT) return ExactPowers(base, 0, 1, count, denominator);
  const auto step = static_cast<float>(-(Log(base) / static_cast<double>(denominator)));
  std::vector<float> rounded;
  for (int64_t k = 0; k < count; ++k) rounded.push_back(ExpF(static_cast<float>(k) * step));
  return Frequencies(std::move(rounded));
}

SinCosRows::Row SinCosRows::At(int64_t key, const WideFloat& coordinate) {
  const size_t half = frequencies_.size() * static_cast<size_t>(ElementBytes(dtype_));
  auto [it, inserted] = rows_.try_emplace(key);
  if (inserted) {
    it->second.resize(2 * half);
    frequencies_.SinCos(coordinate, dtype_, it->second.data(), it->second.data() + half);
  }
  const std::span<const std::byte> row(it->second);
  return {row.first(half), row.last(half)};
}

void WriteInterleaved(const SinCosRows::Row& row, v1::DType dtype, std::span<std::byte> out) {
  const auto element = static_cast<size_t>(ElementBytes(dtype));
  for (size_t from = 0; from < row.sin.size(); from += element) {
    std::memcpy(out.data() + 2 * from, row.sin.data() + from, element);
    std::memcpy(out.data() + 2 * from + element, row.cos.data() + from, element);
  }
}

}  // namespace posenc
