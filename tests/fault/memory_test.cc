// A stream costs the server about two chunks, whatever its table's size and however
// slow its reader.
#include <algorithm>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/service/test_server.h"
#include "tests/support/process.h"

namespace posenc::testing {
namespace {

using ::testing::SizeIs;
using v1::PositionalEncodingService;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kCacheMiB = 32;
constexpr uint64_t kAllowedBytes = (kCacheMiB + 64) * kMiB;

// A table of `mib` MiB that no other number shares a page with.
v1::GetTableRequest Table(uint64_t mib, int number) {
  v1::GetTableRequest request = TableOf(mib * kMiB);
  request.mutable_spec()->mutable_alibi()->set_alibi_bias_max(1.0 + number);
  return request;
}

struct Stalled {
  Stalled(const std::string& address, int number)
      : stub(PositionalEncodingService::NewStub(Connect(address))),
        reader(stub->GetTable(&context, Table(64, number))) {
    EXPECT_TRUE(reader->Read(&message));
  }
  ~Stalled() { context.TryCancel(); }

  std::unique_ptr<PositionalEncodingService::Stub> stub;
  grpc::ClientContext context;
  v1::GetTableResponse message;
  std::unique_ptr<grpc::ClientReader<v1::GetTableResponse>> reader;
};

// Reads `request` to its end; returns the most memory the server had meanwhile.
uint64_t PeakWhileReading(const ServerProcess& server, const std::string& address,
                          const v1::GetTableRequest& request, uint64_t* bytes) {
  const auto stub = PositionalEncodingService::NewStub(Connect(address));
  grpc::ClientContext context;
  const auto reader = stub->GetTable(&context, request);
  v1::GetTableResponse message;
  uint64_t peak = 0;
  *bytes = 0;
  while (reader->Read(&message)) {
    *bytes += message.data().size();
    if (*bytes % (16 * kMiB) == 0) peak = std::max(peak, server.ResidentBytes());
  }
  EXPECT_TRUE(reader->Finish().ok());
  return peak;
}

TEST(MemoryTest, StalledReadersAndAFourGibTableGrowTheServerByLessThan64MiBBeyondItsCache) {
  ServerProcess server({"--listen=127.0.0.1:0", "--stall-timeout=0",
                        "--page-cache-bytes=" + std::to_string(kCacheMiB) + "MiB"});
  const std::vector<std::string> addresses = server.WaitForAddresses();
  ASSERT_THAT(addresses, SizeIs(1));
  ASSERT_TRUE(
      Read(*PositionalEncodingService::NewStub(Connect(addresses[0])), Table(1, 99)).status.ok());
  const uint64_t before = server.ResidentBytes();
  ASSERT_GT(before, 0u);

  std::vector<std::unique_ptr<Stalled>> stalled;
  for (int i = 0; i < 32; ++i) stalled.push_back(std::make_unique<Stalled>(addresses[0], i));
  uint64_t bytes = 0;
  const uint64_t peak = PeakWhileReading(server, addresses[0], Table(4096, 50), &bytes);
  EXPECT_EQ(bytes, 4096 * kMiB);
  EXPECT_LT(peak - std::min(peak, before), kAllowedBytes);
  RecordProperty("grown_mib", static_cast<int>((peak - std::min(peak, before)) / kMiB));

  stalled.clear();
  EXPECT_TRUE(
      Read(*PositionalEncodingService::NewStub(Connect(addresses[0])), Table(64, 7)).status.ok());
  EXPECT_LT(server.ResidentBytes(), before + kAllowedBytes);
}

TEST(MemoryTest, ThirtyTwoReadersAtOnceGrowTheServerByLessThan64MiBBeyondItsCache) {
  ServerProcess server(
      {"--listen=127.0.0.1:0", "--page-cache-bytes=" + std::to_string(kCacheMiB) + "MiB"});
  const std::string address = server.address();
  ASSERT_TRUE(
      Read(*PositionalEncodingService::NewStub(Connect(address)), Table(1, 99)).status.ok());
  const uint64_t before = server.ResidentBytes();

  std::vector<uint64_t> bytes(32);
  std::vector<uint64_t> peaks(bytes.size());
  std::vector<std::thread> readers;
  for (size_t i = 0; i < bytes.size(); ++i) {
    readers.emplace_back([&, i] {
      peaks[i] = PeakWhileReading(server, address, Table(64, static_cast<int>(i)), &bytes[i]);
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_THAT(bytes, ::testing::Each(64 * kMiB));
  const uint64_t peak = *std::max_element(peaks.begin(), peaks.end());
  EXPECT_LT(peak, before + kAllowedBytes);
  RecordProperty("grown_mib", static_cast<int>((peak - std::min(peak, before)) / kMiB));
}

// Minor and major faults so far: fields 10 and 12 of /proc/PID/stat.
uint64_t PageFaults(const ServerProcess& server) {
  std::ifstream file("/proc/" + std::to_string(server.pid()) + "/stat");
  file.ignore(std::numeric_limits<std::streamsize>::max(), ')');  // a name may hold anything
  std::string skipped;
  uint64_t minor = 0;
  uint64_t major = 0;
  for (int field = 3; field < 10; ++field) file >> skipped;
  file >> minor >> skipped >> major;
  return minor + major;
}

TEST(MemoryTest, AWarmServerTouchesNoFreshMemoryForATable) {
  for (const char* cache : {"--page-cache-bytes=128MiB", "--page-cache-bytes=0"}) {
    SCOPED_TRACE(cache);
    ServerProcess server({"--listen=127.0.0.1:0", cache});
    uint64_t bytes = 0;
    for (int i = 0; i < 3; ++i) PeakWhileReading(server, server.address(), Table(64, 1), &bytes);
    const uint64_t before = PageFaults(server);
    PeakWhileReading(server, server.address(), Table(64, 1), &bytes);
    EXPECT_EQ(bytes, 64 * kMiB);
    // It would be 16384 if the table were made in fresh memory; most often it is 0,
    // but how many blocks are in use at the same time depends on the reader.
    EXPECT_LT(PageFaults(server) - before, 2048u);
  }
}

}  // namespace
}  // namespace posenc::testing
