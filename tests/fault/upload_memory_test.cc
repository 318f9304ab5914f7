// Uploads cost the server what they reserved, however many callers try and however they
// leave.
#include <algorithm>
#include <memory>
#include <string>
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
constexpr int64_t kTableMiB = 48;
constexpr uint64_t kBudgetMiB = 64;  // one table, not two

// A table of kTableMiB, announced and then sent in pieces of a MiB.
struct Upload {
  explicit Upload(const std::string& address)
      : stub(PositionalEncodingService::NewStub(Connect(address))),
        stream(stub->GetTableFromUpload(&context)) {
    v1::GetTableFromUploadRequest first;
    v1::FloatTable* table =
        first.mutable_request()->mutable_spec()->mutable_table_resample()->mutable_table();
    table->add_shape(512 * 512);
    table->add_shape(kTableMiB);
    v1::PatchGrid* grid = first.mutable_request()->mutable_selection()->mutable_patch_grid();
    grid->set_height(1);
    grid->set_width(1);
    stream->Write(first);
  }
  ~Upload() { context.TryCancel(); }

  // False when the server does not take it.
  bool Send(int64_t mib) {
    v1::GetTableFromUploadRequest message;
    for (int64_t i = 0; i < mib; ++i) {
      message.set_offset(sent);
      message.set_data(std::string(kMiB, '\1'));
      if (!stream->Write(message)) return false;
      sent += kMiB;
    }
    return true;
  }

  std::unique_ptr<PositionalEncodingService::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::GetTableFromUploadRequest, v1::GetTableResponse>>
      stream;
  uint64_t sent = 0;
};

TEST(UploadMemoryTest, ManyUploadsTakeNoMoreThanTheirBudget) {
  ServerProcess server({"--listen=127.0.0.1:0", "--stall-timeout=0",
                        "--max-upload-bytes=" + std::to_string(kBudgetMiB) + "MiB"});
  const std::vector<std::string> addresses = server.WaitForAddresses();
  ASSERT_THAT(addresses, SizeIs(1));
  ASSERT_TRUE(
      Read(*PositionalEncodingService::NewStub(Connect(addresses[0])), TableOf(kMiB)).status.ok());
  const uint64_t before = server.ResidentBytes();
  ASSERT_GT(before, 0u);

  uint64_t peak = 0;
  for (int round = 0; round < 4; ++round) {
    std::vector<std::unique_ptr<Upload>> uploads;
    for (int i = 0; i < 8; ++i) uploads.push_back(std::make_unique<Upload>(addresses[0]));
    for (const auto& upload : uploads) upload->Send(kTableMiB - 1);  // never all of it
    peak = std::max(peak, server.ResidentBytes());
  }
  // The others' first messages, and what gRPC has read ahead.
  EXPECT_LT(peak - std::min(peak, before), (kBudgetMiB + 64) * kMiB);
  RecordProperty("grown_mib", static_cast<int>((peak - std::min(peak, before)) / kMiB));
  EXPECT_TRUE(server.running());
}

}  // namespace
}  // namespace posenc::testing
