#include "lib/families/frequencies.h"

#include "lib/families/store.h"
#include "lib/numeric/elementary.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
double Frequencies::at(size_t k) const {
  return rounded_.empty() ? exact_[k].ToDouble() : static_cast<double>(rounded_[k]);
}

void Frequencies::SinCos(double coordinate, v1::DType dtype, std::byte* sin, std::byte* cos) const {
  const auto step = static_cast<size_t>(ElementBytes(dtype));
  for (size_t k = 0; k < rounded_.size(); ++k) {
    const float angle = static_cast<float>(coordinate) * rounded_[k];
    StoreElement(SinF(angle), dtype, sin + k * step);
    StoreElement(CosF(angle), dtype, cos + k * step);
  }
  const WideFloat exact_coordinate = WideFloat::From(coordinate);
  for (size_t k = 0; k < exact_.size(); ++k) {
    const WideSinCos value = posenc::SinCos(exact_coordinate * exact_[k]);
    StoreElement(value.sin, dtype, sin + k * step);
    StoreElement(value.cos, dtype, cos + k * step);
  }
}

Frequencies PowerFrequencies(double base, int64_t count, int64_t denominator,
                             v1::Arithmetic arithmetic) {
  if (arithmetic == v1::ARITHMETIC_EXACT) {
    const WideFloat log_base = Log(WideFloat::From(base));
    std::vector<WideFloat> exact;
    for (int64_t k = 0; k < count; ++k) {
      const WideFloat exponent =
          WideFloat::FromInt(-k).DividedBy(static_cast<uint64_t>(denominator));
      exact.push_back(Exp(exponent * log_base));
    }
    return Frequencies(std::move(exact));
  }
  std::vector<float> rounded;
  for (int64_t k = 0; k < count; ++k) {
    const float exponent = static_cast<float>(k) / static_cast<float>(denominator);
    rounded.push_back(1.0f / PowF(static_cast<float>(base), exponent));
  }
  return Frequencies(std::move(rounded));
}

Frequencies ExpFrequencies(double base, int64_t count, int64_t denominator,
                           v1::Arithmetic arithmetic) {
  if (arithmetic == v1::ARITHMETIC_EXACT) {
    return PowerFrequencies(base, count, denominator, arithmetic);
  }
  const float step = static_cast<float>(-(Log(base) / static_cast<double>(denominator)));
  std::vector<float> rounded;
  for (int64_t k = 0; k < count; ++k) rounded.push_back(ExpF(static_cast<float>(k) * step));
  return Frequencies(std::move(rounded));
}

SinCosRows::Row SinCosRows::At(double coordinate) {
  const size_t half = frequencies_.size() * static_cast<size_t>(ElementBytes(dtype_));
  auto [it, inserted] = rows_.try_emplace(coordinate);
  if (inserted) {
    it->second.resize(2 * half);
    frequencies_.SinCos(coordinate, dtype_, it->second.data(), it->second.data() + half);
  }
  const std::span<const std::byte> row(it->second);
  return {row.first(half), row.last(half)};
}

}  // namespace posenc
