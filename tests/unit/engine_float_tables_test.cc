// Tables of numbers that come with a request: what the header says of them, and what of
// them is kept.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/hash.h"
#include "lib/engine/engine.h"
#include "tests/support/tables.h"

namespace posenc::testing {
namespace {

using ::testing::HasSubstr;

// side x side rows of 64 numbers, all `value`, asked for at their own resolution.
v1::GetTableRequest Constant(int64_t side, float value) {
  v1::GetTableRequest request;
  v1::FloatTable* table = request.mutable_spec()->mutable_table_resample()->mutable_table();
  table->add_shape(side * side);
  table->add_shape(64);
  const std::vector<float> values(static_cast<size_t>(side * side * 64), value);
  table->set_f32(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  request.mutable_selection()->mutable_patch_grid()->set_height(side);
  request.mutable_selection()->mutable_patch_grid()->set_width(side);
  return request;
}

std::string ReadAll(Engine& engine, const v1::GetTableRequest& request) {
  const auto table = engine.GetTable(request);
  EXPECT_TRUE(table.ok()) << table.status();
  std::string bytes;
  while (table.ok() && !(*table)->done()) {
    const Slice slice = (*table)->Next();
    bytes.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
  }
  return bytes;
}

TEST(EngineFloatTablesTest, AHeaderNamesTheNumbersOfALargeTableByTheirHash) {
  Engine engine;
  const v1::GetTableRequest large = Constant(32, 1);  // 256 KiB
  const auto table = engine.GetTable(large);
  ASSERT_TRUE(table.ok()) << table.status();
  const v1::FloatTable& echoed = (*table)->header().spec().table_resample().table();
  EXPECT_EQ(echoed.f32(), "");
  EXPECT_EQ(echoed.content_hash(), Hash128(large.spec().table_resample().table().f32()));
  EXPECT_EQ(echoed.shape(0), 1024);

  const v1::GetTableRequest small = Constant(16, 1);  // 64 KiB
  const auto whole = engine.GetTable(small);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ((*whole)->header().spec().table_resample().table().f32(),
            small.spec().table_resample().table().f32());
  EXPECT_EQ((*whole)->header().spec().table_resample().table().content_hash(), "");
}

TEST(EngineFloatTablesTest, AHashInARequestIsChecked) {
  Engine engine;
  const v1::GetTableRequest plain = Constant(4, 1);
  v1::GetTableRequest request = plain;
  v1::FloatTable* table = request.mutable_spec()->mutable_table_resample()->mutable_table();
  table->set_content_hash(Hash128(table->f32()));
  EXPECT_EQ((*engine.GetTable(request))->header().table_id(),
            (*engine.GetTable(plain))->header().table_id());
  table->mutable_f32()->front() ^= 1;
  EXPECT_THAT(std::string(engine.GetTable(request).status().message()),
              HasSubstr("table_resample.table.content_hash: is that of other numbers"));
  table->clear_f32();
  EXPECT_EQ(engine.GetTable(request).status().message(),
            "table_resample.table: names its numbers by content_hash alone: f32 is needed");
}

// Pages of 4 KiB of a table of 256 KiB: a key that holds the table would take 64 times
// the pages' bytes, so that not one page would be kept.
TEST(EngineFloatTablesTest, PagesOfALargeTableAreKeptWithoutIt) {
  Engine engine({.page_cache_bytes = size_t{1} << 20, .page_bytes = 4096});
  const v1::GetTableRequest request = Constant(32, 1);
  const std::string bytes = ReadAll(engine, request);
  EXPECT_EQ(bytes, request.spec().table_resample().table().f32());
  const v1::CacheStats first = engine.GetServerInfo().page_cache();
  EXPECT_EQ(first.entries(), 64u);
  EXPECT_LT(first.bytes(), bytes.size() + 64 * 256);
  EXPECT_EQ(ReadAll(engine, request), bytes);
  EXPECT_EQ(engine.GetServerInfo().page_cache().hits(), first.hits() + 64);
}

// Two tables of one shape never share a page, whether their plans are kept or not.
TEST(EngineFloatTablesTest, PagesOfTwoTablesAreNotMixedUp) {
  for (const size_t plan_cache_bytes : {size_t{64} << 20, size_t{0}}) {
    Engine engine({.plan_cache_bytes = plan_cache_bytes, .page_bytes = 4096});
    for (int round = 0; round < 3; ++round) {
      for (const float value : {1.0f, 2.0f, 3.0f}) {
        const v1::GetTableRequest request = Constant(32, value);
        EXPECT_TRUE(ReadAll(engine, request) == request.spec().table_resample().table().f32());
      }
    }
  }
}

TEST(EngineFloatTablesTest, ASizeBeyond63BitsIsSaidSo) {
  Engine engine;
  v1::GetTableRequest request;
  request.mutable_spec()->mutable_alibi()->set_num_heads(65536);
  *request.mutable_selection() = SelectGrid(int64_t{1} << 31, int64_t{1} << 31);
  const absl::Status status = engine.GetTable(request).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the table's more than 2^63 bytes exceed max_table_bytes"));
}

}  // namespace
}  // namespace posenc::testing
