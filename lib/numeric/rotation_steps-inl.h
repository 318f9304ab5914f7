// A step of the rotation kernel: pairs that fill whole lines of memory, for rows of one
// block; their rows computed, put where they belong, and settled.
// Included once for each instruction set (hwy/foreach_target.h).
#if defined(POSENC_LIB_NUMERIC_ROTATION_STEPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_LIB_NUMERIC_ROTATION_STEPS_INL_H_
#undef POSENC_LIB_NUMERIC_ROTATION_STEPS_INL_H_
#else
#define POSENC_LIB_NUMERIC_ROTATION_STEPS_INL_H_
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "lib/numeric/rotation_kernel.h"
#include "lib/numeric/rotation_row-inl.h"
#include "lib/numeric/rotation_store-inl.h"
#include "lib/numeric/rotation_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc {
namespace HWY_NAMESPACE {
#if POSENC_HAS_ROTATION_VECTORS

// Past the caches, some processors write neighbouring lines in pairs, and one whose
// neighbour comes later takes nearly twice as long.
constexpr size_t kStepBytes = 2 * kRotationLine;

// As many as a step's pairs may be without running out of registers.
constexpr int64_t kMaxStepPairs = HWY_TARGET == HWY_AVX3 ? 64 : 32;
static_assert(kMaxStepPairs <= kRotationStepGroups * kRotationGroup);

template <RotationElement kElement>
constexpr int64_t StepPairs() {
  constexpr auto kPerStep =
      static_cast<int64_t>(kStepBytes / sizeof(typename Element<kElement>::Type));
  return std::clamp(kPerStep, kRotationGroup, kMaxStepPairs);
}

// What fewer pairs than a step's are filled by.
template <RotationElement kElement>
constexpr int64_t NarrowStepPairs() {
  return kElement == RotationElement::kBf16 ? 2 * kRotationGroup : kRotationGroup;
}

// A step's pairs in a block of rows.
template <RotationElement kElementOf, int64_t kPairsOf>
struct alignas(kRotationLine) Step {
  static constexpr RotationElement kElement = kElementOf;
  static constexpr int64_t kPairs = kPairsOf;
  static constexpr int64_t kUnits = kPairs / kFloats;
  int64_t base;
  int64_t pair;
  Turn turn;
  std::array<Block, kUnits> blocks;

  void Begin(const RotationJob& job, int64_t block_base, int64_t first_pair) {
    base = block_base;
    pair = first_pair;
    turn = TurnOf(job, base, pair, kPairs);
    const float min_normal = job.exact ? Element<kElement>::kMinNormal : 0x1p-126f;
    for (int64_t u = 0; u < kUnits; ++u) {
      blocks[static_cast<size_t>(u)] = MakeBlock(job, pair + u * kFloats, base, min_normal);
    }
  }
};

// Positions [begin, end).
struct Run {
  int64_t begin;
  int64_t end;
};

// Which rows of a block the quick tests left open, a bit for each: noted without a
// branch, which would be mispredicted nearly each time that it is taken.
class OpenRows {
 public:
  HWY_INLINE void Set(Part part, uint64_t rows) {
    of_parts_[static_cast<size_t>(part.index)] = rows;
    any_ |= rows;
  }

  bool any() const { return any_ != 0; }

  // Calls `visit` with the part and the position of each.
  template <class Visit>
  void ForEach(const RotationJob& job, int64_t block_base, const Visit& visit) const {
    for (int64_t i = 0; i < job.coarse_rows; ++i) {
      const Part part = {block_base + i * job.fine_rows, i};
      for (uint64_t rows = of_parts_[static_cast<size_t>(i)]; rows != 0; rows &= rows - 1) {
        visit(part, part.base + std::countr_zero(rows));
      }
    }
  }

