#include "lib/numeric/rotation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
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

// RoundIfSafe for a value to within kPreciseValueError (relative), to float64.
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
    const TripleDouble turns = TripleDouble::From(rotation.wide_turns_.back());
    rotation.precise_turns_.push_back(turns);
    rotation.turns_.push_back({turns.hi, turns.mid});
  }
  rotation.MakeKernelTables();
  return rotation;
}

void Rotation::MakeKernelTables() {
  if (!HasRotationKernel()) return;
  const size_t size = turns_.size();
  const size_t used_groups = (size + kRotationGroup - 1) / kRotationGroup;
  constexpr auto kStep = static_cast<size_t>(kRotationStepGroups);
  const size_t groups = (used_groups + kStep - 1) / kStep * kStep;
  // 18 KiB a group, unless that makes a wide rotation too large.
  fine_rows_ = groups <= 64 ? 32 : 8;
  coarse_rows_ = groups <= 64 ? 16 : 8;
  turns_hi_.resize(groups);
  turns_lo_.resize(groups);
  inv_freq_lanes_.resize(inv_freq_.empty() ? 0 : groups);
  for (size_t i = 0; i < size; ++i) {
    const size_t group = i / kRotationGroup;
    const size_t lane = i % kRotationGroup;
    turns_hi_[group].lane[lane] = turns_[i].hi;
    turns_lo_[group].lane[lane] = turns_[i].lo;
    if (!inv_freq_.empty()) inv_freq_lanes_[group].lane[lane] = inv_freq_[i];
  }
  fine_.resize(groups * static_cast<size_t>(fine_rows_ + coarse_rows_) * 2);
  FillFineTable(KernelJob(), static_cast<int64_t>(used_groups), fine_.data());
  fine32_.resize(fine_.size());
  for (size_t i = 0; i < fine_.size(); ++i) {
    for (size_t lane = 0; lane < kRotationGroup; ++lane) {
      fine32_[i].lane[lane] = static_cast<float>(fine_[i].lane[lane]);
    }
  }
}

size_t Rotation::bytes() const {
  const size_t lanes = turns_hi_.capacity() + turns_lo_.capacity() + fine_.capacity();
  return sizeof(*this) + inv_freq_.capacity() * sizeof(float) +
         turns_.capacity() * sizeof(DoubleDouble) +
         precise_turns_.capacity() * sizeof(TripleDouble) +
         wide_turns_.capacity() * sizeof(WideFloat) + lanes * sizeof(RotationLanes) +
         (inv_freq_lanes_.capacity() + fine32_.capacity()) * sizeof(RotationFloats);
}

// Filling ---------------------------------------------------------------------------

template <typename Element>
bool HasWholeLines(const RotationRows<Element>& rows, int64_t pairs) {
  const auto is_whole = [](auto elements) {
    return static_cast<size_t>(elements) * sizeof(Element) % kRotationLine == 0;
  };
  const auto is_aligned = [](const Element* start) {
    return reinterpret_cast<uintptr_t>(start) % kRotationLine == 0;
  };
  const bool alternates = rows.layout == RotationLayout::kAlternating;
  const bool are_aligned = alternates ? is_aligned(std::min(rows.cos, rows.sin))
                                      : is_aligned(rows.cos) && is_aligned(rows.sin);
  const bool doubles = alternates || rows.layout == RotationLayout::kTwiceAlternating;
  return are_aligned && is_whole(rows.stride) && is_whole(doubles ? 2 * pairs : pairs);
}

template <typename Element>
void Rotation::Fill(int64_t first, const RotationRows<Element>& rows) const {
  const bool from_100_bits = std::is_same_v<Element, double> && mode_ == Mode::kExact;
  if (!from_100_bits && !fine_.empty()) return FillByKernel(first, rows);
  for (int64_t row = 0; row < rows.count; ++row) {
    for (size_t i = 0; i < turns_.size(); ++i) {
      Element cos;
      Element sin;
      FillPair(first + row, i, &cos, &sin);
      const int64_t start = row * rows.stride;
      if (rows.cos != nullptr) Place(rows.layout, cos, static_cast<int64_t>(i), rows.cos + start);
      if (rows.sin != nullptr) Place(rows.layout, sin, static_cast<int64_t>(i), rows.sin + start);
    }
  }
}

template <typename Element>
void Rotation::Place(RotationLayout layout, Element value, int64_t pair, Element* row) const {
  switch (layout) {
    case RotationLayout::kApart:
      row[pair] = value;
      return;
    case RotationLayout::kTwice:
      row[pair] = row[pairs() + pair] = value;
      return;
    case RotationLayout::kAlternating:
      row[2 * pair] = value;
      return;
    case RotationLayout::kTwiceAlternating:
      row[2 * pair] = row[2 * pair + 1] = value;
      return;
  }
}

RotationJob Rotation::KernelJob() const {
  RotationJob job = {};
  job.exact = mode_ == Mode::kExact;
  job.scale = scale_;
  job.pairs = pairs();
  job.fine_rows = fine_rows_;
  job.coarse_rows = coarse_rows_;
  job.turns_hi = turns_hi_.data();
  job.turns_lo = turns_lo_.data();
  job.inv_freq = inv_freq_lanes_.data();
  job.fine = fine_.data();
  job.fine32 = fine32_.data();
  return job;
}

template <typename Element>
void Rotation::FillByKernel(int64_t first, const RotationRows<Element>& rows) const {
  RotationJob job = KernelJob();
  job.first = first;
  job.count = rows.count;
  job.element = KernelElement<Element>();
  job.layout = rows.layout;
  job.streams = rows.cold && HasWholeLines(rows, pairs());
  job.cos = rows.cos;
  job.sin = rows.sin;
  job.stride = rows.stride;
  job.rotation = this;
  job.settle = [](const void* rotation, const RotationCandidate& candidate, void* cos, void* sin) {
    static_cast<const Rotation*>(rotation)->Settle(candidate, static_cast<Element*>(cos),
                                                   static_cast<Element*>(sin));
  };
  RunRotationKernel(job);
}

template <typename Element>
void Rotation::Settle(const RotationCandidate& near, Element* cos, Element* sin) const {
  const auto settle = [&]<typename T>(T* c, T* s) {
    const bool cos_is_safe = RoundIfSafe(near.cos, near.cos_error, c);
    return RoundIfSafe(near.sin, near.sin_error, s) && cos_is_safe;
  };
  bool safe;
  if (mode_ == Mode::kFloat32) {  // rounds to float32 on the way
    float cos32;
    float sin32;
    safe = settle(&cos32, &sin32);
    const auto scale32 = static_cast<float>(scale_);
    *cos = RoundTo<Element>(cos32 * scale32);
    *sin = RoundTo<Element>(sin32 * scale32);
  } else {
    safe = settle(cos, sin);
  }
  if (!safe) FillPair(near.position, static_cast<size_t>(near.pair), cos, sin);
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
template bool HasWholeLines(const RotationRows<float>&, int64_t);
template void Rotation::Fill(int64_t, const RotationRows<double>&) const;
template bool HasWholeLines(const RotationRows<double>&, int64_t);
template void Rotation::Fill(int64_t, const RotationRows<F16>&) const;
template bool HasWholeLines(const RotationRows<F16>&, int64_t);
template void Rotation::Fill(int64_t, const RotationRows<Bf16>&) const;
template bool HasWholeLines(const RotationRows<Bf16>&, int64_t);

}  // namespace posenc
