#include "lib/numeric/rotation_kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "lib/numeric/sin_cos.h"

// Compiled once for each instruction set; the best is chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/numeric/rotation_kernel.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace posenc {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_NATIVE_FMA || HWY_ARCH_ARM_A64

bool IsUsable() { return true; }

using DF = hn::CappedTag<float, kRotationGroup>;
using DD = hn::Repartition<double, DF>;  // half as many lanes
using DU = hn::RebindToUnsigned<DF>;
using DI = hn::RebindToSigned<DF>;
using VF = hn::Vec<DF>;
using VD = hn::Vec<DD>;
using MF = hn::Mask<DF>;

constexpr int64_t kFloats = static_cast<int64_t>(HWY_MIN(HWY_LANES(float), kRotationGroup));
constexpr int64_t kDoubles = kFloats / 2;

// As many doubles as a vector of floats has lanes.
struct Pair {
  VD low;
  VD high;
};

HWY_INLINE Pair LoadPair(const double* lanes) {
  const DD d;
  return {hn::Load(d, lanes), hn::Load(d, lanes + kDoubles)};
}

HWY_INLINE VF Demote(const Pair& v) {
  const hn::Half<DF> half;
  return hn::Combine(DF(), hn::DemoteTo(half, v.high), hn::DemoteTo(half, v.low));
}

HWY_INLINE Pair Promote(VF v) {
  const DD d;
  return {hn::PromoteTo(d, hn::LowerHalf(v)), hn::PromoteTo(d, hn::UpperHalf(hn::Half<DF>(), v))};
}

struct SinCosVectors {
  VD sin;
  VD cos;
};

// SinCosOfTurns (sin_cos.h), in lanes.
HWY_INLINE SinCosVectors SinCos(VD x, VD rate_hi, VD rate_lo) {
  const DD d;
  const hn::RebindToUnsigned<DD> du;
  const auto c = [d](double value) HWY_ATTR { return hn::Set(d, value); };
  const VD product = hn::Mul(x, rate_hi);
  const VD tail = hn::MulAdd(x, rate_lo, hn::MulSub(x, rate_hi, product));

  const VD round = c(0x1.8p52);
  const VD shifted = hn::MulAdd(product, c(4), round);
  const VD rest = hn::NegMulAdd(hn::Sub(shifted, round), c(0.25), product);
  const VD turn = hn::Add(rest, tail);
  const VD turn_tail = hn::Sub(tail, hn::Sub(turn, rest));

  const VD two_pi = c(kTwoPiDoubles.hi);
  const VD r = hn::Mul(turn, two_pi);
  const VD r_tail = hn::MulAdd(turn, c(kTwoPiDoubles.lo),
                               hn::MulAdd(turn_tail, two_pi, hn::MulSub(turn, two_pi, r)));

  const VD z = hn::Mul(r, r);
  VD sin_series = c(kSinCoefficients.back());
  for (size_t i = kSinCoefficients.size() - 1; i-- > 0;) {
    sin_series = hn::MulAdd(sin_series, z, c(kSinCoefficients[i]));
  }
  VD cos_series = c(kCosCoefficients.back());
  for (size_t i = kCosCoefficients.size() - 1; i-- > 0;) {
    cos_series = hn::MulAdd(cos_series, z, c(kCosCoefficients[i]));
  }
  const VD half = hn::Mul(z, c(0.5));
  const VD head = hn::Sub(c(1), half);
  const VD s = hn::Add(r, hn::MulAdd(hn::Mul(r, z), sin_series, hn::Mul(r_tail, head)));
  const VD low = hn::MulAdd(hn::Mul(z, z), cos_series, hn::Neg(hn::Mul(r, r_tail)));
  const VD k = hn::Add(head, hn::Add(hn::Sub(hn::Sub(c(1), head), half), low));

  // The quarter turns that were taken away swap and negate.
  const auto quarters = hn::BitCast(du, shifted);
  const auto one = hn::Set(du, 1);
  const auto two = hn::Set(du, 2);
  const auto swapped = hn::RebindMask(d, hn::TestBit(quarters, one));
  const auto sin_sign = hn::ShiftLeft<62>(hn::And(quarters, two));
  const auto cos_sign = hn::ShiftLeft<62>(hn::And(hn::Add(quarters, one), two));
  return {hn::Xor(hn::IfThenElse(swapped, k, s), hn::BitCast(d, sin_sign)),
          hn::Xor(hn::IfThenElse(swapped, s, k), hn::BitCast(d, cos_sign))};
}

