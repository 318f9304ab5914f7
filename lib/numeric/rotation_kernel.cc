#include "lib/numeric/rotation_kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "lib/numeric/sin_cos.h"

// Compiled once for each instruction set; the best is chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/numeric/rotation_kernel.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "lib/numeric/rotation_bf16-inl.h"
#include "lib/numeric/rotation_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc {
namespace HWY_NAMESPACE {

#if POSENC_HAS_ROTATION_VECTORS

bool IsUsable() { return true; }

// Rows are filled chunk by chunk, and a chunk group after group: a group's table then
// stays in the first-level cache, and the rows in the second.
constexpr int64_t kChunkRows = 512;

// Past the caches, memory takes lines from some 64 places at a time as fast as
// consecutive ones, but not from more: rows that are written twice come from fewer.
constexpr int64_t kStreamedRows = 32;
constexpr int64_t kStreamedRowsTwice = 16;

// AnyStep: Step of the element, or FloatStep.
template <typename AnyStep, typename Rows>
void FillCached(const RotationJob& job, const Rows& rows) {
  constexpr int64_t kPairs = AnyStep::kUnits * kFloats;
  const int64_t last = job.first + job.count;
  for (int64_t chunk = job.first; chunk < last; chunk += kChunkRows) {
    const int64_t chunk_end = std::min(chunk + kChunkRows, last);
    for (int64_t pair = 0; pair < job.pairs; pair += kPairs) {
      for (int64_t base = chunk & -job.fine_rows; base < chunk_end; base += job.fine_rows) {
        const Run run = {std::max(base, chunk), std::min(base + job.fine_rows, chunk_end)};
        AnyStep step;
        step.Begin(job, base, pair);
        FillStep(job, rows, step, run);
      }
    }
  }
}

constexpr bool WritesTwice(RotationLayout layout) {
  return layout == RotationLayout::kTwice || layout == RotationLayout::kTwiceAlternating;
}

template <typename AnyStep, typename Rows>
void FillStreamed(const RotationJob& job, const Rows& rows) {
  constexpr int64_t kPairs = AnyStep::kUnits * kFloats;
  const int64_t last = job.first + job.count;
  const int64_t rows_at_once = WritesTwice(job.layout) ? kStreamedRowsTwice : kStreamedRows;
  std::vector<AnyStep> steps(static_cast<size_t>((job.pairs + kPairs - 1) / kPairs));
  for (int64_t base = job.first & -job.fine_rows; base < last; base += job.fine_rows) {
    int64_t pair = 0;
    for (AnyStep& step : steps) {
      step.Begin(job, base, pair);
      pair += kPairs;
    }
    const int64_t end = std::min(base + job.fine_rows, last);
    for (int64_t p = std::max(base, job.first); p < end; p += rows_at_once) {
      const Run run = {p, std::min(p + rows_at_once, end)};
      for (const AnyStep& step : steps) FillStep(job, rows, step, run);
    }
  }
  hwy::FlushStream();
}

template <RotationElement kElement, bool kAlternates, bool kStreams>
void FillRows(const RotationJob& job) {
  const Rows<typename Element<kElement>::Type, kAlternates, kStreams> rows(job);
  const auto fill = [&]<typename AnyStep>(const AnyStep*) {
    if constexpr (kStreams) return FillStreamed<AnyStep>(job, rows);
    FillCached<AnyStep>(job, rows);
  };
  if constexpr (kElement == RotationElement::kBf16) {
    if (DecidesInFloat(job)) return fill(static_cast<FloatStep*>(nullptr));
  }
  fill(static_cast<Step<kElement>*>(nullptr));
}

template <RotationElement kElement>
void FillElements(const RotationJob& job) {
  const bool alternates =
      job.layout == RotationLayout::kAlternating || job.layout == RotationLayout::kTwiceAlternating;
  if (job.streams) {
    alternates ? FillRows<kElement, true, true>(job) : FillRows<kElement, false, true>(job);
  } else {
    alternates ? FillRows<kElement, true, false>(job) : FillRows<kElement, false, false>(job);
  }
}

void Fill(const RotationJob& job) {
  switch (job.element) {
    case RotationElement::kF32:
      return FillElements<RotationElement::kF32>(job);
    case RotationElement::kF64:
      return FillElements<RotationElement::kF64>(job);
    case RotationElement::kF16:
      return FillElements<RotationElement::kF16>(job);
    case RotationElement::kBf16:
      return FillElements<RotationElement::kBf16>(job);
  }
}

void FillFine(const RotationLanes* turns_hi, const RotationLanes* turns_lo, int64_t groups,
              int64_t fine_rows, RotationLanes* fine) {
  const DD d;
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t row = 0; row < fine_rows; ++row, fine += 2) {
      const VD x = hn::Set(d, static_cast<double>(row));
      for (size_t lane = 0; lane < kRotationGroup; lane += kDoubles) {
        const SinCosVectors value = SinCos(x, hn::Load(d, turns_hi[group].lane.data() + lane),
                                           hn::Load(d, turns_lo[group].lane.data() + lane));
        hn::Store(value.cos, d, fine[0].lane.data() + lane);
        hn::Store(value.sin, d, fine[1].lane.data() + lane);
      }
    }
  }
}

#else  // no fused multiply-add

bool IsUsable() { return false; }
void Fill(const RotationJob&) {}
void FillFine(const RotationLanes*, const RotationLanes*, int64_t, int64_t, RotationLanes*) {}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace posenc
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc {

HWY_EXPORT(IsUsable);
HWY_EXPORT(Fill);
HWY_EXPORT(FillFine);

bool HasRotationKernel() { return HWY_DYNAMIC_DISPATCH(IsUsable)(); }

void RunRotationKernel(const RotationJob& job) { HWY_DYNAMIC_DISPATCH(Fill)(job); }

void FillFineTable(const RotationLanes* turns_hi, const RotationLanes* turns_lo, int64_t groups,
                   int64_t fine_rows, RotationLanes* fine) {
  HWY_DYNAMIC_DISPATCH(FillFine)(turns_hi, turns_lo, groups, fine_rows, fine);
}

}  // namespace posenc
#endif
