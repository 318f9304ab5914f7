// A row of the rotation kernel in double: the pairs that a vector of float32 holds, from
// their tables to rounded values.
// Included once for each instruction set (hwy/foreach_target.h).
#if defined(POSENC_LIB_NUMERIC_ROTATION_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_LIB_NUMERIC_ROTATION_ROW_INL_H_
#undef POSENC_LIB_NUMERIC_ROTATION_ROW_INL_H_
#else
#define POSENC_LIB_NUMERIC_ROTATION_ROW_INL_H_
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "hwy/highway.h"
#include "lib/numeric/rotation_kernel.h"
#include "lib/numeric/rotation_store-inl.h"
#include "lib/numeric/rotation_vectors-inl.h"
#include "lib/numeric/sin_cos.h"

HWY_BEFORE_NAMESPACE();
namespace posenc {
namespace HWY_NAMESPACE {
#if POSENC_HAS_ROTATION_VECTORS

// What the rows of a block have in common, for kFloats pairs.
struct Block {
  Pair cos;  // of the block's base
  Pair sin;
  VF least;     // values nearer to zero have lost their relative precision
  VF inv_freq;  // FLOAT32 only
  const double* fine;
  const double* coarse;
};

// Doubles between two rows of a fine table.
constexpr int64_t kFineStride = 2 * kRotationGroup;

// Rows of a block, and of a group's table.
HWY_INLINE int64_t BlockRows(const RotationJob& job) { return job.fine_rows * job.coarse_rows; }
HWY_INLINE int64_t TableRows(const RotationJob& job) { return job.fine_rows + job.coarse_rows; }

// Where the pairs from `pair` on stand in the tables.
struct Lanes {
  int64_t group;
  size_t lane;
  explicit Lanes(int64_t pair)
      : group(pair / kRotationGroup), lane(static_cast<size_t>(pair % kRotationGroup)) {}
};

HWY_INLINE Block MakeBlock(const RotationJob& job, int64_t pair, int64_t base, float min_normal) {
  const DD d;
  const Lanes at(pair);
  const Pair hi = LoadPair(job.turns_hi[at.group].lane.data() + at.lane);
  const Pair lo = LoadPair(job.turns_lo[at.group].lane.data() + at.lane);
  const VD x = hn::Set(d, static_cast<double>(base));
  const SinCosVectors low = SinCos(x, hi.low, lo.low);
  const SinCosVectors high = SinCos(x, hi.high, lo.high);

  const double scale = job.exact ? job.scale : 1.0;
  const VD s = hn::Set(d, scale);
  // In the first eighth of a turn no term of a sine cancels another.
  const VD last = hn::Set(d, static_cast<double>(base + BlockRows(job)));
  constexpr double kRoundedUp = 1 + 0x1p-22;  // values in float32 are compared with it
  const VD near_zero = hn::Set(
      d, std::max(scale * LeastRotated(job.exact) * kRoundedUp, static_cast<double>(min_normal)));
  const VD far_from_zero = hn::Set(d, static_cast<double>(min_normal));
  const auto least = [&](VD turns) HWY_ATTR {
    const auto small = hn::Lt(hn::Mul(hn::Abs(turns), last), hn::Set(d, base < 0 ? 0.0 : 0.125));
    return hn::IfThenZeroElse(hn::Eq(turns, hn::Zero(d)),
                              hn::IfThenElse(small, far_from_zero, near_zero));
  };
  const double* fine = job.fine[at.group * TableRows(job) * 2].lane.data() + at.lane;
  return {{hn::Mul(low.cos, s), hn::Mul(high.cos, s)},
          {hn::Mul(low.sin, s), hn::Mul(high.sin, s)},
          Demote({least(hi.low), least(hi.high)}),
          job.exact ? hn::Zero(DF()) : hn::Load(DF(), job.inv_freq[at.group].lane.data() + at.lane),
          fine,
          fine + job.fine_rows * kFineStride};
}

struct Row {
  Pair cos;
  Pair sin;
};

// e^(i·base·w) · e^(i·n·w), the second from a row of a table.
HWY_INLINE Row Rotate(const Block& block, const double* row) {
  const Pair c = LoadPair(row);
  const Pair s = LoadPair(row + kRotationGroup);
  return {{hn::NegMulAdd(block.sin.low, s.low, hn::Mul(block.cos.low, c.low)),
           hn::NegMulAdd(block.sin.high, s.high, hn::Mul(block.cos.high, c.high))},
          {hn::MulAdd(block.cos.low, s.low, hn::Mul(block.sin.low, c.low)),
           hn::MulAdd(block.cos.high, s.high, hn::Mul(block.sin.high, c.high))}};
}

// fine_rows rows of a block.
struct Part {
  int64_t base;
  int64_t index;
};

HWY_INLINE Part PartAt(const RotationJob& job, int64_t block_base, int64_t position) {
  const int64_t base = position & -job.fine_rows;
  return {base, (base - block_base) >> std::countr_zero(static_cast<uint64_t>(job.fine_rows))};
}

// The block as the part's rows begin with it.
HWY_INLINE Block PartOf(const Block& block, Part part) {
  const Row base = Rotate(block, block.coarse + part.index * kFineStride);
  return {base.cos, base.sin, block.least, block.inv_freq, block.fine, block.coarse};
}

// What happens to a rotated row. FLOAT32: how many terms of the series of cosine and
// sine make up for the rounding of an angle to float32; kDirect computes both anew.
enum class Turn { kExact, kQuadratic, kCubic, kQuintic, kDirect };

// Turns (cos, sin) by what the rounding to float32 has added to an angle, |delta| <=
// 2^-25 of the largest one of `kTurn`. The first terms left out are below 2^-52.5.
template <Turn kTurn>
HWY_INLINE void TurnByDelta(VD delta, VD* cos, VD* sin) {
  const DD d;
  const VD c = *cos;
  const VD s = *sin;
  if constexpr (kTurn == Turn::kQuadratic) {
    // Three shears make a rotation: by tan(delta / 2), sin(delta), tan(delta / 2).
    const VD half = hn::Mul(delta, hn::Set(d, 0.5));
    const VD sheared = hn::NegMulAdd(half, s, c);
    *sin = hn::MulAdd(delta, sheared, s);
    *cos = hn::NegMulAdd(half, *sin, sheared);
    return;
  }
  const VD square = hn::Mul(delta, delta);
  VD cos_less_1;
  VD sine;
  if constexpr (kTurn == Turn::kCubic) {
    cos_less_1 = hn::Mul(square, hn::Set(d, -0.5));
    sine = hn::MulAdd(hn::Mul(delta, square), hn::Set(d, -InverseFactorial(3)), delta);
  } else {
    cos_less_1 =
        hn::Mul(square, hn::MulAdd(square, hn::Set(d, InverseFactorial(4)), hn::Set(d, -0.5)));
    sine = hn::MulAdd(
        hn::Mul(delta, square),
        hn::MulAdd(square, hn::Set(d, InverseFactorial(5)), hn::Set(d, -InverseFactorial(3))),
        delta);
  }
  *cos = hn::NegMulAdd(s, sine, hn::MulAdd(c, cos_less_1, c));
  *sin = hn::MulAdd(c, sine, hn::MulAdd(s, cos_less_1, s));
}

// How FLOAT32 gets to the angles of the block at `base`, of `pairs` pairs.
HWY_INLINE Turn TurnOf(const RotationJob& job, int64_t base, int64_t pair, int64_t pairs) {
  constexpr int64_t kExactIntegers = int64_t{1} << 24;  // of float32
  if (job.exact) return Turn::kExact;
  const int64_t end = base + BlockRows(job);
  if (base <= -kExactIntegers || end > kExactIntegers) return Turn::kDirect;
  float largest = 0;
  for (int64_t i = pair; i < pair + pairs; ++i) {
    const float inv_freq = std::fabs(job.inv_freq[i / kRotationGroup].lane[i % kRotationGroup]);
    largest = std::max(largest, inv_freq);
    if (inv_freq != 0 && inv_freq < kMinRotatedInvFreq) return Turn::kDirect;
  }
  const double angle = largest * static_cast<double>(std::max(std::abs(base), end));
  if (angle <= kMaxQuadraticAngle) return Turn::kQuadratic;
  if (angle <= kMaxCubicAngle) return Turn::kCubic;
  return angle <= kMaxRotatedAngle ? Turn::kQuintic : Turn::kDirect;
}

// cos and sin of kFloats pairs of the row of a position; FLOAT32: without the scale.
template <Turn kTurn>
HWY_INLINE Row ComputeRow(const Block& block, int64_t base, int64_t position) {
  const double* fine = block.fine + (position - base) * kFineStride;
  if constexpr (kTurn == Turn::kExact) return Rotate(block, fine);
  const VF x = hn::Set(DF(), static_cast<float>(position));
  const VF angle = hn::Mul(x, block.inv_freq);
  if constexpr (kTurn == Turn::kDirect) {
    const DD d;
    const VD hi = hn::Set(d, kInverseTwoPiDoubles.hi);
    const VD lo = hn::Set(d, kInverseTwoPiDoubles.lo);
    const Pair radians = Promote(angle);
    const SinCosVectors low = SinCos(radians.low, hi, lo);
    const SinCosVectors high = SinCos(radians.high, hi, lo);
    return {{low.cos, high.cos}, {low.sin, high.sin}};
  } else {
    Row row = Rotate(block, fine);
    const Pair delta = Promote(hn::NegMulAdd(x, block.inv_freq, angle));  // exact
    TurnByDelta<kTurn>(delta.low, &row.cos.low, &row.sin.low);
    TurnByDelta<kTurn>(delta.high, &row.cos.high, &row.sin.high);
    return row;
  }
}

// kFloats values each.
struct Rounded {
  VF cos;
  VF sin;
};

// Of FLOAT32, which multiplies after it has rounded.
struct Scale {
  bool is_one;
  VF factor;
  explicit Scale(double scale)
      : is_one(scale == 1), factor(hn::Set(DF(), static_cast<float>(scale))) {}
};

template <bool kExact>
HWY_INLINE Rounded Scaled(VF cos, VF sin, [[maybe_unused]] const Scale& scale) {
  if (kExact || scale.is_one) return {cos, sin};
  return {hn::Mul(cos, scale.factor), hn::Mul(sin, scale.factor)};
}

// Tells `closed` (ClosedLanes, AllClosed) about them.
template <RotationElement kElement, bool kExact, class Closed>
HWY_INLINE Rounded RoundRow(const Row& row, VF least, const Scale& scale, Closed* closed) {
  const VF cos = Demote(row.cos);
  const VF sin = Demote(row.sin);
  if constexpr (!kExact || kElement == RotationElement::kF32) {
    closed->AddFloats(row.cos, row.sin, cos, sin, least);
  } else {
    constexpr int kDropped = Element<kElement>::kDroppedBits;
    const MF on_tie = hn::Or(OnTieOfShorter<kDropped>(cos), OnTieOfShorter<kDropped>(sin));
    closed->Add(hn::AndNot(on_tie, hn::Ge(MinMagnitude(cos, sin), least)));
  }
  return Scaled<kExact>(cos, sin, scale);
}

// How far the values may lie from the exact ones; `scale` is theirs.
HWY_INLINE Pair CosErrors(bool exact, double scale) {
  const VD error = hn::Set(DD(), RotatedError(exact) * scale);
  return {error, error};
}

HWY_INLINE Pair SinErrors(const Pair& values, VF least, bool exact, double scale) {
  const DD d;
  const Pair leasts = Promote(least);
  const auto error = [&](VD value, VD smallest) HWY_ATTR {
    const auto cancels = hn::Gt(smallest, hn::Set(d, 0.5 * scale * LeastRotated(exact)));
    return hn::Mul(hn::Set(d, RotatedError(exact)),
                   hn::IfThenElse(cancels, hn::Set(d, scale), hn::Abs(value)));
  };
  return {error(values.low, leasts.low), error(values.high, leasts.high)};
}

// Whether both ends of each value's error interval round to one float32: of most values
// that the quick tests leave open they do.
HWY_INLINE bool RoundsOneWay(const Row& row, VF least, bool exact, double scale) {
  const DU du;
  const auto rounds_one_way = [&](const Pair& v, const Pair& errors) HWY_ATTR {
    const VF from = Demote({hn::Sub(v.low, errors.low), hn::Sub(v.high, errors.high)});
    const VF to = Demote({hn::Add(v.low, errors.low), hn::Add(v.high, errors.high)});
    return hn::Eq(hn::BitCast(du, from), hn::BitCast(du, to));
  };
  return hn::AllTrue(du, hn::And(rounds_one_way(row.cos, CosErrors(exact, scale)),
                                 rounds_one_way(row.sin, SinErrors(row.sin, least, exact, scale))));
}

HWY_INLINE std::array<double, kFloats> LanesOf(const Pair& v) {
  std::array<double, kFloats> lanes;
  hn::StoreU(v.low, DD(), lanes.data());
  hn::StoreU(v.high, DD(), lanes.data() + kDoubles);
  return lanes;
}

// kFloats elements each of a row, the open ones settled. Computes everything again:
// what it took from its caller would be in memory there all the time.
template <RotationElement kElement, Turn kTurn>
HWY_NOINLINE void SettleRow(const RotationJob& job, const Block& block, int64_t base,
                            int64_t position, int64_t pair, typename Element<kElement>::Type* cos,
                            typename Element<kElement>::Type* sin) {
  const Row row = ComputeRow<kTurn>(block, base, position);
  ClosedLanes closed;
  const Rounded rounded =
      RoundRow<kElement, kTurn == Turn::kExact>(row, block.least, Scale(job.scale), &closed);
  Elements<kElement> elements;
  Element<kElement>::From(rounded.cos, elements.data());
  StoreAll(elements, cos);
  Element<kElement>::From(rounded.sin, elements.data());
  StoreAll(elements, sin);

  const double scale = job.exact ? job.scale : 1.0;
  const auto cosines = LanesOf(row.cos);
  const auto sines = LanesOf(row.sin);
  const auto cos_errors = LanesOf(CosErrors(job.exact, scale));
  const auto sin_errors = LanesOf(SinErrors(row.sin, block.least, job.exact, scale));
  std::array<uint8_t, 8> bytes = {};
  hn::StoreMaskBits(DF(), hn::Not(closed.lanes()), bytes.data());
  for (uint32_t bits = bytes[0] | uint32_t{bytes[1]} << 8; bits != 0; bits &= bits - 1) {
    const auto lane = static_cast<size_t>(std::countr_zero(bits));
    if (pair + static_cast<int64_t>(lane) >= job.pairs) return;
    job.settle(job.rotation,
               {position, pair + static_cast<int64_t>(lane), cosines[lane], sines[lane],
                cos_errors[lane], sin_errors[lane]},
               cos + lane, sin + lane);
  }
}

#endif  // POSENC_HAS_ROTATION_VECTORS
}  // namespace HWY_NAMESPACE
}  // namespace posenc
HWY_AFTER_NAMESPACE();

#endif  // include guard of this instruction set