// Which lanes round to float32 within kMargin units of a double from a tie. A
// normal float32 keeps all but the low 29 bits of a double.
HWY_INLINE MF NearTieOfFloat(const Pair& v) {
  constexpr uint32_t kHalf = uint32_t{1} << 28;
  constexpr uint32_t kMask = 2 * kHalf - 1;
  const DU du;
  const DI di;
  const auto low_words = hn::ConcatEven(du, hn::BitCast(du, v.high), hn::BitCast(du, v.low));
  const auto offset = hn::Set(du, kMargin - kHalf);
  const auto distance = hn::And(hn::Add(low_words, offset), hn::Set(du, kMask));
  return hn::RebindMask(
      DF(), hn::Lt(hn::BitCast(di, distance), hn::Set(di, static_cast<int32_t>(2 * kMargin))));
}

// Which lanes were rounded to float32 onto a tie of a type with `kDropped` bits
// less: on which side of it the value lies is lost. (A float32 that is no tie
// itself is on the value's side of every tie.)
template <int kDropped>
HWY_INLINE MF OnTieOfShorter(VF v) {
  const DU du;
  const auto tail = hn::And(hn::BitCast(du, v), hn::Set(du, (uint32_t{1} << kDropped) - 1));
  return hn::RebindMask(DF(), hn::Eq(tail, hn::Set(du, uint32_t{1} << (kDropped - 1))));
}

template <RotationElement kElement>
struct Element;

template <>
struct Element<RotationElement::kF32> {
  using Type = float;
  static constexpr float kMinNormal = 0x1p-126f;
  static HWY_INLINE void Store(VF v, float* out) { hn::StoreU(v, DF(), out); }
};

template <>
struct Element<RotationElement::kF64> {
  using Type = double;
  static constexpr float kMinNormal = 0x1p-126f;
  static HWY_INLINE void Store(VF v, double* out) {
    const DD d;
    const Pair wide = Promote(v);
    hn::StoreU(wide.low, d, out);
    hn::StoreU(wide.high, d, out + kDoubles);
  }
};

HWY_INLINE void StoreWords(hn::Vec<DU> v, uint16_t* out) {
  const hn::Rebind<uint16_t, DF> dw;
  hn::StoreU(hn::DemoteTo(dw, hn::BitCast(DI(), v)), dw, out);
}

template <>
struct Element<RotationElement::kBf16> {
  using Type = uint16_t;
  static constexpr int kDroppedBits = 16;
  static constexpr float kMinNormal = 0x1p-126f;
  static HWY_INLINE void Store(VF v, uint16_t* out) {  // RoundToBf16 (dtype.h)
    const DU du;
    const auto bits = hn::BitCast(du, v);
    const auto lowest_kept = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    StoreWords(hn::ShiftRight<16>(hn::Add(bits, hn::Add(lowest_kept, hn::Set(du, 0x7fff)))), out);
  }
};

template <>
struct Element<RotationElement::kF16> {
  using Type = uint16_t;
  static constexpr int kDroppedBits = 13;
  static constexpr float kMinNormal = 0x1p-14f;
  static HWY_INLINE void Store(VF v, uint16_t* out) {  // RoundToF16 (dtype.h)
    const DF df;
    const DU du;
    const DI di;
    const auto bits = hn::BitCast(du, v);
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffff));
    const auto lowest_kept = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
    const auto normal = hn::ShiftRight<13>(
        hn::Add(magnitude, hn::Add(lowest_kept, hn::Set(du, 0xfff - 0x38000000u))));
    const VF shifted = hn::Add(hn::BitCast(df, magnitude), hn::Set(df, 0.5f));
    const auto subnormal = hn::Sub(hn::BitCast(du, shifted), hn::Set(du, 0x3f000000));
    const auto compare = hn::BitCast(di, magnitude);
    const auto is_subnormal = hn::RebindMask(du, hn::Lt(compare, hn::Set(di, 0x38800000)));
    const auto is_infinite = hn::RebindMask(du, hn::Gt(compare, hn::Set(di, 0x477fefff)));
    const auto rounded = hn::IfThenElse(is_infinite, hn::Set(du, 0x7c00),
                                        hn::IfThenElse(is_subnormal, subnormal, normal));
    StoreWords(hn::Or(sign, rounded), out);
  }
};

