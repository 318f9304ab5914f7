// The rotation kernel for bfloat16: in float32, with twice the lanes.
//
// Each value is known to within a margin; where both ends of that interval round to
// one bfloat16, it is the value's. The few others (one in some thousand) are
// computed again in double. FLOAT32 rounds to float32 on the way, and after the
// scale: all these steps are monotone, so the ends take them too.
// Included once for each instruction set (hwy/foreach_target.h).
#if defined(POSENC_LIB_NUMERIC_ROTATION_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_LIB_NUMERIC_ROTATION_BF16_INL_H_
#undef POSENC_LIB_NUMERIC_ROTATION_BF16_INL_H_
#else
#define POSENC_LIB_NUMERIC_ROTATION_BF16_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "hwy/highway.h"
#include "lib/numeric/rotation_kernel.h"
#include "lib/numeric/rotation_row-inl.h"
#include "lib/numeric/rotation_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc {
namespace HWY_NAMESPACE {
#if POSENC_HAS_ROTATION_VECTORS

// Two vectors of float32 make one of bfloat16.
using DH = hn::Repartition<uint16_t, DF>;
using VH = hn::Vec<DH>;
constexpr int64_t kHalves = 2 * kFloats;

HWY_INLINE bool DecidesInFloat(const RotationJob& job) {
  const double scale = std::fabs(job.scale);
  return scale >= kMinFloatScale && scale <= kMaxFloatScale;
}

// What the rows of a block have in common, for kFloats pairs.
struct FloatBlock {
  VF cos;
  VF sin;
  VF less;  // a value is in [value·less - margin, value·more + margin]
  VF more;
  VF margin;
  VF inv_freq;  // FLOAT32 only
  const float* fine;
};

HWY_INLINE FloatBlock MakeFloatBlock(const RotationJob& job, const Block& block, int64_t pair,
                                     int64_t base) {
  const DD d;
  const DF df;
  const Lanes at(pair);
  const Pair turns = LoadPair(job.turns_hi[at.group].lane.data() + at.lane);
  // In the first eighth of a turn no term cancels another. Zeros are exact.
  const VD last = hn::Set(d, base < 0 ? 1e300 : static_cast<double>(base + BlockRows(job)));
  const auto share = [&](VD t) HWY_ATTR {  // 1: the margin is relative
    const VD size = hn::Abs(t);
    const auto small = hn::And(hn::Lt(hn::Mul(size, last), hn::Set(d, 0.125)),
                               hn::Gt(size, hn::Set(d, kMinRotatedInvFreq)));
    return hn::IfThenElseZero(hn::Or(small, hn::Eq(t, hn::Zero(d))), hn::Set(d, 1.0));
  };
  const VF relative = Demote({share(turns.low), share(turns.high)});
  const VF one = hn::Set(df, 1.0f);
  const double more = !job.exact && job.scale != 1 ? kScaledFloatMargin : 0;
  const VF ratio =
      hn::Mul(relative, hn::Set(df, static_cast<float>(kRotatedFloatRelativeMargin + more)));
  const double margin = (kRotatedFloatMargin + more) * (job.exact ? std::fabs(job.scale) : 1.0);
  return {Demote(block.cos),
          Demote(block.sin),
          hn::Sub(one, ratio),
          hn::Add(one, ratio),
          hn::Mul(hn::Sub(one, relative), hn::Set(df, static_cast<float>(margin))),
          block.inv_freq,
          job.fine32[at.group * TableRows(job) * 2].lane.data() + at.lane};
}

struct FloatRow {
  VF cos;
  VF sin;
};

// As ComputeRow does it in double; |delta| <= 2^-25 of the largest angle of `kTurn`.
template <Turn kTurn>
HWY_INLINE FloatRow ComputeFloatRow(const FloatBlock& block, int64_t base, int64_t position) {
  const DF df;
  const float* fine = block.fine + (position - base) * kFineStride;
  const VF fine_cos = hn::Load(df, fine);
  const VF fine_sin = hn::Load(df, fine + kRotationGroup);
  const VF cos = hn::NegMulAdd(block.sin, fine_sin, hn::Mul(block.cos, fine_cos));
  const VF sin = hn::MulAdd(block.cos, fine_sin, hn::Mul(block.sin, fine_cos));
  if constexpr (kTurn == Turn::kExact) return {cos, sin};
  const VF x = hn::Set(df, static_cast<float>(position));
  const VF delta = hn::NegMulAdd(x, block.inv_freq, hn::Mul(x, block.inv_freq));  // exact
  if constexpr (kTurn == Turn::kQuadratic) {
    return {hn::NegMulAdd(sin, delta, cos), hn::MulAdd(cos, delta, sin)};
  } else {
    const VF square = hn::Mul(delta, delta);
    const VF cos_less_1 = hn::Mul(square, hn::Set(df, -0.5f));
    VF sine = delta;
    if constexpr (kTurn == Turn::kQuintic) {
      sine = hn::MulAdd(hn::Mul(delta, square), hn::Set(df, -1.0f / 6), delta);
    }
    return {hn::Add(cos, hn::NegMulAdd(sin, sine, hn::Mul(cos, cos_less_1))),
            hn::Add(sin, hn::MulAdd(cos, sine, hn::Mul(sin, cos_less_1)))};
  }
}

// Upper halves: bfloat16, halves rounded away from zero. Which way a half goes does
// not matter where both ends agree: it is then not between them.
struct Bounded {
  hn::Vec<DU> bits;
  MF closed;
};

template <bool kScaled>
HWY_INLINE Bounded RoundBounded(const FloatBlock& block, VF value, VF scale) {
  const DU du;
  VF low = hn::MulSub(value, block.less, block.margin);
  VF high = hn::MulAdd(value, block.more, block.margin);
  if constexpr (kScaled) {
    low = hn::Mul(low, scale);
    high = hn::Mul(high, scale);
  }
  const auto half = hn::Set(du, 0x8000);
  const auto low_bits = hn::Add(hn::BitCast(du, low), half);
  const auto high_bits = hn::Add(hn::BitCast(du, high), half);
  return {high_bits, HasNone(hn::Xor(low_bits, high_bits), 0xffff0000)};
}

// As Step, with what the float32 rotation needs.
template <int64_t kPairsOf>
struct alignas(kRotationLine) FloatStep : Step<RotationElement::kBf16, kPairsOf> {
  using Base = Step<RotationElement::kBf16, kPairsOf>;
  static constexpr int64_t kHalfUnits = Base::kUnits / 2;
  std::array<FloatBlock, Base::kUnits> float_blocks;