 private:
  std::array<uint64_t, kMaxCoarseRows> of_parts_ = {};
  uint64_t any_ = 0;
};

// Of rows that stand where they belong: what does not round one way is settled, and
// written again.
template <Turn kTurn, RotationElement kElement, int64_t kPairs, typename Rows>
HWY_NOINLINE void SettleRows(const RotationJob& job, const Rows& rows,
                             const Step<kElement, kPairs>& step, const OpenRows& open) {
  constexpr bool kToFloat = kTurn != Turn::kExact || kElement == RotationElement::kF32;
  const double scale = job.exact ? job.scale : 1.0;
  open.ForEach(job, step.base, [&](Part part, int64_t position) HWY_ATTR {
    int64_t pair = step.pair - kFloats;
    for (const Block& of_step : step.blocks) {
      pair += kFloats;
      const Block block = PartOf(of_step, part);
      if (kToFloat &&
          RoundsOneWay(ComputeRow<kTurn>(block, part.base, position), block.least, scale)) {
        continue;
      }
      HWY_ALIGN std::array<typename Element<kElement>::Type, kFloats> cos;
      HWY_ALIGN std::array<typename Element<kElement>::Type, kFloats> sin;
      SettleRow<kElement, kTurn>(job, block, part.base, position, pair, cos.data(), sin.data());
      Elements<kElement> cosines;
      Elements<kElement> sines;
      LoadAll(cos.data(), &cosines);
      LoadAll(sin.data(), &sines);
      rows.Put(cosines, sines, position, pair);
    }
  });
}

// The units of a row are put together: so lines of memory are written whole.
template <Turn kTurn, RotationElement kElement, int64_t kPairs, typename Rows>
HWY_NOINLINE void FillTurned(const RotationJob& job, const Rows rows,
                             const Step<kElement, kPairs>& step, Run run) {
  using E = Element<kElement>;
  constexpr auto kUnits = static_cast<size_t>(kPairs / kFloats);
  using Vectors = std::array<typename E::Vector, kUnits * E::kVectors>;
  const Scale scale(job.scale);
  RowWriter<Rows, Vectors> writer(rows, step.pair);
  OpenRows open;
  for (int64_t p = run.begin; p < run.end;) {
    const Part part = PartAt(job, step.base, p);
    std::array<Block, kUnits> blocks;
    for (size_t u = 0; u < kUnits; ++u) blocks[u] = PartOf(step.blocks[u], part);
    const int64_t end = std::min(part.base + job.fine_rows, run.end);
    uint64_t open_rows = 0;
    for (; p < end; ++p) {
      AllClosed closed;
      Vectors cos;
      Vectors sin;
      for (size_t u = 0; u < kUnits; ++u) {
        const Rounded rounded = RoundRow<kElement, kTurn == Turn::kExact>(
            ComputeRow<kTurn>(blocks[u], part.base, p), blocks[u].least, scale, &closed);
        E::From(rounded.cos, cos.data() + u * E::kVectors);
        E::From(rounded.sin, sin.data() + u * E::kVectors);
      }
      writer.Put(cos, sin, p);
      open_rows |= uint64_t{!closed.Get()} << (p - part.base);
    }
    open.Set(part, open_rows);
  }
  writer.PutLate();
  if (open.any()) SettleRows<kTurn>(job, rows, step, open);
}

template <RotationElement kElement, int64_t kPairs, typename Rows>
void FillStep(const RotationJob& job, const Rows& rows, const Step<kElement, kPairs>& step,
              Run run) {
  switch (step.turn) {
    case Turn::kExact:
      if constexpr (kElement != RotationElement::kF64) {
        FillTurned<Turn::kExact>(job, rows, step, run);
      }
      return;
    case Turn::kQuadratic:
      return FillTurned<Turn::kQuadratic>(job, rows, step, run);
    case Turn::kCubic:
      return FillTurned<Turn::kCubic>(job, rows, step, run);
    case Turn::kQuintic:
      return FillTurned<Turn::kQuintic>(job, rows, step, run);
    case Turn::kDirect:
      return FillTurned<Turn::kDirect>(job, rows, step, run);
  }
}

#endif  // POSENC_HAS_ROTATION_VECTORS
}  // namespace HWY_NAMESPACE
}  // namespace posenc
HWY_AFTER_NAMESPACE();

#endif  // include guard of this instruction set