// What one block of rows of kFloats pairs needs.
struct Block {
  Pair cos;  // of the block's first row
  Pair sin;
  VF least;  // values nearer to zero have lost their relative precision
};

HWY_INLINE Block MakeBlock(const RotationJob& job, const double* turns_hi, const double* turns_lo,
                           int64_t base, float min_normal) {
  const DD d;
  const Pair hi = LoadPair(turns_hi);
  const Pair lo = LoadPair(turns_lo);
  const VD x = hn::Set(d, static_cast<double>(base));
  const SinCosVectors low = SinCos(x, hi.low, lo.low);
  const SinCosVectors high = SinCos(x, hi.high, lo.high);

  const double scale = job.exact ? job.scale : 1.0;
  const VD s = hn::Set(d, scale);
  // In the first eighth of a turn no term cancels another.
  const VD last = hn::Set(d, static_cast<double>(base + job.fine_rows));
  const VD near_zero = hn::Set(d, std::max(scale * kLeastRotated, static_cast<double>(min_normal)));
  const VD far_from_zero = hn::Set(d, static_cast<double>(min_normal));
  const auto least = [&](VD turns) HWY_ATTR {
    const auto small = hn::Lt(hn::Mul(turns, last), hn::Set(d, base < 0 ? 0.0 : 0.125));
    return hn::IfThenZeroElse(hn::Eq(turns, hn::Zero(d)),
                              hn::IfThenElse(small, far_from_zero, near_zero));
  };
  return {{hn::Mul(low.cos, s), hn::Mul(high.cos, s)},
          {hn::Mul(low.sin, s), hn::Mul(high.sin, s)},
          Demote({least(hi.low), least(hi.high)})};
}

struct Row {
  Pair cos;
  Pair sin;
};

// e^(i·base·w) · e^(i·n·w).
HWY_INLINE Row Rotate(const Block& block, const double* fine) {
  const Pair c = LoadPair(fine);
  const Pair s = LoadPair(fine + kRotationGroup);
  return {{hn::NegMulAdd(block.sin.low, s.low, hn::Mul(block.cos.low, c.low)),
           hn::NegMulAdd(block.sin.high, s.high, hn::Mul(block.cos.high, c.high))},
          {hn::MulAdd(block.cos.low, s.low, hn::Mul(block.sin.low, c.low)),
           hn::MulAdd(block.cos.high, s.high, hn::Mul(block.sin.high, c.high))}};
}

// Turns (cos, sin) by what the rounding of an angle to float32 has added to it:
// |delta| <= 2^-8, so the first terms left out are below 2^-57.
HWY_INLINE void TurnByDelta(VD delta, VD* cos, VD* sin) {
  const DD d;
  const VD square = hn::Mul(delta, delta);
  const VD cos_less_1 =
      hn::Mul(square, hn::MulAdd(square, hn::Set(d, InverseFactorial(4)), hn::Set(d, -0.5)));
  const VD sine = hn::MulAdd(
      hn::Mul(delta, square),
      hn::MulAdd(square, hn::Set(d, InverseFactorial(5)), hn::Set(d, -InverseFactorial(3))), delta);
  const VD c = *cos;
  const VD s = *sin;
  *cos = hn::Add(c, hn::NegMulAdd(s, sine, hn::Mul(c, cos_less_1)));
  *sin = hn::Add(s, hn::MulAdd(c, sine, hn::Mul(s, cos_less_1)));
}

