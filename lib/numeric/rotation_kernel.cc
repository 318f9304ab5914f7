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
#include "lib/numeric/rotation_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc {
namespace HWY_NAMESPACE {

#if POSENC_HAS_ROTATION_VECTORS

bool IsUsable() { return true; }

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
