#include "lib/hash/xxh3.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "absl/numeric/int128.h"
#include "absl/strings/str_format.h"
#include "lib/hash/xxh3_kernel.h"

#define XXH_STATIC_LINKING_ONLY  // for XXH3_generateSecret_fromSeed
#include "xxhash.h"

namespace posenc {
namespace {

// What the specification calls PRIME32_n and PRIME64_n.
constexpr uint64_t kPrime32[] = {0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D};
constexpr uint64_t kPrime64[] = {0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                                 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5};

// Up to here XXH3 is other functions, which libxxhash has.
constexpr uint64_t kMaxShort = 240;

// Where the last stripe and the two merges begin in the secret, or before its end.
constexpr size_t kLastStripeSecret = xxh3::kSecretBytes - 64 - 7;
constexpr size_t kLowSecret = 11;
constexpr size_t kHighSecret = xxh3::kSecretBytes - 64 - 11;

// The default secret is the one of seed 0.
const std::byte* Secret() {
  static const auto kSecret = [] {
    std::array<std::byte, xxh3::kSecretBytes> secret;
    XXH3_generateSecret_fromSeed(secret.data(), 0);
    return secret;
  }();
  return kSecret.data();
}

uint64_t Load64(const std::byte* bytes) {
  uint64_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

uint64_t MulFold(uint64_t a, uint64_t b) {
  const absl::uint128 product = absl::uint128(a) * b;
  return absl::Uint128Low64(product) ^ absl::Uint128High64(product);
}

uint64_t Merge(std::span<const uint64_t, 8> sums, const std::byte* secret, uint64_t start) {
  uint64_t hash = start;
  for (size_t i = 0; i < sums.size(); i += 2) {
    hash += MulFold(sums[i] ^ Load64(secret + 8 * i), sums[i + 1] ^ Load64(secret + 8 * i + 8));
  }
  hash ^= hash >> 37;
  hash *= 0x165667919E3779F9;
  return hash ^ (hash >> 32);
}

std::string Hex(uint64_t high, uint64_t low) { return absl::StrFormat("%016x%016x", high, low); }

}  // namespace

// The last block of a stream counts differently, so one that may be the last is no
// whole one yet.
size_t Xxh3::WholeBlocks(std::span<const std::byte> rest) {
  return rest.empty() ? 0 : (rest.size() - 1) / kBlock;
}

Xxh3::Xxh3()
    : sums_{kPrime32[2], kPrime64[0], kPrime64[1], kPrime64[2],
            kPrime64[3], kPrime32[1], kPrime64[4], kPrime32[0]} {}

void Xxh3::Update(std::span<const std::byte> bytes) { AddRest(CompleteBlock(bytes)); }

void Xxh3::UpdateBoth(std::span<const std::byte> bytes, Xxh3* one, Xxh3* other) {
  const std::span<const std::byte> rest = one->CompleteBlock(bytes);
  const std::span<const std::byte> other_rest = other->CompleteBlock(bytes);
  if (rest.size() != other_rest.size()) {
    one->AddRest(rest);
    other->AddRest(other_rest);
    return;
  }
  const size_t blocks = WholeBlocks(rest);
  xxh3::AddBlocks(rest.data(), blocks, Secret(), one->sums_.data(), other->sums_.data());
  one->Keep(rest, blocks);
  other->Keep(rest, blocks);
}

// Takes what the pending block lacks; returns the rest, which is empty unless that
// block is done with.
std::span<const std::byte> Xxh3::CompleteBlock(std::span<const std::byte> bytes) {
  total_ += bytes.size();
  if (pending_ == 0) return bytes;
  const size_t taken = std::min(kBlock - pending_, bytes.size());
  std::copy_n(bytes.data(), taken, buffer_.data() + kStripe + pending_);
  pending_ += taken;
  if (taken == bytes.size()) return {};
  xxh3::AddBlocks(buffer_.data() + kStripe, 1, Secret(), sums_.data(), nullptr);
  std::copy_n(buffer_.data() + kBlock, kStripe, buffer_.data());
  pending_ = 0;
  return bytes.subspan(taken);
}

void Xxh3::AddRest(std::span<const std::byte> rest) {
  const size_t blocks = WholeBlocks(rest);
  xxh3::AddBlocks(rest.data(), blocks, Secret(), sums_.data(), nullptr);
  Keep(rest, blocks);
}

// `blocks` of the rest were added; the others are pending.
void Xxh3::Keep(std::span<const std::byte> rest, size_t blocks) {
  const std::byte* const pending = rest.data() + blocks * kBlock;
  if (blocks > 0) std::copy_n(pending - kStripe, kStripe, buffer_.data());
  if (rest.empty()) return;
  pending_ = rest.size() - blocks * kBlock;
  std::copy_n(pending, pending_, buffer_.data() + kStripe);
}

// REQUIRES: total_ > kMaxShort.
Xxh3::Sums Xxh3::FinalSums() const {
  Sums sums = sums_;
  const size_t stripes = (pending_ - 1) / kStripe;
  xxh3::AddStripes(buffer_.data() + kStripe, stripes, Secret(), sums.data());
  const std::byte* const last = buffer_.data() + pending_;  // ends with the last byte
  xxh3::AddStripes(last, 1, Secret() + kLastStripeSecret, sums.data());
  return sums;
}

uint64_t Xxh3::Digest64() const {
  if (total_ <= kMaxShort) return XXH3_64bits(buffer_.data() + kStripe, pending_);
  return Merge(FinalSums(), Secret() + kLowSecret, total_ * kPrime64[0]);
}

std::string Xxh3::Hex128() const {
  if (total_ <= kMaxShort) {
    const XXH128_hash_t hash = XXH3_128bits(buffer_.data() + kStripe, pending_);
    return Hex(hash.high64, hash.low64);
  }
  const Sums sums = FinalSums();
  return Hex(Merge(sums, Secret() + kHighSecret, ~(total_ * kPrime64[1])),
             Merge(sums, Secret() + kLowSecret, total_ * kPrime64[0]));
}

}  // namespace posenc