// Where a row of kFloats pairs goes, of which `valid` exist.
template <typename T>
struct Target {
  T* cos;
  T* sin;
  int64_t valid;
};

template <RotationElement kElement, typename T>
HWY_INLINE void StoreValid(VF v, T* out, int64_t valid) {
  if (HWY_LIKELY(valid >= kFloats)) return Element<kElement>::Store(v, out);
  HWY_ALIGN std::array<T, kRotationGroup> whole;
  Element<kElement>::Store(v, whole.data());
  std::copy_n(whole.data(), valid, out);
}

template <typename T>
HWY_NOINLINE void Decide(const RotationJob& job, MF open, int64_t position, int64_t pair,
                         const Target<T>& target) {
  std::array<uint8_t, 8> bytes = {};
  hn::StoreMaskBits(DF(), open, bytes.data());
  for (uint32_t bits = bytes[0] | uint32_t{bytes[1]} << 8; bits != 0; bits &= bits - 1) {
    const int64_t lane = std::countr_zero(bits);
    if (lane >= target.valid) return;
    job.decide(job.rotation, position, pair + lane, target.cos + lane, target.sin + lane);
  }
}

template <RotationElement kElement>
HWY_INLINE void FinishExact(const RotationJob& job, const Row& row, VF least, int64_t position,
                            int64_t pair, const Target<typename Element<kElement>::Type>& target) {
  const VF cos = Demote(row.cos);
  const VF sin = Demote(row.sin);
  MF open = hn::Lt(hn::Min(hn::Abs(cos), hn::Abs(sin)), least);
  if constexpr (kElement == RotationElement::kF32) {
    open = hn::Or(open, hn::Or(NearTieOfFloat(row.cos), NearTieOfFloat(row.sin)));
  } else {
    constexpr int kDropped = Element<kElement>::kDroppedBits;
    open = hn::Or(open, hn::Or(OnTieOfShorter<kDropped>(cos), OnTieOfShorter<kDropped>(sin)));
  }
  StoreValid<kElement>(cos, target.cos, target.valid);
  StoreValid<kElement>(sin, target.sin, target.valid);
  if (HWY_UNLIKELY(!hn::AllFalse(DF(), open))) Decide(job, open, position, pair, target);
}

template <RotationElement kElement>
HWY_INLINE void FinishFloat32(const RotationJob& job, const Row& row, VF least, int64_t position,
                              int64_t pair,
                              const Target<typename Element<kElement>::Type>& target) {
  const VF cos = Demote(row.cos);
  const VF sin = Demote(row.sin);
  const MF near_zero = hn::Lt(hn::Min(hn::Abs(cos), hn::Abs(sin)), least);
  const MF open = hn::Or(near_zero, hn::Or(NearTieOfFloat(row.cos), NearTieOfFloat(row.sin)));
  const VF scale = hn::Set(DF(), static_cast<float>(job.scale));
  StoreValid<kElement>(hn::Mul(cos, scale), target.cos, target.valid);
  StoreValid<kElement>(hn::Mul(sin, scale), target.sin, target.valid);
  if (HWY_UNLIKELY(!hn::AllFalse(DF(), open))) Decide(job, open, position, pair, target);
}

// FLOAT32 angles that a block can rotate to.
HWY_INLINE bool CanRotate(const Pair& inv_freq, int64_t last) {
  const DD d;
  const VD limit = hn::Set(d, kMaxRotatedAngle);
  const VD x = hn::Set(d, static_cast<double>(last));
  return hn::AllTrue(d, hn::Le(hn::Mul(inv_freq.low, x), limit)) &&
         hn::AllTrue(d, hn::Le(hn::Mul(inv_freq.high, x), limit));
}

