// Which descriptors are taken for memory that nobody can change, and what is made
// of them.
#include "client/sealed_mapping.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/unix_socket.h"

namespace posenc {
namespace {

using testing::Descriptor;
using ::testing::HasSubstr;
using testing::kAllSeals;
using testing::MakeMemory;

std::string TextOf(const SealedMapping& mapping) {
  return {reinterpret_cast<const char*>(mapping.bytes().data()), mapping.bytes().size()};
}

TEST(CheckSealedTest, AcceptsSealedMemoryOfThatSize) {
  EXPECT_TRUE(CheckSealed(MakeMemory("1234").get(), 4).ok());
  EXPECT_TRUE(CheckSealed(MakeMemory("").get(), 0).ok());
}

TEST(CheckSealedTest, RefusesMemoryThatLacksAnyOfTheSeals) {
  for (const int missing : {kAllSeals, F_SEAL_WRITE, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL}) {
    const absl::Status status = CheckSealed(MakeMemory("1234", kAllSeals & ~missing).get(), 4);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << missing;
    EXPECT_THAT(std::string(status.message()), HasSubstr("not sealed"));
  }
}

// F_SEAL_FUTURE_WRITE leaves an older mapping of the peer writable.
TEST(CheckSealedTest, ASealOfFutureWritesOnlyIsNotEnough) {
  const int seals = (kAllSeals & ~F_SEAL_WRITE) | F_SEAL_FUTURE_WRITE;
  EXPECT_FALSE(CheckSealed(MakeMemory("1234", seals).get(), 4).ok());
}

TEST(CheckSealedTest, RefusesAnyOtherSizeByName) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{3}, uint64_t{5}, ~uint64_t{0}}) {
    const absl::Status status = CheckSealed(MakeMemory("1234").get(), bytes);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr("has 4 bytes, the table "));
  }
}

TEST(CheckSealedTest, RefusesWhatIsNoMemory) {
  char name[] = "/tmp/posenc-file-XXXXXX";
  const Descriptor file(mkstemp(name));
  unlink(name);
  ASSERT_EQ(write(file.get(), "1234", 4), 4);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Descriptor one(ends[0]);
  const Descriptor other(ends[1]);
  for (const int fd : {file.get(), one.get(), -1}) {
    EXPECT_EQ(CheckSealed(fd, 4).code(), absl::StatusCode::kDataLoss);
  }
}

TEST(SealedMappingTest, HoldsTheBytesAfterTheDescriptorIsClosed) {
  std::shared_ptr<const SealedMapping> mapping;
  {
    const Descriptor memory = MakeMemory("positions");
    mapping = *SealedMapping::Map(memory.get(), 9);
  }
  EXPECT_EQ(TextOf(*mapping), "positions");
}

TEST(SealedMappingTest, AnEmptyTableIsAnEmptyMapping) {
  EXPECT_TRUE((*SealedMapping::Map(MakeMemory("").get(), 0))->bytes().empty());
}

// Through /proc anybody of this user can open the memory anew; the seals hold.
TEST(SealedMappingTest, NobodyCanWriteThroughAnyDescriptor) {
  const Descriptor memory = MakeMemory("positions");
  const std::string path = "/proc/self/fd/" + std::to_string(memory.get());
  const Descriptor writable(open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_GE(writable.get(), 0);
  EXPECT_LT(pwrite(writable.get(), "x", 1, 0), 0);
  EXPECT_LT(ftruncate(writable.get(), 1), 0);
  EXPECT_LT(ftruncate(writable.get(), 100), 0);
  EXPECT_EQ(mmap(nullptr, 9, PROT_READ | PROT_WRITE, MAP_SHARED, writable.get(), 0), MAP_FAILED);
}

TEST(SealedMappingsTest, TheSameMemoryIsMappedOnceWhileItIsInUse) {
  SealedMappings mappings;
  const Descriptor memory = MakeMemory("positions");
  const Descriptor again(dup(memory.get()));
  const Descriptor other = MakeMemory("positions");
  auto first = *mappings.Find(memory.get(), 9);
  EXPECT_EQ(first, *mappings.Find(again.get(), 9));
  EXPECT_NE(first, *mappings.Find(other.get(), 9));

  const std::weak_ptr<const SealedMapping> gone = first;
  first.reset();
  EXPECT_TRUE(gone.expired());
  EXPECT_EQ(TextOf(**mappings.Find(memory.get(), 9)), "positions");
}

TEST(SealedMappingsTest, ChecksMemoryThatItKnows) {
  SealedMappings mappings;
  const Descriptor memory = MakeMemory("positions");
  const auto kept = *mappings.Find(memory.get(), 9);
  EXPECT_FALSE(mappings.Find(memory.get(), 8).ok());
}

}  // namespace
}  // namespace posenc
