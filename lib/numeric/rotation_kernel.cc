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

// Past the caches, memory takes lines from some 64 places at a time as fast as
// consecutive ones, but not from more: rows that are written twice come from fewer.
// Processors with AVX-512 have no such limit for lines in pairs (kStepBytes).
constexpr bool kHasFewPlaces = HWY_TARGET != HWY_AVX3;
constexpr int64_t kStreamedRows = 32;
constexpr int64_t kStreamedRowsTwice = 16;

constexpr bool WritesTwice(RotationLayout layout) {
  return layout == RotationLayout::kTwice || layout == RotationLayout::kTwiceAlternating;
}

// Calls `wide` and `narrow` with the first pair of each step. Wide, Narrow: Step of the
// element, or FloatStep; the last pairs of a row are a narrow one, where they fit.
template <class Wide, class Narrow, class FillWide, class FillNarrow>
void ForEachStep(int64_t pairs, const FillWide& wide, const FillNarrow& narrow) {
  int64_t pair = 0;
  for (; pairs - pair > Narrow::kPairs; pair += Wide::kPairs) wide(pair);
  if (pair < pairs) narrow(pair);
}

template <class AnyStep, typename Rows>
void FillBlock(const RotationJob& job, const Rows& rows, int64_t base, int64_t pair, Run run) {
  AnyStep step;
  step.Begin(job, base, pair);
  FillStep(job, rows, step, run);
}

// Rows are filled block by block, and a block pairs after pairs: their table then stays
// in the first-level cache, and the rows in the second.
template <class Wide, class Narrow, typename Rows>
void FillBlocks(const RotationJob& job, const Rows& rows) {
  const int64_t last = job.first + job.count;
  for (int64_t base = job.first & -BlockRows(job); base < last; base += BlockRows(job)) {
    const Run run = {std::max(base, job.first), std::min(base + BlockRows(job), last)};
    ForEachStep<Wide, Narrow>(
        job.pairs, [&](int64_t pair) { FillBlock<Wide>(job, rows, base, pair, run); },
        [&](int64_t pair) { FillBlock<Narrow>(job, rows, base, pair, run); });
  }
}

// A few rows at a time.
template <class Wide, class Narrow, typename Rows>
void FillFewPlaces(const RotationJob& job, const Rows& rows) {
  const int64_t last = job.first + job.count;
  const int64_t rows_at_once = WritesTwice(job.layout) ? kStreamedRowsTwice : kStreamedRows;
  std::vector<Wide> wide;
  std::vector<Narrow> narrow;
  for (int64_t base = job.first & -BlockRows(job); base < last; base += BlockRows(job)) {
    wide.clear();
    narrow.clear();
    ForEachStep<Wide, Narrow>(
        job.pairs, [&](int64_t pair) { wide.emplace_back().Begin(job, base, pair); },
        [&](int64_t pair) { narrow.emplace_back().Begin(job, base, pair); });
    const int64_t end = std::min(base + BlockRows(job), last);
    for (int64_t p = std::max(base, job.first); p < end; p += rows_at_once) {
      const Run run = {p, std::min(p + rows_at_once, end)};
      for (const Wide& step : wide) FillStep(job, rows, step, run);
      for (const Narrow& step : narrow) FillStep(job, rows, step, run);
    }
  }
}

template <class Wide, class Narrow, bool kAlternates, bool kStreams>
void FillRows(const RotationJob& job) {
  const Rows<typename Element<Wide::kElement>::Type, kAlternates, kStreams> rows(job);
  if constexpr (kStreams && kHasFewPlaces) {
    FillFewPlaces<Wide, Narrow>(job, rows);
  } else {
    FillBlocks<Wide, Narrow>(job, rows);
  }
  if constexpr (kStreams) hwy::FlushStream();
}

template <class Wide, class Narrow>
void FillLayout(const RotationJob& job) {
  const bool alternates =
      job.layout == RotationLayout::kAlternating || job.layout == RotationLayout::kTwiceAlternating;
  if (job.streams) {
    alternates ? FillRows<Wide, Narrow, true, true>(job) : FillRows<Wide, Narrow, false, true>(job);
  } else {
    alternates ? FillRows<Wide, Narrow, true, false>(job)
               : FillRows<Wide, Narrow, false, false>(job);
  }
}

template <RotationElement kElement>
void FillElements(const RotationJob& job) {
  constexpr int64_t kWide = StepPairs<kElement>();
  constexpr int64_t kNarrow = NarrowStepPairs<kElement>();
  if constexpr (kElement == RotationElement::kBf16) {
    if (DecidesInFloat(job)) return FillLayout<FloatStep<kWide>, FloatStep<kNarrow>>(job);
  }
  FillLayout<Step<kElement, kWide>, Step<kElement, kNarrow>>(job);
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

void FillFine(const RotationJob& job, int64_t groups, RotationLanes* fine) {
  const DD d;
  const auto fill = [&](int64_t group, int64_t position) HWY_ATTR {
    const VD x = hn::Set(d, static_cast<double>(position));
    for (size_t lane = 0; lane < kRotationGroup; lane += kDoubles) {
      const SinCosVectors value = SinCos(x, hn::Load(d, job.turns_hi[group].lane.data() + lane),
                                         hn::Load(d, job.turns_lo[group].lane.data() + lane));
      hn::Store(value.cos, d, fine[0].lane.data() + lane);
      hn::Store(value.sin, d, fine[1].lane.data() + lane);
    }
    fine += 2;
  };
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t row = 0; row < job.fine_rows; ++row) fill(group, row);
    for (int64_t row = 0; row < job.coarse_rows; ++row) fill(group, row * job.fine_rows);
  }
}

#else  // no fused multiply-add

bool IsUsable() { return false; }
void Fill(const RotationJob&) {}
void FillFine(const RotationJob&, int64_t, RotationLanes*) {}

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

void FillFineTable(const RotationJob& job, int64_t groups, RotationLanes* fine) {
  HWY_DYNAMIC_DISPATCH(FillFine)(job, groups, fine);
}

}  // namespace posenc
#endif
