#include "lib/hash/xxh3_kernel.h"

#include <algorithm>
#include <cstring>

// Compiled once for each instruction set; the best is chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/hash/xxh3_kernel.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::xxh3 {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr uint64_t kPrime32 = 0x9E3779B1;  // XXH_PRIME32_1

#if HWY_TARGET == HWY_SCALAR

// For a CPU without vectors.
struct Sums {
  uint64_t lane[kLanes];
};

HWY_INLINE uint64_t LoadLane(const std::byte* bytes, size_t lane) {
  uint64_t value;
  std::memcpy(&value, bytes + 8 * lane, sizeof(value));
  return value;
}

HWY_INLINE Sums Zero() { return {}; }

HWY_INLINE Sums Load(const uint64_t* from) {
  Sums sums;
  std::copy_n(from, kLanes, sums.lane);
  return sums;
}

HWY_INLINE void Store(const Sums& sums, uint64_t* to) { std::copy_n(sums.lane, kLanes, to); }

HWY_INLINE void AddStripe(const std::byte* stripe, const std::byte* secret, Sums* sums) {
  for (size_t i = 0; i < kLanes; ++i) {
    const uint64_t key = LoadLane(stripe, i) ^ LoadLane(secret, i);
    sums->lane[i] += (key & 0xFFFFFFFF) * (key >> 32) + LoadLane(stripe, i ^ 1);
  }
}

HWY_INLINE void AddAndScramble(const Sums& block, const std::byte* secret, Sums* sums) {
  for (size_t i = 0; i < kLanes; ++i) {
    const uint64_t sum = sums->lane[i] + block.lane[i];
    sums->lane[i] = (sum ^ (sum >> 47) ^ LoadLane(secret, i)) * kPrime32;
  }
}

#else

using D64 = hn::CappedTag<uint64_t, kLanes>;
using V64 = hn::Vec<D64>;

constexpr size_t kVectorLanes = hn::MaxLanes(D64());
constexpr size_t kVectors = kLanes / kVectorLanes;

// Eight sums, in as many vectors as that takes.
struct Sums {
  V64 vector[kVectors];
};

HWY_INLINE V64 LoadBytes(const std::byte* bytes, size_t vector) {
  const D64 d;
  const hn::Repartition<uint8_t, D64> d8;
  return hn::BitCast(
      d, hn::LoadU(d8, reinterpret_cast<const uint8_t*>(bytes) + vector * kVectorLanes * 8));
}

// Of each lane, the low half times the high half of another.
HWY_INLINE V64 MulLow32(V64 a, V64 b) {
  const hn::Repartition<uint32_t, D64> d32;
  return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
}

HWY_INLINE void AddStripe(const std::byte* stripe, const std::byte* secret, Sums* sums) {
  const D64 d;
  for (size_t i = 0; i < kVectors; ++i) {
    const V64 data = LoadBytes(stripe, i);
    const V64 key = hn::Xor(data, LoadBytes(secret, i));
    const V64 product = MulLow32(key, hn::ShiftRight<32>(key));
    sums->vector[i] = hn::Add(sums->vector[i], hn::Add(product, hn::Reverse2(d, data)));
  }
}

HWY_INLINE Sums Zero() {
  Sums sums;
  for (V64& vector : sums.vector) vector = hn::Zero(D64());
  return sums;
}

HWY_INLINE Sums Load(const uint64_t* from) {
  Sums sums;
  for (size_t i = 0; i < kVectors; ++i) {
    sums.vector[i] = hn::LoadU(D64(), from + i * kVectorLanes);
  }
  return sums;
}

HWY_INLINE void Store(const Sums& sums, uint64_t* to) {
  for (size_t i = 0; i < kVectors; ++i) {
    hn::StoreU(sums.vector[i], D64(), to + i * kVectorLanes);
  }
}

HWY_INLINE void AddAndScramble(const Sums& block, const std::byte* secret, Sums* sums) {
  const V64 prime = hn::Set(D64(), kPrime32);
  for (size_t i = 0; i < kVectors; ++i) {
    V64 sum = hn::Add(sums->vector[i], block.vector[i]);
    sum = hn::Xor(hn::Xor(sum, hn::ShiftRight<47>(sum)), LoadBytes(secret, i));
    const V64 high = hn::ShiftLeft<32>(MulLow32(hn::ShiftRight<32>(sum), prime));
    sums->vector[i] = hn::Add(MulLow32(sum, prime), high);
  }
}

#endif

void AddBlocks(const std::byte* blocks, size_t count, const std::byte* secret, uint64_t* sums,
               uint64_t* more_sums) {
  const std::byte* const last_secret = secret + kSecretBytes - kStripeBytes;
  Sums one = Load(sums);
  Sums other = more_sums == nullptr ? Zero() : Load(more_sums);
  for (size_t block = 0; block < count; ++block) {
    Sums added = Zero();
    for (size_t stripe = 0; stripe < kStripesPerBlock; ++stripe) {
      AddStripe(blocks + block * kBlockBytes + stripe * kStripeBytes, secret + stripe * kSecretStep,
                &added);
    }
    AddAndScramble(added, last_secret, &one);
    if (more_sums != nullptr) AddAndScramble(added, last_secret, &other);
  }
  Store(one, sums);
  if (more_sums != nullptr) Store(other, more_sums);
}

void AddStripes(const std::byte* stripes, size_t count, const std::byte* secret, uint64_t* sums) {
  Sums added = Load(sums);
  for (size_t stripe = 0; stripe < count; ++stripe) {
    AddStripe(stripes + stripe * kStripeBytes, secret + stripe * kSecretStep, &added);
  }
  Store(added, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace posenc::xxh3
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::xxh3 {

HWY_EXPORT(AddBlocks);
HWY_EXPORT(AddStripes);

void AddBlocks(const std::byte* blocks, size_t count, const std::byte* secret, uint64_t* sums,
               uint64_t* more_sums) {
  HWY_DYNAMIC_DISPATCH(AddBlocks)(blocks, count, secret, sums, more_sums);
}

void AddStripes(const std::byte* stripes, size_t count, const std::byte* secret, uint64_t* sums) {
  HWY_DYNAMIC_DISPATCH(AddStripes)(stripes, count, secret, sums);
}

}  // namespace posenc::xxh3
#endif  // HWY_ONCE
