#include "lib/numeric/rotation.h"

#include <cmath>
#include <utility>

#include "lib/numeric/dtype.h"
#include "lib/numeric/elementary.h"
#include "lib/numeric/precise_sin_cos.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

// Of a value in double that was scaled: kSinCosError and one more rounding.
constexpr double kValueError = 0x1p-50;
static_assert(kValueError >= kSinCosError + 2 * 0x1p-53);

// The same of 100 bits; the slack is for `lo - error`, which rounds too.
constexpr double kPreciseValueError = 0x1p-91;
static_assert(kPreciseValueError >= kPreciseSinCosError + 2 * 0x1p-102);

// Below this rate the 100 bits of a value no longer fit above a double's smallest
// exponent.
constexpr double kMinPreciseTurns = 0x1p-600;

// The angle of FLOAT32 is a float32 x: x / 2π turns.
const DoubleDouble& InverseTwoPi() {
  static const DoubleDouble inverse = DoubleDouble::From(kWideInverseTwoPi);
  return inverse;
}

// Rounds `value`, known to within `error`. False if the error leaves it open.
template <typename Element>
bool RoundIfSafe(double value, double error, Element* out) {
  const auto low = RoundTo<Element>(value - error);
  const auto high = RoundTo<Element>(value + error);
  *out = low;
  return low == high;
}

// The same for a value to within kPreciseValueError (relative), to float64.
bool RoundIfSafe(DoubleDouble value, double* out) {
  const double error = kPreciseValueError * std::fabs(value.hi);
  *out = value.hi + (value.lo - error);
  return *out == value.hi + (value.lo + error);
}

}  // namespace

Rotation Rotation::Float32(std::vector<float> inv_freq, double scale) {
  Rotation rotation(Mode::kFloat32, scale);
  rotation.turns_.reserve(inv_freq.size());
  for (const float frequency : inv_freq) {
    rotation.turns_.push_back(DoubleDouble::From(WideFloat::From(frequency) * kWideInverseTwoPi));
  }
  rotation.inv_freq_ = std::move(inv_freq);
  return rotation;
}

Rotation Rotation::Exact(const std::vector<WideFloat>& inv_freq, double scale) {
  Rotation rotation(Mode::kExact, scale);
  rotation.turns_.reserve(inv_freq.size());
  rotation.precise_turns_.reserve(inv_freq.size());
  rotation.wide_turns_.reserve(inv_freq.size());
  for (const WideFloat& frequency : inv_freq) {
    rotation.wide_turns_.push_back(frequency * kWideInverseTwoPi);
    rotation.turns_.push_back(DoubleDouble::From(rotation.wide_turns_.back()));
    rotation.precise_turns_.push_back(TripleDouble::From(rotation.wide_turns_.back()));
  }
  return rotation;
}

size_t Rotation::bytes() const {
  return sizeof(*this) + inv_freq_.capacity() * sizeof(float) +
         turns_.capacity() * sizeof(DoubleDouble) +
         precise_turns_.capacity() * sizeof(TripleDouble) +
         wide_turns_.capacity() * sizeof(WideFloat);
}

template <typename Element>
void Rotation::Fill(int64_t first, const RotationRows<Element>& rows) const {
  for (int64_t row = 0; row < rows.count; ++row) {
    Element* cos = rows.cos == nullptr ? nullptr : rows.cos + row * rows.stride;
    Element* sin = rows.sin == nullptr ? nullptr : rows.sin + row * rows.stride;
    if (mode_ == Mode::kFloat32) {
      FillFloat32Row(first + row, cos, sin);
    } else {
      FillExactRow(first + row, cos, sin);
    }
  }
}

template <typename Element>
void Rotation::FillFloat32Row(int64_t position, Element* cos, Element* sin) const {
  const auto position32 = static_cast<float>(position);
  const auto scale32 = static_cast<float>(scale_);
  const DoubleDouble inverse_two_pi = InverseTwoPi();
  for (size_t i = 0; i < inv_freq_.size(); ++i) {
    const float angle = inv_freq_[i] * position32;
    const DoubleSinCos near = SinCosOfTurns(angle, inverse_two_pi);
    const double reduction = kReductionError * std::fabs(angle);  // turns are fewer
    float cos32;
    float sin32;
    if (!RoundIfSafe(near.cos, kValueError * std::fabs(near.cos) + reduction, &cos32)) {
      cos32 = CosF(angle);
    }
    if (!RoundIfSafe(near.sin, kValueError * std::fabs(near.sin) + reduction, &sin32)) {
      sin32 = SinF(angle);
    }
    if (cos != nullptr) cos[i] = RoundTo<Element>(cos32 * scale32);
    if (sin != nullptr) sin[i] = RoundTo<Element>(sin32 * scale32);
  }
}

template <typename Element>
void Rotation::FillExactRow(int64_t position, Element* cos, Element* sin) const {
  const auto x = static_cast<double>(position);
  for (size_t i = 0; i < turns_.size(); ++i) {
    const DoubleSinCos near = SinCosOfTurns(x, turns_[i]);
    const double reduction = scale_ * (kReductionError * std::fabs(x * turns_[i].hi));
    const double c = scale_ * near.cos;
    const double s = scale_ * near.sin;
    Element rounded_cos;
    Element rounded_sin;
    const bool cos_safe = RoundIfSafe(c, kValueError * std::fabs(c) + reduction, &rounded_cos);
    const bool sin_safe = RoundIfSafe(s, kValueError * std::fabs(s) + reduction, &rounded_sin);
    if (!cos_safe || !sin_safe) DecideExact(position, i, &rounded_cos, &rounded_sin);
    if (cos != nullptr) cos[i] = rounded_cos;
    if (sin != nullptr) sin[i] = rounded_sin;
  }
}

void Rotation::FillExactRow(int64_t position, double* cos, double* sin) const {
  for (size_t i = 0; i < precise_turns_.size(); ++i) {
    const PreciseSinCosValue near =
        PreciseSinCosOfTurns(static_cast<double>(position), precise_turns_[i]);
    double rounded_cos;
    double rounded_sin;
    const double turns = std::fabs(turns_[i].hi);
    const bool safe = (turns == 0 || turns >= kMinPreciseTurns) &&
                      RoundIfSafe(near.cos * scale_, &rounded_cos) &&
                      RoundIfSafe(near.sin * scale_, &rounded_sin);
    if (!safe) DecideExact(position, i, &rounded_cos, &rounded_sin);
    if (cos != nullptr) cos[i] = rounded_cos;
    if (sin != nullptr) sin[i] = rounded_sin;
  }
}

template <typename Element>
void Rotation::DecideExact(int64_t position, size_t pair, Element* cos, Element* sin) const {
  const WideFloat scale = WideFloat::From(scale_);
  const WideSinCos wide = SinCosOfTurns(WideFloat::FromInt(position) * wide_turns_[pair]);
  *cos = RoundWideTo<Element>(scale * wide.cos);
  *sin = RoundWideTo<Element>(scale * wide.sin);
}

template void Rotation::Fill(int64_t, const RotationRows<float>&) const;
template void Rotation::Fill(int64_t, const RotationRows<double>&) const;
template void Rotation::Fill(int64_t, const RotationRows<F16>&) const;
template void Rotation::Fill(int64_t, const RotationRows<Bf16>&) const;

}  // namespace posenc