// Rows [begin, end) of a block, kFloats pairs from `pair` on.
template <RotationElement kElement>
void FillBlock(const RotationJob& job, int64_t pair, int64_t base, int64_t begin, int64_t end) {
  using T = typename Element<kElement>::Type;
  const DD d;
  const int64_t group = pair / kRotationGroup;
  const int64_t lane = pair % kRotationGroup;
  const auto target = [&](int64_t position) {
    const int64_t row = position - job.first;
    return Target<T>{static_cast<T*>(job.cos) + row * job.cos_stride + pair,
                     static_cast<T*>(job.sin) + row * job.sin_stride + pair, job.pairs - pair};
  };
  const Block block =
      MakeBlock(job, job.turns_hi[group].lane.data() + lane, job.turns_lo[group].lane.data() + lane,
                base, job.exact ? Element<kElement>::kMinNormal : 0x1p-126f);
  const auto fine = [&](int64_t position) {
    return job.fine[(group * job.fine_rows + position - base) * 2].lane.data() + lane;
  };
  if constexpr (kElement != RotationElement::kF64) {
    if (job.exact) {
      for (int64_t p = begin; p < end; ++p) {
        FinishExact<kElement>(job, Rotate(block, fine(p)), block.least, p, pair, target(p));
      }
      return;
    }
  }

  const Pair inv_freq = LoadPair(job.inv_freq[group].lane.data() + lane);
  constexpr int64_t kExactIntegers = int64_t{1} << 24;  // of float32
  const bool rotate = base > -kExactIntegers && end <= kExactIntegers &&
                      CanRotate(inv_freq, std::max(std::abs(base), end));
  for (int64_t p = begin; p < end; ++p) {
    const VD x = hn::Set(d, static_cast<double>(static_cast<float>(p)));
    const Pair product = {hn::Mul(inv_freq.low, x), hn::Mul(inv_freq.high, x)};  // exact
    const Pair angle = Promote(Demote(product));
    Row row;
    if (HWY_LIKELY(rotate)) {
      row = Rotate(block, fine(p));
      TurnByDelta(hn::Sub(angle.low, product.low), &row.cos.low, &row.sin.low);
      TurnByDelta(hn::Sub(angle.high, product.high), &row.cos.high, &row.sin.high);
    } else {
      const VD hi = hn::Set(d, kInverseTwoPiDoubles.hi);
      const VD lo = hn::Set(d, kInverseTwoPiDoubles.lo);
      const SinCosVectors low = SinCos(angle.low, hi, lo);
      const SinCosVectors high = SinCos(angle.high, hi, lo);
      row = {{low.cos, high.cos}, {low.sin, high.sin}};
    }
    FinishFloat32<kElement>(job, row, block.least, p, pair, target(p));
  }
}

// A chunk of rows is filled group after group, so that a group's table stays in
// the first-level cache and the rows in the second.
constexpr int64_t kChunkRows = 512;

template <RotationElement kElement>
void FillAll(const RotationJob& job) {
  const int64_t last = job.first + job.count;
  for (int64_t chunk = job.first; chunk < last; chunk += kChunkRows) {
    const int64_t chunk_end = std::min(chunk + kChunkRows, last);
    for (int64_t pair = 0; pair < job.pairs; pair += kFloats) {
      int64_t base = chunk & -job.fine_rows;
      for (; base < chunk_end; base += job.fine_rows) {
        FillBlock<kElement>(job, pair, base, std::max(base, chunk),
                            std::min(base + job.fine_rows, chunk_end));
      }
    }
  }
}

void Fill(const RotationJob& job) {
  switch (job.element) {
    case RotationElement::kF32:
      return FillAll<RotationElement::kF32>(job);
    case RotationElement::kF64:
      return FillAll<RotationElement::kF64>(job);
    case RotationElement::kF16:
      return FillAll<RotationElement::kF16>(job);
    case RotationElement::kBf16:
      return FillAll<RotationElement::kBf16>(job);
  }
}

#else  // no fused multiply-add

bool IsUsable() { return false; }
void Fill(const RotationJob&) {}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace posenc
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc {

HWY_EXPORT(IsUsable);
HWY_EXPORT(Fill);

bool HasRotationKernel() { return HWY_DYNAMIC_DISPATCH(IsUsable)(); }

void RunRotationKernel(const RotationJob& job) { HWY_DYNAMIC_DISPATCH(Fill)(job); }

}  // namespace posenc
#endif
