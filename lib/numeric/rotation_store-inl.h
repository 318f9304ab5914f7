// How the rotation kernel's vectors become elements, and where in a row they go.
// Included once for each instruction set (hwy/foreach_target.h).
#if defined(POSENC_LIB_NUMERIC_ROTATION_STORE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_LIB_NUMERIC_ROTATION_STORE_INL_H_
#undef POSENC_LIB_NUMERIC_ROTATION_STORE_INL_H_
#else
#define POSENC_LIB_NUMERIC_ROTATION_STORE_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "lib/numeric/rotation_kernel.h"
#include "lib/numeric/rotation_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc {
namespace HWY_NAMESPACE {
#if POSENC_HAS_ROTATION_VECTORS

// [a0 b0 a1 b1 ...] in two vectors.
template <class V>
struct Alternating {
  V first;
  V second;
};

#if HWY_TARGET == HWY_AVX3
// Where each of 64 / sizeof(T) lanes comes from: the first half of a's and b's lanes (b's
// are numbered behind a's), or the second.
template <typename T>
struct AlternateLanes {
  static constexpr size_t kLanes = 64 / sizeof(T);
  alignas(64) std::array<T, kLanes> first;
  alignas(64) std::array<T, kLanes> second;
  constexpr AlternateLanes() : first(), second() {
    for (size_t i = 0; i < kLanes; ++i) {
      first[i] = static_cast<T>(i / 2 + i % 2 * kLanes);
      second[i] = static_cast<T>(first[i] + kLanes / 2);
    }
  }
};
template <typename T>
constexpr AlternateLanes<T> kAlternateLanes;

HWY_INLINE __m512i Permute2(__m512i a, const uint16_t* lanes, __m512i b) {
  return _mm512_permutex2var_epi16(a, _mm512_load_si512(lanes), b);
}
HWY_INLINE __m512i Permute2(__m512i a, const uint32_t* lanes, __m512i b) {
  return _mm512_permutex2var_epi32(a, _mm512_load_si512(lanes), b);
}
HWY_INLINE __m512i Permute2(__m512i a, const uint64_t* lanes, __m512i b) {
  return _mm512_permutex2var_epi64(a, _mm512_load_si512(lanes), b);
}
#endif

template <class V>
HWY_INLINE Alternating<V> Alternate(V a, V b) {
  const hn::DFromV<V> d;
  constexpr size_t kBytes = hn::MaxLanes(d) * sizeof(hn::TFromV<V>);
  if constexpr (kBytes == 64) {
#if HWY_TARGET == HWY_AVX3
    const hn::RebindToUnsigned<decltype(d)> du;
    const auto& lanes = kAlternateLanes<hn::TFromD<decltype(du)>>;
    const __m512i a_bits = hn::BitCast(du, a).raw;
    const __m512i b_bits = hn::BitCast(du, b).raw;
    using VU = hn::Vec<decltype(du)>;
    return {hn::BitCast(d, VU{Permute2(a_bits, lanes.first.data(), b_bits)}),
            hn::BitCast(d, VU{Permute2(a_bits, lanes.second.data(), b_bits)})};
#endif
  } else {
    const V lower = hn::InterleaveLower(d, a, b);  // of each 128 bits
    const V upper = hn::InterleaveUpper(d, a, b);
    if constexpr (kBytes == 16) {
      return {lower, upper};
    } else {
      return {hn::ConcatLowerLower(d, upper, lower), hn::ConcatUpperUpper(d, upper, lower)};
    }
  }
}

// The rows of a job. kAlternates: of the two layouts whose values alternate.
template <typename T, bool kAlternates, bool kStreams>
class Rows {
 public:
  explicit Rows(const RotationJob& job)
      : first_(job.first),
        stride_(job.stride),
        pairs_(job.pairs),
        again_(job.layout == RotationLayout::kTwice ? job.pairs : 0),
        twice_(job.layout == RotationLayout::kTwiceAlternating),
        cos_(static_cast<T*>(job.cos)),
        sin_(static_cast<T*>(job.sin)) {}

  // Of the pairs from `pair` on, as many as there are lanes and pairs.
  template <class V>
  HWY_INLINE void Put(V cos, V sin, int64_t position, int64_t pair) const {
    const int64_t row = (position - first_) * stride_;
    if constexpr (kAlternates) {
      const int64_t valid = 2 * (pairs_ - pair);
      if (twice_) {
        if (cos_ != nullptr) PutAlternating(cos, cos, cos_ + row + 2 * pair, valid);
        if (sin_ != nullptr) PutAlternating(sin, sin, sin_ + row + 2 * pair, valid);
      } else if (cos_ < sin_) {
        PutAlternating(cos, sin, cos_ + row + 2 * pair, valid);
      } else {
        PutAlternating(sin, cos, sin_ + row + 2 * pair, valid);
      }
    } else {
      if (cos_ != nullptr) PutRun(cos, cos_ + row + pair, pairs_ - pair);
      if (sin_ != nullptr) PutRun(sin, sin_ + row + pair, pairs_ - pair);
    }
  }

