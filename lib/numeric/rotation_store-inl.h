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

  // Vectors of neighbours, of the pairs from `pair` on, as far as there are pairs. What
  // stands together is written together.
  template <class V, size_t kCount>
  HWY_INLINE void Put(const std::array<V, kCount>& cos, const std::array<V, kCount>& sin,
                      int64_t position, int64_t pair) const {
    const int64_t row = (position - first_) * stride_;
    const int64_t valid = pairs_ - pair;
    if constexpr (kAlternates) {
      const int64_t start = row + 2 * pair;
      if (twice_) {
        if (cos_ != nullptr) PutVectors(AlternateAll(cos, cos), cos_ + start, 2 * valid);
        if (sin_ != nullptr) PutVectors(AlternateAll(sin, sin), sin_ + start, 2 * valid);
      } else if (cos_ < sin_) {
        PutVectors(AlternateAll(cos, sin), cos_ + start, 2 * valid);
      } else {
        PutVectors(AlternateAll(sin, cos), sin_ + start, 2 * valid);
      }
    } else {
      const int64_t start = row + pair;
      if (cos_ != nullptr) PutRun(cos, cos_ + start, valid);
      if (sin_ != nullptr) PutRun(sin, sin_ + start, valid);
    }
  }

  // Some processors write two lines past the caches several times as slowly if they
  // stand at one place of their pages of 4 KiB and follow each other: as those of cos and
  // sin do where these are tables of their own.
  bool collide() const {
    constexpr uintptr_t kPage = 4096;
    if constexpr (!kStreams || kAlternates) return false;
    const uintptr_t apart = reinterpret_cast<uintptr_t>(sin_) - reinterpret_cast<uintptr_t>(cos_);
    return cos_ != nullptr && sin_ != nullptr && apart % kPage < kRotationLine;
  }

  template <class V, size_t kCount>
  HWY_INLINE void PutCos(const std::array<V, kCount>& cos, int64_t position, int64_t pair) const {
    PutRun(cos, cos_ + (position - first_) * stride_ + pair, pairs_ - pair);
  }
  template <class V, size_t kCount>
  HWY_INLINE void PutSin(const std::array<V, kCount>& sin, int64_t position, int64_t pair) const {
    PutRun(sin, sin_ + (position - first_) * stride_ + pair, pairs_ - pair);
  }

 private:
  template <class V, size_t kCount>
  static HWY_INLINE std::array<V, 2 * kCount> AlternateAll(const std::array<V, kCount>& a,
                                                           const std::array<V, kCount>& b) {
    std::array<V, 2 * kCount> all;
    for (size_t i = 0; i < kCount; ++i) {
      const Alternating<V> values = Alternate(a[i], b[i]);
      all[2 * i] = values.first;
      all[2 * i + 1] = values.second;
    }
    return all;
  }

  template <class V, size_t kCount>
  HWY_INLINE void PutRun(const std::array<V, kCount>& v, T* out, int64_t valid) const {
    PutVectors(v, out, valid);
    if (again_ != 0) PutVectors(v, out + again_, valid);
  }

  template <class V, size_t kCount>
  HWY_INLINE void PutVectors(const std::array<V, kCount>& v, T* out, int64_t valid) const {
    constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(hn::DFromV<V>()));
    if (HWY_LIKELY(valid >= static_cast<int64_t>(kCount) * kLanes)) {
      for (size_t i = 0; i < kCount; ++i) PutVector(v[i], out + static_cast<int64_t>(i) * kLanes);
      return;
    }
    for (size_t i = 0; i < kCount; ++i) {  // (constants: any other index keeps `v` in memory)
      const int64_t start = static_cast<int64_t>(i) * kLanes;
      if (valid >= start + kLanes) {
        PutVector(v[i], out + start);
      } else if (valid > start) {
        PutPart(v[i], out + start, valid - start);
      }
    }
  }

  template <class V>
  HWY_INLINE void PutVector(V v, T* out) const {
    const hn::DFromV<V> d;
    if constexpr (kStreams) return hn::Stream(v, d, out);
    hn::StoreU(v, d, out);
  }

  template <class V>
  static HWY_INLINE void PutPart(V v, T* out, int64_t valid) {
    const hn::DFromV<V> d;
    HWY_ALIGN std::array<T, hn::MaxLanes(hn::DFromV<V>())> whole;
    hn::Store(v, d, whole.data());
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

// Puts the same pairs of one row after another: where cos and sin collide, sin a row
// late.
template <class Rows, class Vectors>
class RowWriter {
 public:
  RowWriter(const Rows& rows, int64_t pair) : rows_(rows), pair_(pair), collide_(rows.collide()) {}
  RowWriter(const RowWriter&) = delete;
  RowWriter& operator=(const RowWriter&) = delete;

  HWY_INLINE void Put(const Vectors& cos, const Vectors& sin, int64_t position) {
    if (!collide_) return rows_.Put(cos, sin, position, pair_);
    rows_.PutCos(cos, position, pair_);
    PutLate();
    late_ = sin;
    late_position_ = position;
    is_late_ = true;
  }

  // After the last row.
  HWY_INLINE void PutLate() {
    if (is_late_) rows_.PutSin(late_, late_position_, pair_);
    is_late_ = false;
  }

 private:
  const Rows& rows_;
  const int64_t pair_;
  const bool collide_;
  Vectors late_ = {};  // sin of late_position_, if is_late_
  int64_t late_position_ = 0;
  bool is_late_ = false;
};

// What kFloats values of float32 become: kVectors vectors.
template <RotationElement kElement>
struct Element;

template <>
struct Element<RotationElement::kF32> {
  using Type = float;
  using Vector = VF;
  static constexpr size_t kVectors = 1;
  static constexpr float kMinNormal = 0x1p-126f;
  static HWY_INLINE void From(VF v, VF* out) { *out = v; }
};

template <>
struct Element<RotationElement::kF64> {
  using Type = double;
  using Vector = VD;
  static constexpr size_t kVectors = 2;
  static constexpr float kMinNormal = 0x1p-126f;
  static HWY_INLINE void From(VF v, VD* out) {
    const Pair pair = Promote(v);
    out[0] = pair.low;
    out[1] = pair.high;
  }
};

using DW = hn::Rebind<uint16_t, DF>;
using VW = hn::Vec<DW>;

struct Words {
  using Type = uint16_t;
  using Vector = VW;
  static constexpr size_t kVectors = 1;
  static HWY_INLINE VW Narrow(hn::Vec<DU> v) { return hn::DemoteTo(DW(), hn::BitCast(DI(), v)); }
};

template <>
struct Element<RotationElement::kBf16> : Words {
  static constexpr int kDroppedBits = 16;
  static constexpr float kMinNormal = 0x1p-126f;
  static HWY_INLINE void From(VF v, VW* out) {  // RoundToBf16 (dtype.h)
    const DU du;
    const auto bits = hn::BitCast(du, v);
    const auto lowest_kept = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    *out = Narrow(hn::ShiftRight<16>(hn::Add(bits, hn::Add(lowest_kept, hn::Set(du, 0x7fff)))));
  }
};

template <>
struct Element<RotationElement::kF16> : Words {
  static constexpr int kDroppedBits = 13;
  static constexpr float kMinNormal = 0x1p-14f;
  static HWY_INLINE void From(VF v, VW* out) {  // the machine's conversion is RoundToF16 (dtype.h)
    const hn::Rebind<hwy::float16_t, DF> half;
    *out = hn::BitCast(DW(), hn::DemoteTo(half, v));
  }
};

// kFloats elements, as vectors and in memory.
template <RotationElement kElement>
using Elements = std::array<typename Element<kElement>::Vector, Element<kElement>::kVectors>;

template <class V, size_t kCount, typename T>
HWY_INLINE void LoadAll(const T* lanes, std::array<V, kCount>* out) {
  const hn::DFromV<V> d;
  for (size_t i = 0; i < kCount; ++i) (*out)[i] = hn::Load(d, lanes + i * hn::MaxLanes(d));
}

template <class V, size_t kCount, typename T>
HWY_INLINE void StoreAll(const std::array<V, kCount>& v, T* lanes) {
  const hn::DFromV<V> d;
  for (size_t i = 0; i < kCount; ++i) hn::Store(v[i], d, lanes + i * hn::MaxLanes(d));
}

#endif  // POSENC_HAS_ROTATION_VECTORS
}  // namespace HWY_NAMESPACE
}  // namespace posenc
HWY_AFTER_NAMESPACE();

#endif  // include guard of this instruction set
