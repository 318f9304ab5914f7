// The inner loop of XXH3, for the vectors that the CPU has.
#ifndef POSENC_LIB_HASH_XXH3_KERNEL_H_
#define POSENC_LIB_HASH_XXH3_KERNEL_H_

#include <cstddef>
#include <cstdint>

namespace posenc::xxh3 {

inline constexpr size_t kLanes = 8;  // of 64 bits: a stripe
inline constexpr size_t kStripeBytes = kLanes * sizeof(uint64_t);
inline constexpr size_t kStripesPerBlock = 16;
inline constexpr size_t kBlockBytes = kStripesPerBlock * kStripeBytes;
inline constexpr size_t kSecretBytes = 192;
inline constexpr size_t kSecretStep = 8;  // stripe i is mixed with the secret from 8 i on

// Adds `count` whole blocks to `sums` [kLanes], and to `more_sums` if that is not
// null. Each ends with a scramble.
void AddBlocks(const std::byte* blocks, size_t count, const std::byte* secret, uint64_t* sums,
               uint64_t* more_sums);

// Adds `count` stripes, at most a block of them, without a scramble.
void AddStripes(const std::byte* stripes, size_t count, const std::byte* secret, uint64_t* sums);

}  // namespace posenc::xxh3

#endif  // POSENC_LIB_HASH_XXH3_KERNEL_H_