  HWY_INLINE void Put(const Pair& cos, const Pair& sin, int64_t position, int64_t pair) const {
    Put(cos.low, sin.low, position, pair);
    Put(cos.high, sin.high, position, pair + kDoubles);
  }

 private:
  template <class V>
  HWY_INLINE void PutAlternating(V a, V b, T* out, int64_t valid) const {
    const Alternating<V> values = Alternate(a, b);
    constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(hn::DFromV<V>()));
    PutVector(values.first, out, valid);
    PutVector(values.second, out + kLanes, valid - kLanes);
  }

  template <class V>
  HWY_INLINE void PutRun(V v, T* out, int64_t valid) const {
    PutVector(v, out, valid);
    if (again_ != 0) PutVector(v, out + again_, valid);
  }

  template <class V>
  HWY_INLINE void PutVector(V v, T* out, int64_t valid) const {
    const hn::DFromV<V> d;
    constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(d));
    if (valid <= 0) return;
    if constexpr (kStreams) return hn::Stream(v, d, out);
    if (HWY_LIKELY(valid >= kLanes)) return hn::StoreU(v, d, out);
    HWY_ALIGN std::array<T, static_cast<size_t>(kLanes)> whole;
    hn::StoreU(v, d, whole.data());
    std::copy_n(whole.data(), valid, out);
  }

  const int64_t first_;
  const int64_t stride_;
  const int64_t pairs_;
  const int64_t again_;  // where each value stands once more, or 0
  const bool twice_;
  T* const cos_;
  T* const sin_;
};

// What kFloats values of float32 become.
template <RotationElement kElement>
struct Element;

template <>
struct Element<RotationElement::kF32> {
  using Type = float;
  static constexpr float kMinNormal = 0x1p-126f;
  static HWY_INLINE VF From(VF v) { return v; }
  static HWY_INLINE VF Load(const float* lanes) { return hn::Load(DF(), lanes); }
  static HWY_INLINE void Store(VF v, float* lanes) { hn::Store(v, DF(), lanes); }
};

template <>
struct Element<RotationElement::kF64> {
  using Type = double;
  static constexpr float kMinNormal = 0x1p-126f;
  static HWY_INLINE Pair From(VF v) { return Promote(v); }
  static HWY_INLINE Pair Load(const double* lanes) { return LoadPair(lanes); }
  static HWY_INLINE void Store(const Pair& v, double* lanes) {
    hn::Store(v.low, DD(), lanes);
    hn::Store(v.high, DD(), lanes + kDoubles);
  }
};

using DW = hn::Rebind<uint16_t, DF>;
using VW = hn::Vec<DW>;

struct Words {
  using Type = uint16_t;
  static HWY_INLINE VW Load(const uint16_t* lanes) { return hn::Load(DW(), lanes); }
  static HWY_INLINE void Store(VW v, uint16_t* lanes) { hn::Store(v, DW(), lanes); }
  static HWY_INLINE VW Narrow(hn::Vec<DU> v) { return hn::DemoteTo(DW(), hn::BitCast(DI(), v)); }
};

template <>
struct Element<RotationElement::kBf16> : Words {
  static constexpr int kDroppedBits = 16;
  static constexpr float kMinNormal = 0x1p-126f;
  static HWY_INLINE VW From(VF v) {  // RoundToBf16 (dtype.h)
    const DU du;
    const auto bits = hn::BitCast(du, v);
    const auto lowest_kept = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    return Narrow(hn::ShiftRight<16>(hn::Add(bits, hn::Add(lowest_kept, hn::Set(du, 0x7fff)))));
  }
};

template <>
struct Element<RotationElement::kF16> : Words {
  static constexpr int kDroppedBits = 13;
  static constexpr float kMinNormal = 0x1p-14f;
  static HWY_INLINE VW From(VF v) {  // the machine's conversion is RoundToF16 (dtype.h)
    const hn::Rebind<hwy::float16_t, DF> half;
    return hn::BitCast(DW(), hn::DemoteTo(half, v));
  }
};

#endif  // POSENC_HAS_ROTATION_VECTORS
}  // namespace HWY_NAMESPACE
}  // namespace posenc
HWY_AFTER_NAMESPACE();

#endif  // include guard of this instruction set