  void Begin(const RotationJob& job, int64_t block_base, int64_t first_pair) {
    Base::Begin(job, block_base, first_pair);
    for (int64_t u = 0; u < Base::kUnits; ++u) {
      const auto index = static_cast<size_t>(u);
      float_blocks[index] =
          MakeFloatBlock(job, this->blocks[index], first_pair + u * kFloats, block_base);
    }
  }
};

// The values of two units of a step.
struct BoundedRow {
  VH cos;
  VH sin;
  MF closed_low;
  MF closed_high;
};

template <Turn kTurn, bool kScaled>
HWY_INLINE BoundedRow ComputeBoundedRow(const FloatBlock& first, const FloatBlock& second,
                                        int64_t base, int64_t position, VF scale) {
  const DH dh;
  const FloatRow low = ComputeFloatRow<kTurn>(first, base, position);
  const FloatRow high = ComputeFloatRow<kTurn>(second, base, position);
  const Bounded cos_low = RoundBounded<kScaled>(first, low.cos, scale);
  const Bounded sin_low = RoundBounded<kScaled>(first, low.sin, scale);
  const Bounded cos_high = RoundBounded<kScaled>(second, high.cos, scale);
  const Bounded sin_high = RoundBounded<kScaled>(second, high.sin, scale);
  return {hn::ConcatOdd(dh, hn::BitCast(dh, cos_high.bits), hn::BitCast(dh, cos_low.bits)),
          hn::ConcatOdd(dh, hn::BitCast(dh, sin_high.bits), hn::BitCast(dh, sin_low.bits)),
          hn::And(cos_low.closed, sin_low.closed), hn::And(cos_high.closed, sin_high.closed)};
}

// Settles what is open of a row's values of two units, from `unit` on.
template <Turn kTurn, int64_t kPairs>
HWY_NOINLINE void SettleFloats(const RotationJob& job, const FloatStep<kPairs>& step, size_t unit,
                               int64_t position, BoundedRow* row) {
  const DH dh;
  HWY_ALIGN std::array<uint16_t, kHalves> cosines;
  HWY_ALIGN std::array<uint16_t, kHalves> sines;
  hn::Store(row->cos, dh, cosines.data());
  hn::Store(row->sin, dh, sines.data());
  const Part part = PartAt(job, step.base, position);
  const auto settle = [&](size_t i) {
    SettleRow<RotationElement::kBf16, kTurn>(
        job, PartOf(step.blocks[unit + i], part), part.base, position,
        step.pair + static_cast<int64_t>(unit + i) * kFloats, cosines.data() + i * kFloats,
        sines.data() + i * kFloats);
  };
  if (!hn::AllTrue(DF(), row->closed_low)) settle(0);
  if (!hn::AllTrue(DF(), row->closed_high)) settle(1);
  row->cos = hn::Load(dh, cosines.data());
  row->sin = hn::Load(dh, sines.data());
}

template <Turn kTurn, bool kScaled, int64_t kPairs, typename Rows>
HWY_NOINLINE void FillTurnedFloats(const RotationJob& job, const Rows rows,
                                   const FloatStep<kPairs>& step, Run run) {
  constexpr auto kCount = static_cast<size_t>(FloatStep<kPairs>::kHalfUnits);
  using Vectors = std::array<VH, kCount>;
  const VF scale = hn::Set(DF(), static_cast<float>(job.scale));
  RowWriter<Rows, Vectors> writer(rows, step.pair);
  for (int64_t p = run.begin; p < run.end;) {
    const Part part = PartAt(job, step.base, p);
    std::array<FloatBlock, 2 * kCount> blocks = step.float_blocks;
    for (size_t u = 0; u < 2 * kCount; ++u) {
      const Block of_part = PartOf(step.blocks[u], part);
      blocks[u].cos = Demote(of_part.cos);
      blocks[u].sin = Demote(of_part.sin);
    }
    const int64_t end = std::min(part.base + job.fine_rows, run.end);
    for (; p < end; ++p) {
      Vectors cos;
      Vectors sin;
      for (size_t i = 0; i < kCount; ++i) {
        BoundedRow row = ComputeBoundedRow<kTurn, kScaled>(blocks[2 * i], blocks[2 * i + 1],
                                                           part.base, p, scale);
        if (HWY_UNLIKELY(!hn::AllTrue(DF(), hn::And(row.closed_low, row.closed_high)))) {
          SettleFloats<kTurn>(job, step, 2 * i, p, &row);
        }
        cos[i] = row.cos;
        sin[i] = row.sin;
      }
      writer.Put(cos, sin, p);
    }
  }
  writer.PutLate();
}

template <Turn kTurn, int64_t kPairs, typename Rows>
void FillScaledFloats(const RotationJob& job, const Rows& rows, const FloatStep<kPairs>& step,
                      Run run) {
  if (job.scale == 1) return FillTurnedFloats<kTurn, false>(job, rows, step, run);
  FillTurnedFloats<kTurn, true>(job, rows, step, run);
}

// REQUIRES: DecidesInFloat(job).
template <int64_t kPairs, typename Rows>
void FillStep(const RotationJob& job, const Rows& rows, const FloatStep<kPairs>& step, Run run) {
  switch (step.turn) {
    case Turn::kExact:
      return FillTurnedFloats<Turn::kExact, false>(job, rows, step, run);
    case Turn::kQuadratic:
      return FillScaledFloats<Turn::kQuadratic>(job, rows, step, run);
    case Turn::kCubic:
      return FillScaledFloats<Turn::kCubic>(job, rows, step, run);
    case Turn::kQuintic:
      return FillScaledFloats<Turn::kQuintic>(job, rows, step, run);
    case Turn::kDirect:
      return FillTurned<Turn::kDirect>(job, rows, step, run);
  }
}

#endif  // POSENC_HAS_ROTATION_VECTORS
}  // namespace HWY_NAMESPACE
}  // namespace posenc
HWY_AFTER_NAMESPACE();

#endif  // include guard of this instruction set
