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

// Which units of a block's rows the quick tests left open: noted as bits, without a branch,
// and listed when the block is done. A branch that is taken now and then is mispredicted
// nearly each time, which costs as much as some rows.
template <size_t kUnits>
class OpenUnits {
 public:
  // Whether units are tested each by itself, or those of a row together, which is cheaper
  // without masks: then all of them are open.
  static constexpr bool kApart = HWY_TARGET == HWY_AVX3;
  static constexpr size_t kBitsOfRow = kApart ? kUnits : 1;
  static constexpr int64_t kRowsOfWord = 64 / kBitsOfRow;

  // The bit of a unit in the word of its row, which is counted from the block's first.
  static HWY_INLINE uint64_t Bit(int64_t row, size_t unit) {
    return uint64_t{1} << ((static_cast<size_t>(row) * kBitsOfRow + (kApart ? unit : 0)) % 64);
  }

  // The bits of the rows of the word that begins with, or holds, `row`.
  HWY_INLINE void Set(int64_t row, uint64_t open) {
    words_[static_cast<size_t>(row / kRowsOfWord)] |= open;
  }

  // Calls `visit` with row and unit of each, of a block of `rows`.
  template <class Visit>
  HWY_INLINE void ForEach(int64_t rows, const Visit& visit) const {
    std::array<uint16_t, 64 * kWords + kUsual> list;
    size_t count = 0;
    const auto words = static_cast<size_t>((rows + kRowsOfWord - 1) / kRowsOfWord);
    for (size_t word = 0; word < words; ++word) {
      uint64_t open = words_[word];
      const auto take = [&] {
        list[count] =
            static_cast<uint16_t>(64 * word + static_cast<size_t>(std::countr_zero(open)));
        count += open != 0;
        open &= open - 1;
      };
      for (size_t i = 0; i < kUsual; ++i) take();
      while (HWY_UNLIKELY(open != 0)) take();
    }
    for (size_t i = 0; i < count; ++i) {
      const auto row = static_cast<int64_t>(list[i] / kBitsOfRow);
      if (kApart) {
        visit(row, list[i] % kUnits);
      } else {
        for (size_t unit = 0; unit < kUnits; ++unit) visit(row, unit);
      }
    }
  }

 private:
  static_assert(64 % kUnits == 0);
  static constexpr size_t kWords = kMaxFineRows * kMaxCoarseRows / kRowsOfWord;
  static constexpr size_t kUsual = 2;  // in a word

  std::array<uint64_t, kWords> words_ = {};
};

// Of rows that stand where they belong: what does not round one way is settled, and
// written again.
template <Turn kTurn, RotationElement kElement, int64_t kPairs, typename Rows, class Open>
HWY_NOINLINE void SettleRows(const RotationJob& job, const Rows& rows,
                             const Step<kElement, kPairs>& step, const Open& open) {
  constexpr bool kToFloat = kTurn != Turn::kExact || kElement == RotationElement::kF32;
  const double scale = job.exact ? job.scale : 1.0;
  open.ForEach(BlockRows(job), [&](int64_t row, size_t unit) HWY_ATTR {
    const int64_t position = step.base + row;
    const Part part = PartAt(job, step.base, position);
    const Block block = PartOf(step.blocks[unit], part);
    if (kToFloat && RoundsOneWay(ComputeRow<kTurn>(block, part.base, position), block.least,
                                 job.exact, scale)) {
      return;
    }
    const int64_t pair = step.pair + static_cast<int64_t>(unit) * kFloats;
    HWY_ALIGN std::array<typename Element<kElement>::Type, kFloats> cos;
    HWY_ALIGN std::array<typename Element<kElement>::Type, kFloats> sin;
    SettleRow<kElement, kTurn>(job, block, part.base, position, pair, cos.data(), sin.data());
    Elements<kElement> cosines;
    Elements<kElement> sines;
    LoadAll(cos.data(), &cosines);
    LoadAll(sin.data(), &sines);
    rows.Put(cosines, sines, position, pair);
  });
}

// The units of a row are put together: so lines of memory are written whole.
template <Turn kTurn, RotationElement kElement, int64_t kPairs, typename Rows>
HWY_NOINLINE void FillTurned(const RotationJob& job, const Rows rows,
                             const Step<kElement, kPairs>& step, Run run) {
  using E = Element<kElement>;
  constexpr auto kUnits = static_cast<size_t>(kPairs / kFloats);
  using Vectors = std::array<typename E::Vector, kUnits * E::kVectors>;
  using Open = OpenUnits<kUnits>;
  const Scale scale(job.scale);
  RowWriter<Rows, Vectors> writer(rows, step.pair);
  Open open;
  for (int64_t p = run.begin; p < run.end;) {
    const Part part = PartAt(job, step.base, p);
    std::array<Block, kUnits> blocks;
    for (size_t u = 0; u < kUnits; ++u) blocks[u] = PartOf(step.blocks[u], part);
    const int64_t first_row = p - step.base;
    const int64_t end =
        std::min({part.base + job.fine_rows, run.end,
                  step.base + (first_row / Open::kRowsOfWord + 1) * Open::kRowsOfWord});
    uint64_t open_units = 0;
    for (; p < end; ++p) {
      AllClosed closed;
      Vectors cos;
      Vectors sin;
      for (size_t u = 0; u < kUnits; ++u) {
        if (Open::kApart) closed = AllClosed();
        const Rounded rounded = RoundRow<kElement, kTurn == Turn::kExact>(
            ComputeRow<kTurn>(blocks[u], part.base, p), blocks[u].least, scale, &closed);
        if (Open::kApart || u + 1 == kUnits) {
          open_units |= closed.Get() ? 0 : Open::Bit(p - step.base, u);
        }
        E::From(rounded.cos, cos.data() + u * E::kVectors);
        E::From(rounded.sin, sin.data() + u * E::kVectors);
      }
      writer.Put(cos, sin, p);
    }
    open.Set(first_row, open_units);
  }
  writer.PutLate();
  SettleRows<kTurn>(job, rows, step, open);
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
