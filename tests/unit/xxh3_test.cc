// Against libxxhash, which is the reference: every length around the edges of
// stripes and blocks, however the bytes come, one stream or two at a time.
#include "lib/hash/xxh3.h"

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"
#include "xxhash.h"

namespace posenc {
namespace {

std::vector<std::byte> RandomBytes(size_t count) {
  std::mt19937_64 random(count);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::string Reference128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

void ExpectHashOf(std::span<const std::byte> bytes, const Xxh3& hash) {
  EXPECT_EQ(hash.Digest64(), XXH3_64bits(bytes.data(), bytes.size())) << bytes.size();
  EXPECT_EQ(hash.Hex128(), Reference128(bytes)) << bytes.size();
}

// Lengths at which something changes: 240, stripes of 64, blocks of 1024.
std::vector<size_t> Lengths() {
  std::vector<size_t> lengths;
  for (size_t length = 0; length <= 320; ++length) lengths.push_back(length);
  for (size_t edge : {512u, 1024u, 2048u, 3072u, 65536u, 1048576u}) {
    for (size_t length = edge - 66; length <= edge + 66; ++length) lengths.push_back(length);
  }
  return lengths;
}

// Cuts `bytes` at random places and hands the pieces to `take` in order.
template <typename Take>
void InPieces(std::span<const std::byte> bytes, std::mt19937* random, Take take) {
  while (!bytes.empty()) {
    const size_t most = size_t{1} << std::uniform_int_distribution<int>(0, 14)(*random);
    const size_t count = std::min<size_t>(bytes.size(), (*random)() % most + 1);
    take(bytes.first(count));
    bytes = bytes.subspan(count);
  }
}

// For each instruction set that this CPU has.
class Xxh3Test : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { Force(GetParam()); }
  void TearDown() override { Force(0); }  // all that the machine has

 private:
  static void Force(int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

TEST_P(Xxh3Test, EqualsTheReferenceAtEveryEdge) {
  const std::vector<std::byte> bytes = RandomBytes((1u << 20) + 66);
  for (const size_t length : Lengths()) {
    Xxh3 hash;
    hash.Update(std::span(bytes).first(length));
    ExpectHashOf(std::span(bytes).first(length), hash);
  }
}

TEST_P(Xxh3Test, DoesNotDependOnHowTheBytesCome) {
  const std::vector<std::byte> bytes = RandomBytes(200'000);
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const auto part = std::span(bytes).first(random() % bytes.size());
    Xxh3 hash;
    InPieces(part, &random, [&](auto piece) {
      hash.Update(piece);
      hash.Update({});
    });
    ExpectHashOf(part, hash);
  }
}

TEST_P(Xxh3Test, CanBeAskedOnTheWay) {
  const std::vector<std::byte> bytes = RandomBytes(10'000);
  std::mt19937 random(2);
  Xxh3 hash;
  size_t length = 0;
  InPieces(bytes, &random, [&](auto piece) {
    hash.Update(piece);
    ExpectHashOf(std::span(bytes).first(length += piece.size()), hash);
  });
}

// A stream of chunks: one hash over all of them, one over each.
TEST_P(Xxh3Test, BothAtOnceGiveWhatEachGivesAlone) {
  const std::vector<std::byte> bytes = RandomBytes(300'000);
  std::mt19937 random(3);
  for (const size_t chunk : {1024u, 65536u, 1000u, 17u, 240u, 1025u, 12345u, 300'000u}) {
    Xxh3 whole;
    for (size_t at = 0; at < bytes.size(); at += chunk) {
      const auto part = std::span(bytes).subspan(at, std::min(chunk, bytes.size() - at));
      Xxh3 alone;
      InPieces(part, &random, [&](auto piece) { Xxh3::UpdateBoth(piece, &alone, &whole); });
      ASSERT_EQ(alone.Digest64(), XXH3_64bits(part.data(), part.size())) << chunk << " at " << at;
    }
    ExpectHashOf(bytes, whole);
  }
}

TEST_P(Xxh3Test, ACopyGoesOnByItself) {
  const std::vector<std::byte> bytes = RandomBytes(5000);
  Xxh3 hash;
  hash.Update(std::span(bytes).first(3000));
  Xxh3 copy = hash;
  copy.Update(std::span(bytes).subspan(3000));
  ExpectHashOf(std::span(bytes).first(3000), hash);
  ExpectHashOf(bytes, copy);
}

std::vector<int64_t> Targets() {
  std::vector<int64_t> targets;
  for (int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    targets.push_back(rest & -rest);
  }
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Cpu, Xxh3Test, ::testing::ValuesIn(Targets()), [](const auto& target) {
  return std::string(hwy::TargetName(target.param));
});

}  // namespace
}  // namespace posenc
