// XXH3 of a byte stream: the checksum of a chunk (64 bits) and the content hash of
// a table (128 bits), which both ends of a stream need of the same bytes.
//
//   https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
//
// Debian's libxxhash gives the same numbers, but it is built for the first x86-64
// CPUs, and two hashes take it two readings of memory. This one uses the vectors
// that the CPU has, and UpdateBoth reads once: XXH3 adds up blocks of 1 KiB, and
// what a block adds depends on its bytes alone, so two streams whose blocks begin
// at the same bytes can share the sums.
#ifndef POSENC_LIB_HASH_XXH3_H_
#define POSENC_LIB_HASH_XXH3_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace posenc {

// Not thread-safe. May be copied.
class Xxh3 {
 public:
  Xxh3();

  void Update(std::span<const std::byte> bytes);

  // Updates both. Costs little more than one, when the numbers of bytes that they
  // have had differ by a multiple of 1 KiB.
  static void UpdateBoth(std::span<const std::byte> bytes, Xxh3* one, Xxh3* other);

  // XXH3_64bits of all bytes so far.
  uint64_t Digest64() const;

  // XXH3_128bits of them: 32 lower-case hex digits, most significant first.
  std::string Hex128() const;

 private:
  static constexpr size_t kStripe = 64;
  static constexpr size_t kBlock = 1024;
  using Sums = std::array<uint64_t, kStripe / sizeof(uint64_t)>;

  static size_t WholeBlocks(std::span<const std::byte> rest);
  std::span<const std::byte> CompleteBlock(std::span<const std::byte> bytes);
  void AddRest(std::span<const std::byte> rest);
  void Keep(std::span<const std::byte> rest, size_t blocks);
  Sums FinalSums() const;

  alignas(64) Sums sums_;  // of all blocks before the pending one
  uint64_t total_ = 0;     // bytes so far
  // The last stripe before the pending bytes, then those: of a block that is not
  // complete, or may be the last. Some are pending unless total_ is 0.
  size_t pending_ = 0;
  alignas(64) std::array<std::byte, kStripe + kBlock> buffer_ = {};
};

}  // namespace posenc

#endif  // POSENC_LIB_HASH_XXH3_H_
