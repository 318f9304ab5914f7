// Files mapped where huge pages can be, and such pages made of memfds.
#include "lib/memory/file_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "lib/base/file_descriptor.h"
#include "tests/support/huge_pages.h"

namespace posenc {
namespace {

using testing::HugeBytesAt;
using testing::SystemMakesHugePages;

// Neighbouring bytes differ, and so do pages.
std::string Pattern(size_t bytes) {
  std::string pattern(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) pattern[i] = static_cast<char>(i * 7 + i / 4096);
  return pattern;
}

FileDescriptor MemoryOf(const std::string& bytes) {
  FileDescriptor fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return fd;
}

std::string TextOf(const FileMapping& mapping) {
  return {reinterpret_cast<const char*>(mapping.bytes().data()), mapping.bytes().size()};
}

TEST(FileMappingTest, HoldsThePartOfTheFileAtAMultipleOfAHugePage) {
  const std::string pattern = Pattern(kHugePage + 12345);
  const FileDescriptor memory = MemoryOf(pattern);
  for (const uint64_t offset : {uint64_t{0}, kHugePage}) {
    for (const uint64_t bytes : {uint64_t{1}, uint64_t{4096}, uint64_t{12345}}) {
      const auto mapping = FileMapping::Map(memory.get(), offset, bytes);
      ASSERT_TRUE(mapping.has_value());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(mapping->bytes().data()) % kHugePage, 0U);
      EXPECT_EQ(TextOf(*mapping), pattern.substr(offset, bytes));
    }
  }
}

TEST(FileMappingTest, MovesWithItsOwner) {
  const FileDescriptor memory = MemoryOf("positions");
  auto first = FileMapping::Map(memory.get(), 0, 9);
  ASSERT_TRUE(first.has_value());
  const FileMapping second = *std::move(first);
  first.reset();
  EXPECT_EQ(TextOf(second), "positions");
}

TEST(FileMappingTest, WhatCannotBeMappedIsRefusedWithErrno) {
  EXPECT_FALSE(FileMapping::Map(-1, 0, 9).has_value());
  EXPECT_EQ(errno, EBADF);
  EXPECT_FALSE(FileMapping::Map(MemoryOf("positions").get(), 0, uint64_t{1} << 62).has_value());
  EXPECT_EQ(errno, ENOMEM);
}

TEST(MakeHugePageTest, WhatIsWrittenStays) {
  const std::string pattern = Pattern(2 * kHugePage + 12345);
  const FileDescriptor memory = MemoryOf(pattern);
  for (const uint64_t offset : {uint64_t{0}, kHugePage}) MakeHugePage(memory.get(), offset);
  const auto mapping = FileMapping::Map(memory.get(), 0, pattern.size());
  ASSERT_TRUE(mapping.has_value());
  EXPECT_TRUE(TextOf(*mapping) == pattern);
}

TEST(MakeHugePageTest, AReaderMapsThemAsHugePages) {
  const FileDescriptor memory = MemoryOf("");
  ASSERT_EQ(ftruncate(memory.get(), 3 * kHugePage), 0);
  if (!SystemMakesHugePages()) GTEST_SKIP() << "this system makes no huge pages of a memfd";
  ASSERT_TRUE(MakeHugePage(memory.get(), kHugePage)) << std::strerror(errno);
  const auto mapping = FileMapping::Map(memory.get(), 0, 3 * kHugePage);
  ASSERT_TRUE(mapping.has_value());
  EXPECT_TRUE(TextOf(*mapping) == std::string(3 * kHugePage, '\0'));
  EXPECT_EQ(HugeBytesAt(mapping->bytes().data()), kHugePage);
}

// As a file that nobody may write does, and one that ends before.
TEST(MakeHugePageTest, FalseWhereItCannotBe) {
  const FileDescriptor memory = MemoryOf("positions");
  EXPECT_FALSE(MakeHugePage(memory.get(), kHugePage));
  EXPECT_FALSE(MakeHugePage(-1, 0));
  ASSERT_EQ(fcntl(memory.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_FALSE(MakeHugePage(memory.get(), 0));
}

}  // namespace
}  // namespace posenc
