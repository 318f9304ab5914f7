// What rotation_kernel.cc is made of, in vectors: sines and cosines, rotations, and
// the tests for values that round either way.
// Included once for each instruction set (hwy/foreach_target.h).
#if defined(POSENC_LIB_NUMERIC_ROTATION_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_LIB_NUMERIC_ROTATION_VECTORS_INL_H_
#undef POSENC_LIB_NUMERIC_ROTATION_VECTORS_INL_H_
#else
#define POSENC_LIB_NUMERIC_ROTATION_VECTORS_INL_H_
#endif

#include <array>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "lib/numeric/rotation_kernel.h"
#include "lib/numeric/sin_cos.h"

// x·rate is exact to 106 bits only with a fused multiply-add.
#undef POSENC_HAS_ROTATION_VECTORS
#if HWY_NATIVE_FMA || HWY_ARCH_ARM_A64
#define POSENC_HAS_ROTATION_VECTORS 1
#else
#define POSENC_HAS_ROTATION_VECTORS 0
#endif

HWY_BEFORE_NAMESPACE();
namespace posenc {
namespace HWY_NAMESPACE {
#if POSENC_HAS_ROTATION_VECTORS

namespace hn = hwy::HWY_NAMESPACE;

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

// Which lanes have none of `bits`.
HWY_INLINE MF HasNone(hn::Vec<DU> v, uint32_t bits) {
  const DU du;
#if HWY_TARGET == HWY_AVX3
  return MF{_mm512_testn_epi32_mask(v.raw, hn::Set(du, bits).raw)};
#else
  return hn::RebindMask(DF(), hn::Eq(hn::And(v, hn::Set(du, bits)), hn::Zero(du)));
#endif
}

// min(|a|, |b|).
HWY_INLINE VF MinMagnitude(VF a, VF b) {
#if HWY_TARGET == HWY_AVX3
  return VF{_mm512_range_ps(a.raw, b.raw, 0b1010)};  // the smaller magnitude, its sign cleared
#else
  return hn::Min(hn::Abs(a), hn::Abs(b));
#endif
}

// A normal float32 keeps all but the low 29 bits of a double: those of them from
// kMargin's on, where half a unit was taken away and kMargin added, are zero where the
// double lies within kMargin of a tie.
constexpr uint32_t kHalfUnit = uint32_t{1} << 28;
constexpr uint32_t kDistanceBits = (2 * kHalfUnit - 1) & ~(2 * kMargin - 1);

HWY_INLINE hn::Vec<DU> DistanceToTie(hn::Vec<DU> low_words) {
  return hn::Add(low_words, hn::Set(DU(), kMargin - kHalfUnit));
}

HWY_INLINE hn::Vec<DU> LowWords(const Pair& v) {
  const DU du;
  return hn::ConcatEven(du, hn::BitCast(du, v.high), hn::BitCast(du, v.low));
}

// The same in an order of the machine's choice.
HWY_INLINE hn::Vec<DU> LowWordsInAnyOrder(const Pair& v) {
#if HWY_TARGET == HWY_AVX2  // ConcatEven without the last permutation
  const __m256 words =
      _mm256_shuffle_ps(_mm256_castpd_ps(v.low.raw), _mm256_castpd_ps(v.high.raw), 0b10001000);
  return hn::Vec<DU>{_mm256_castps_si256(words)};
#else
  return LowWords(v);
#endif
}

// Two ways to ask which values are closed: which their rounding leaves no doubt about.
// Cos and sin rounded to float32 are, when neither is next to a tie, nor below `least`
// in magnitude.

// Lane by lane, of one vector.
class ClosedLanes {
 public:
  HWY_INLINE void AddFloats(const Pair& cos, const Pair& sin, VF rounded_cos, VF rounded_sin,
                            VF least) {
    const MF near = hn::Or(HasNone(DistanceToTie(LowWords(cos)), kDistanceBits),
                           HasNone(DistanceToTie(LowWords(sin)), kDistanceBits));
    lanes_ = hn::AndNot(near, hn::Ge(MinMagnitude(rounded_cos, rounded_sin), least));
  }
  HWY_INLINE void Add(MF closed) { lanes_ = closed; }

  HWY_INLINE MF lanes() const { return lanes_; }

 private:
  MF lanes_;
};

// Whether all are, of several vectors.
class AllClosed {
 public:
  HWY_INLINE AllClosed()  // not the compiler's, which forgets the instruction set
      : distance_(hn::Set(DU(), ~uint32_t{0})), closed_(hn::FirstN(DF(), hn::MaxLanes(DF()))) {}

#if HWY_TARGET == HWY_AVX3  // each comparison only where the last one held
  HWY_INLINE void AddFloats(const Pair& cos, const Pair& sin, VF rounded_cos, VF rounded_sin,
                            VF least) {
    const __m512i bits = hn::Set(DU(), kDistanceBits).raw;
    const auto of_cos = DistanceToTie(LowWords(cos));
    const auto of_sin = DistanceToTie(LowWords(sin));
    const VF smaller = MinMagnitude(rounded_cos, rounded_sin);
    const __mmask16 far_cos = _mm512_mask_test_epi32_mask(closed_.raw, of_cos.raw, bits);
    const __mmask16 far = _mm512_mask_test_epi32_mask(far_cos, of_sin.raw, bits);
    closed_ = MF{_mm512_mask_cmp_ps_mask(far, smaller.raw, least.raw, _CMP_GE_OQ)};
  }
  HWY_INLINE bool Get() const { return hn::AllTrue(DF(), closed_); }
#else
  HWY_INLINE void AddFloats(const Pair& cos, const Pair& sin, VF rounded_cos, VF rounded_sin,
                            VF least) {
    const auto bits = hn::Set(DU(), kDistanceBits);
    const auto of_cos = hn::And(DistanceToTie(LowWordsInAnyOrder(cos)), bits);
    const auto of_sin = hn::And(DistanceToTie(LowWordsInAnyOrder(sin)), bits);
    distance_ = hn::Min(distance_, hn::Min(of_cos, of_sin));
    Add(hn::Ge(MinMagnitude(rounded_cos, rounded_sin), least));
  }
  HWY_INLINE bool Get() const {
    const MF near = hn::RebindMask(DF(), hn::Eq(distance_, hn::Zero(DU())));
    return hn::AllTrue(DF(), hn::AndNot(near, closed_));
  }
#endif
  HWY_INLINE void Add(MF closed) { closed_ = hn::And(closed_, closed); }

 private:
  hn::Vec<DU> distance_;  // the least of all ties
  MF closed_;
};

// Which lanes were rounded to float32 onto a tie of a type with `kDropped` bits
// less: on which side of it the value lies is lost. (A float32 that is no tie
// itself is on the value's side of every tie.)
template <int kDropped>
HWY_INLINE MF OnTieOfShorter(VF v) {
  const DU du;
  const auto tail = hn::And(hn::BitCast(du, v), hn::Set(du, (uint32_t{1} << kDropped) - 1));
  return hn::RebindMask(DF(), hn::Eq(tail, hn::Set(du, uint32_t{1} << (kDropped - 1))));
}

#endif  // POSENC_HAS_ROTATION_VECTORS
}  // namespace HWY_NAMESPACE
}  // namespace posenc
HWY_AFTER_NAMESPACE();

#endif  // include guard of this instruction set
