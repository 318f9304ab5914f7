// A memfd written in pieces of any size, and sealed.
#include "server/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>

#include "gtest/gtest.h"
#include "lib/memory/file_mapping.h"
#include "tests/support/huge_pages.h"
#include "tests/support/unix_socket.h"

namespace posenc::server {
namespace {

std::string RandomBytes(size_t count) {
  std::mt19937 random(1);
  std::string bytes(count, '\0');
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<char>(random()); });
  return bytes;
}

MemoryFile Filled(const std::string& bytes, size_t piece) {
  MemoryFile file = *MemoryFile::Create(bytes.size());
  const std::span<const std::byte> all = std::as_bytes(std::span(bytes));
  for (size_t at = 0; at < all.size(); at += piece) {
    EXPECT_TRUE(file.Append(all.subspan(at, std::min(piece, all.size() - at))).ok());
  }
  EXPECT_TRUE(file.Seal().ok());
  return file;
}

// Pieces that end within huge pages, at their ends, and that hold several.
TEST(MemoryFileTest, HoldsWhatWasAppendedWhateverItsPieces) {
  for (const size_t size :
       {size_t{1}, size_t{kHugePage - 1}, size_t{kHugePage}, size_t{3 * kHugePage + 4097}}) {
    const std::string bytes = RandomBytes(size);
    for (const size_t piece : {size_t{1} << 20, size_t{1000003}, size_t{3 * kHugePage}, size}) {
      const MemoryFile file = Filled(bytes, piece);
      EXPECT_EQ(file.bytes(), size);
      const auto mapping = FileMapping::Map(file.fd(), 0, size);
      ASSERT_TRUE(mapping.has_value());
      EXPECT_EQ(std::memcmp(mapping->bytes().data(), bytes.data(), size), 0)
          << size << " in pieces of " << piece;
    }
  }
}

TEST(MemoryFileTest, ItLiesInHugePagesAsFarAsItFillsThem) {
  if (!testing::SystemMakesHugePages())
    GTEST_SKIP() << "this system makes no huge pages of a memfd";
  const std::string bytes = RandomBytes(2 * kHugePage + 4097);
  const MemoryFile file = Filled(bytes, 1000003);
  const auto mapping = FileMapping::Map(file.fd(), 0, bytes.size());
  ASSERT_TRUE(mapping.has_value());
  EXPECT_EQ(std::memcmp(mapping->bytes().data(), bytes.data(), bytes.size()), 0);
  EXPECT_EQ(testing::HugeBytesAt(mapping->bytes().data()), 2 * kHugePage);
}

TEST(MemoryFileTest, SealedItIsOpenForReadingOnly) {
  const MemoryFile file = Filled(RandomBytes(2 * kHugePage), 1 << 20);
  EXPECT_EQ(fcntl(file.fd(), F_GET_SEALS), testing::kAllSeals);
  EXPECT_EQ(fcntl(file.fd(), F_GETFL) & O_ACCMODE, O_RDONLY);
}

TEST(MemoryFileTest, AnEmptyOneIsSealedToo) {
  const MemoryFile file = Filled("", 1);
  EXPECT_EQ(file.bytes(), 0U);
}

// More than any file holds: what ftruncate says, and not a crash at the first byte.
TEST(MemoryFileTest, TooMuchMemoryIsRefused) {
  EXPECT_EQ(MemoryFile::Create(uint64_t{1} << 63).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace posenc::server
