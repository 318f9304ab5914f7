// Uploads put together, however they are cut: the request comes out as if it had come
// in one piece. What is refused, over a socket: tests/service/upload_test.cc.
#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "lib/base/hash.h"
#include "lib/engine/upload.h"

namespace posenc {
namespace {

// Two tables inside a mask's bias, of 28 and 24 bytes.
v1::HstuTimeBiasSpec* HstuOf(v1::GetTableRequest* request) {
  return request->mutable_spec()->mutable_mask()->mutable_bias()->mutable_hstu_time_bias();
}

v1::GetTableRequest Whole(const std::string& numbers) {
  v1::GetTableRequest request;
  request.set_read_offset(5);
  HstuOf(&request)->mutable_position_table()->add_shape(7);
  HstuOf(&request)->mutable_position_table()->set_f32(numbers.substr(0, 28));
  HstuOf(&request)->mutable_time_table()->add_shape(2);
  HstuOf(&request)->mutable_time_table()->add_shape(3);
  HstuOf(&request)->mutable_time_table()->set_f32(numbers.substr(28));
  return request;
}

v1::GetTableRequest WithoutNumbers(v1::GetTableRequest request) {
  HstuOf(&request)->mutable_position_table()->clear_f32();
  HstuOf(&request)->mutable_time_table()->clear_f32();
  return request;
}

TEST(EngineUploadTest, AnyCutGivesTheWholeRequest) {
  std::mt19937 random(7);
  std::string numbers(52, '\0');
  for (char& byte : numbers) byte = static_cast<char>(random());
  const v1::GetTableRequest whole = Whole(numbers);
  for (int round = 0; round < 200; ++round) {
    absl::StatusOr<Upload> upload = Upload::Begin(WithoutNumbers(whole));
    ASSERT_TRUE(upload.ok()) << upload.status();
    EXPECT_EQ(upload->bytes(), 52u);
    Upload moved = *std::move(upload);  // what it fills moves with it
    while (moved.received() < 52) {
      const size_t size = random() % 20;  // 0 too
      v1::GetTableFromUploadRequest message;
      message.set_offset(moved.received());
      message.set_data(numbers.substr(moved.received(), size));
      message.set_checksum(Hash64(message.data()));
      ASSERT_TRUE(moved.Append(message).ok());
    }
    const absl::StatusOr<v1::GetTableRequest> request = moved.Finish();
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_EQ(request->SerializeAsString(), whole.SerializeAsString());
  }
}

TEST(EngineUploadTest, OnlyWhatIsMissingIsTaken) {
  v1::GetTableRequest request = Whole(std::string(52, 'a'));
  HstuOf(&request)->mutable_position_table()->clear_f32();
  absl::StatusOr<Upload> upload = Upload::Begin(request);
  ASSERT_TRUE(upload.ok()) << upload.status();
  EXPECT_EQ(upload->bytes(), 28u);
  v1::GetTableFromUploadRequest message;
  message.set_data(std::string(29, 'b'));
  EXPECT_EQ(upload->Append(message).message(),
            "data: goes beyond the 28 bytes of the tables: 29 at offset 0");
  EXPECT_EQ(upload->Finish().status().message(),
            "data: ended after 0 of the 28 bytes of the tables");
}

}  // namespace
}  // namespace posenc
