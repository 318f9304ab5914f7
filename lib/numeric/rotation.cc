#include "lib/numeric/rotation.h"

#include <cmath>
#include <type_traits>
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

template <typename Element>
constexpr RotationElement KernelElement() {
  if (std::is_same_v<Element, double>) return RotationElement::kF64;
  if (std::is_same_v<Element, F16>) return RotationElement::kF16;
  if (std::is_same_v<Element, Bf16>) return RotationElement::kBf16;
  return RotationElement::kF32;
}

}  // namespace

// Making ----------------------------------------------------------------------------

Rotation Rotation::Float32(std::vector<float> inv_freq, double scale) {
  Rotation rotation(Mode::kFloat32, scale);
  rotation.turns_.reserve(inv_freq.size());
  for (const float frequency : inv_freq) {
    rotation.turns_.push_back(DoubleDouble::From(WideFloat::From(frequency) * kWideInverseTwoPi));
  }
  rotation.inv_freq_ = std::move(inv_freq);
  rotation.MakeKernelTables();
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
  rotation.MakeKernelTables();
  return rotation;
}

void Rotation::MakeKernelTables() {
  if (!HasRotationKernel()) return;
  const auto groups = (turns_.size() + kRotationGroup - 1) / kRotationGroup;
  // 16 KiB a group, unless that makes a wide rotation too large.
  fine_rows_ = groups <= 64 ? 64 : 16;
  const auto rows = static_cast<size_t>(fine_rows_);
  turns_hi_.resize(groups);
  turns_lo_.resize(groups);
  inv_freq_lanes_.resize(inv_freq_.empty() ? 0 : groups);
  fine_.resize(groups * rows * 2);
  for (size_t i = 0; i < turns_.size(); ++i) {
    const size_t group = i / kRotationGroup;
    const size_t lane = i % kRotationGroup;
    turns_hi_[group].lane[lane] = turns_[i].hi;
    turns_lo_[group].lane[lane] = turns_[i].lo;
    if (!inv_freq_.empty()) inv_freq_lanes_[group].lane[lane] = static_cast<double>(inv_freq_[i]);
    for (size_t row = 0; row < rows; ++row) {
      const DoubleSinCos value = SinCosOfTurns(static_cast<double>(row), turns_[i]);
      fine_[(group * rows + row) * 2].lane[lane] = value.cos;
      fine_[(group * rows + row) * 2 + 1].lane[lane] = value.sin;
    }
  }
}

size_t Rotation::bytes() const {
  const size_t lanes =
      turns_hi_.capacity() + turns_lo_.capacity() + inv_freq_lanes_.capacity() + fine_.capacity();
  return sizeof(*this) + inv_freq_.capacity() * sizeof(float) +
         turns_.capacity() * sizeof(DoubleDouble) +
         precise_turns_.capacity() * sizeof(TripleDouble) +
         wide_turns_.capacity() * sizeof(WideFloat) + lanes * sizeof(RotationLanes);
}

// Filling ---------------------------------------------------------------------------

template <typename Element>
void Rotation::Fill(int64_t first, const RotationRows<Element>& rows) const {
  const bool from_100_bits = std::is_same_v<Element, double> && mode_ == Mode::kExact;
  if (!from_100_bits && !fine_.empty()) return FillByKernel(first, rows);
  for (int64_t row = 0; row < rows.count; ++row) {
    for (size_t i = 0; i < turns_.size(); ++i) {
      Element cos;
      Element sin;
      FillPair(first + row, i, &cos, &sin);
      const int64_t index = row * rows.stride + static_cast<int64_t>(i);
      if (rows.cos != nullptr) rows.cos[index] = cos;
      if (rows.sin != nullptr) rows.sin[index] = sin;
    }
  }
}

template <typename Element>
void Rotation::FillByKernel(int64_t first, const RotationRows<Element>& rows) const {
  // What is not wanted is written to one row over and over.
  std::vector<Element> unwanted(rows.cos == nullptr || rows.sin == nullptr ? turns_.size() : 0);
  RotationJob job;
  job.exact = mode_ == Mode::kExact;
  job.scale = scale_;
  job.pairs = pairs();
  job.fine_rows = fine_rows_;
  job.turns_hi = turns_hi_.data();
  job.turns_lo = turns_lo_.data();
  job.inv_freq = inv_freq_lanes_.data();
  job.fine = fine_.data();
  job.first = first;
  job.count = rows.count;
  job.element = KernelElement<Element>();
  job.cos = rows.cos != nullptr ? rows.cos : unwanted.data();
  job.sin = rows.sin != nullptr ? rows.sin : unwanted.data();
  job.cos_stride = rows.cos != nullptr ? rows.stride : 0;
  job.sin_stride = rows.sin != nullptr ? rows.stride : 0;
  job.rotation = this;
  job.decide = [](const void* rotation, int64_t position, int64_t pair, void* cos, void* sin) {
    static_cast<const Rotation*>(rotation)->FillPair(position, static_cast<size_t>(pair),
                                                     static_cast<Element*>(cos),
                                                     static_cast<Element*>(sin));
  };
  RunRotationKernel(job);
}

template <typename Element>
void Rotation::FillPair(int64_t position, size_t pair, Element* cos, Element* sin) const {
  if (mode_ == Mode::kFloat32) return FillFloat32Pair(position, pair, cos, sin);
  return FillExactPair(position, pair, cos, sin);
}

template <typename Element>
void Rotation::FillFloat32Pair(int64_t position, size_t pair, Element* cos, Element* sin) const {
  const float angle = inv_freq_[pair] * static_cast<float>(position);
  const DoubleSinCos near = SinCosOfTurns(static_cast<double>(angle), kInverseTwoPiDoubles);
  const double reduction = kReductionError * std::fabs(angle);  // turns are fewer
  float cos32;
  float sin32;
  if (!RoundIfSafe(near.cos, kValueError * std::fabs(near.cos) + reduction, &cos32)) {
    cos32 = CosF(angle);
  }
  if (!RoundIfSafe(near.sin, kValueError * std::fabs(near.sin) + reduction, &sin32)) {
    sin32 = SinF(angle);
  }
  const auto scale32 = static_cast<float>(scale_);
  *cos = RoundTo<Element>(cos32 * scale32);
  *sin = RoundTo<Element>(sin32 * scale32);
}

template <typename Element>
void Rotation::FillExactPair(int64_t position, size_t pair, Element* cos, Element* sin) const {
  const auto x = static_cast<double>(position);
  const DoubleDouble turns = turns_[pair];
  const DoubleSinCos near = SinCosOfTurns(x, turns);
  const double reduction = scale_ * (kReductionError * std::fabs(x * turns.hi));
  const double c = scale_ * near.cos;
  const double s = scale_ * near.sin;
  const bool safe = RoundIfSafe(c, kValueError * std::fabs(c) + reduction, cos) &&
                    RoundIfSafe(s, kValueError * std::fabs(s) + reduction, sin);
  if (!safe) DecideExact(position, pair, cos, sin);
}

void Rotation::FillExactPair(int64_t position, size_t pair, double* cos, double* sin) const {
  const PreciseSinCosValue near =
      PreciseSinCosOfTurns(static_cast<double>(position), precise_turns_[pair]);
  const double turns = std::fabs(turns_[pair].hi);
  const bool safe = (turns == 0 || turns >= kMinPreciseTurns) &&
                    RoundIfSafe(near.cos * scale_, cos) && RoundIfSafe(near.sin * scale_, sin);
  if (!safe) DecideExact(position, pair, cos, sin);
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
