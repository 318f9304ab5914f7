#include "tests/support/rope_lines.h"

#include <string>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"
#include "tests/support/tables.h"

namespace posenc::golden {
namespace {

std::vector<uint32_t> Bits(const Json& hex_list) {
  std::vector<uint32_t> bits;
  for (const uint64_t element : BitsOfHexList(hex_list)) {
    bits.push_back(static_cast<uint32_t>(element));
  }
  return bits;
}

std::vector<uint32_t> Patched(const Json& row, const char* hex, const char* patch) {
  std::vector<uint32_t> bits = Bits(Get(row, hex));
  if (!Has(row, patch)) return bits;
  for (const auto& entry : Get(row, patch).GetObject()) {
    size_t index = 0;
    EXPECT_TRUE(absl::SimpleAtoi(entry.name.GetString(), &index));
    bits.at(index) = static_cast<uint32_t>(BitsOfHex(entry.value.GetString()));
  }
  return bits;
}

}  // namespace

std::vector<uint32_t> InvFreqOf(const Json& object) {
  return Bits(Get(object, Has(object, "inv_freq_cr_hex") ? "inv_freq_cr_hex" : "inv_freq_hex"));
}

std::vector<RopeRow> RowsOf(const Json& line) {
  std::vector<RopeRow> rows;
  for (const Json& row : Get(line, "rows").GetArray()) {
    if (!Has(row, "position")) continue;
    RopeRow& added = rows.emplace_back();
    added.position = Get(row, "position").GetInt64();
    if (Has(row, "seq_len")) added.sequence_length = Get(row, "seq_len").GetInt64();
    added.cos = Patched(row, "cos_hex", "cos_cr");
    added.sin = Patched(row, "sin_hex", "sin_cr");
    if (Has(row, "inv_freq_hex")) added.inv_freq = InvFreqOf(row);
  }
  return rows;
}

void ExpectInvFreq(const v1::EncodingSpec& spec, const std::vector<uint32_t>& expected) {
  const auto table =
      testing::FillTable(spec, v1::Selection(), testing::Format("layout: LAYOUT_INV_FREQ"));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->tensors[0].As<uint32_t>(), expected);
}

void ExpectRopeRow(const v1::EncodingSpec& spec, const RopeRow& row) {
  SCOPED_TRACE(row.position);
  const auto table = testing::FillTable(spec, testing::SelectIds({row.position}),
                                        testing::Format("layout: LAYOUT_COS_AND_SIN_HALF"));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->tensors[0].As<uint32_t>(), row.cos);
  EXPECT_EQ(table->tensors[1].As<uint32_t>(), row.sin);
}

}  // namespace posenc::golden
