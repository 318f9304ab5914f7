// A request cut into messages: all of its numbers, once, in field order.
#include "client/request_parts.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "xxhash.h"

namespace posenc {
namespace {

using ::testing::SizeIs;

std::vector<v1::GetTableFromUploadRequest> MessagesOf(const v1::GetTableRequest& request) {
  RequestParts parts(request);
  std::vector<v1::GetTableFromUploadRequest> messages;
  while (auto message = parts.Next()) messages.push_back(*std::move(message));
  return messages;
}

TEST(RequestPartsTest, TheRequestComesFirstAndTheNumbersInPieces) {
  v1::GetTableRequest request;
  v1::FloatTable* table = request.mutable_spec()->mutable_table_resample()->mutable_table();
  table->add_shape(5);
  for (size_t i = 0; i < 2 * kUploadMessageBytes + 4; ++i) {
    table->mutable_f32()->push_back(static_cast<char>(i * i));
  }
  request.mutable_selection()->mutable_patch_grid()->set_height(3);
  const auto messages = MessagesOf(request);
  ASSERT_THAT(messages, SizeIs(4));
  EXPECT_EQ(messages[0].request().selection().patch_grid().height(), 3);
  EXPECT_EQ(messages[0].request().spec().table_resample().table().shape(0), 5);
  EXPECT_EQ(messages[0].request().spec().table_resample().table().f32(), "");
  std::string numbers;
  for (size_t i = 1; i < messages.size(); ++i) {
    EXPECT_FALSE(messages[i].has_request());
    EXPECT_EQ(messages[i].offset(), numbers.size());
    EXPECT_EQ(messages[i].checksum(),
              XXH3_64bits(messages[i].data().data(), messages[i].data().size()));
    EXPECT_LE(messages[i].data().size(), kUploadMessageBytes);
    numbers += messages[i].data();
  }
  EXPECT_EQ(numbers, table->f32());
}

// Both of a spec inside a mask, one of them as JSON has it; offsets run through.
TEST(RequestPartsTest, SeveralTablesAreOneStream) {
  v1::GetTableRequest request;
  v1::HstuTimeBiasSpec* hstu =
      request.mutable_spec()->mutable_mask()->mutable_bias()->mutable_hstu_time_bias();
  hstu->mutable_position_table()->add_values(1.0f);
  hstu->mutable_position_table()->add_values(2.0f);
  hstu->mutable_time_table()->set_f32("abcd");
  const auto messages = MessagesOf(request);
  ASSERT_THAT(messages, SizeIs(3));
  const v1::HstuTimeBiasSpec& rest = messages[0].request().spec().mask().bias().hstu_time_bias();
  EXPECT_EQ(rest.position_table().values_size(), 0);
  EXPECT_EQ(messages[1].data(), std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  EXPECT_EQ(messages[2].data(), "abcd");
  EXPECT_EQ(messages[2].offset(), 8u);
}

TEST(RequestPartsTest, ARequestWithoutTablesHasNone) {
  v1::GetTableRequest request;
  EXPECT_FALSE(RequestParts(request).has_tables());
  request.mutable_spec()->mutable_t5();
  EXPECT_FALSE(RequestParts(request).has_tables());
  request.mutable_model()->set_config_json("{}");
  EXPECT_FALSE(RequestParts(request).has_tables());
  // Numbers twice are refused by whoever checks the request.
  v1::FloatTable* table = request.mutable_spec()->mutable_t5()->mutable_bias_table();
  table->set_f32("abcd");
  table->add_values(1);
  EXPECT_FALSE(RequestParts(request).has_tables());
}

}  // namespace
}  // namespace posenc
