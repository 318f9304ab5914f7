// The cursor, with a plan whose every element is its own address: any reading
// order must give the same consecutive numbers.
#include "lib/engine/table.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gtest/gtest.h"

namespace posenc {
namespace {

// Element at address a of tensor t is 1000000 * t + a, as i32.
class AddressPlan final : public Plan {
 public:
  size_t bytes() const override { return 0; }
  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    ++fills_;
    EXPECT_EQ(begin % shape.tensors[tensor].unit, 0);
    EXPECT_EQ(out.size() % (4 * static_cast<size_t>(shape.tensors[tensor].unit)), 0u);
    for (size_t i = 0; i < out.size() / 4; ++i) {
      const auto value = static_cast<int32_t>(1000000 * static_cast<int64_t>(tensor) + begin +
                                              static_cast<int64_t>(i));
      std::memcpy(out.data() + 4 * i, &value, 4);
    }
    elements_ += static_cast<int64_t>(out.size() / 4);
  }
  void Describe(v1::DescribeTableResponse*) const override {}

  int fills() const { return fills_; }
  int64_t elements() const { return elements_; }

 private:
  mutable std::atomic<int> fills_ = 0;
  mutable std::atomic<int64_t> elements_ = 0;
};

struct Case {
  int64_t begin, rows, width;
  size_t tensors = 1;
};

TableShape MakeShape(const Case& c) {
  TableShape shape;
  for (size_t t = 0; t < c.tensors; ++t) {
    shape.tensors.push_back(Tensor{
        "t" + std::to_string(t), v1::DTYPE_I32, {c.rows, c.width}, c.width, c.begin * c.width});
  }
  return shape;
}

std::unique_ptr<Table> Open(const Case& c, std::shared_ptr<const Plan> plan,
                            SingleFlightCache<Page>* pages, size_t page_bytes, uint64_t offset) {
  const TableShape shape = MakeShape(c);
  v1::TableHeader header;
  EXPECT_TRUE(SetTensors(shape, &header));
  const auto pool = std::make_shared<BlockPool>(page_bytes, 4 * page_bytes);
  return std::make_unique<Table>(header, shape, "spec", std::move(plan),
                                 PageSource{pages, pool, page_bytes}, offset);
}

std::string ReadAll(Table* table) {
  std::string bytes;
  while (!table->done()) {
    const Slice slice = table->Next();
    EXPECT_FALSE(slice.bytes.empty());
    bytes.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
  }
  return bytes;
}

std::string Expected(const Case& c) {
  std::string bytes;
  for (size_t t = 0; t < c.tensors; ++t) {
    for (int64_t i = 0; i < c.rows * c.width; ++i) {
      const auto value =
          static_cast<int32_t>(1000000 * static_cast<int64_t>(t) + c.begin * c.width + i);
      bytes.append(reinterpret_cast<const char*>(&value), 4);
    }
  }
  return bytes;
}

const Case kCases[] = {{0, 100, 6},  {5, 100, 6, 2}, {0, 0, 6},   {3, 0, 6, 2}, {-50, 100, 3},
                       {7, 1, 1000}, {1, 64, 16, 3}, {63, 2, 16}, {0, 1, 1}};

TEST(TableTest, AnyPageSizeAndAnyCacheGivesTheSameBytes) {
  for (const Case& c : kCases) {
    for (const size_t budget : {0u, 3000u, 1u << 20}) {
      for (const size_t page_bytes : {1u, 64u, 1000u, 1u << 20}) {
        SingleFlightCache<Page> pages(budget);
        const auto plan = std::make_shared<AddressPlan>();
        EXPECT_EQ(ReadAll(Open(c, plan, &pages, page_bytes, 0).get()), Expected(c));
        EXPECT_EQ(ReadAll(Open(c, plan, &pages, page_bytes, 0).get()), Expected(c)) << "again";
      }
    }
  }
}

TEST(TableTest, ResumedAtEveryOffsetGivesTheRest) {
  for (const Case& c : kCases) {
    const std::string all = Expected(c);
    SingleFlightCache<Page> pages(1000);
    const auto plan = std::make_shared<AddressPlan>();
    for (size_t offset = 0; offset <= all.size(); offset += 1 + offset / 64) {
      EXPECT_EQ(ReadAll(Open(c, plan, &pages, 256, offset).get()), all.substr(offset));
    }
  }
}

TEST(TableTest, FillRestGivesWhatNextWouldFromTheStartOfATensor) {
  int filled = 0;
  for (const Case& c : kCases) {
    const std::string all = Expected(c);
    SingleFlightCache<Page> pages(1 << 20);
    const auto plan = std::make_shared<AddressPlan>();
    for (size_t offset = 0; offset < all.size(); ++offset) {
      const auto table = Open(c, plan, &pages, 256, offset);
      std::vector<int32_t> out(all.size() / 4 + 1);
      const auto rest = std::as_writable_bytes(std::span(out)).first(all.size() - offset);
      const bool begins_a_tensor = offset % (all.size() / c.tensors) == 0;
      ASSERT_EQ(table->FillRest(rest), begins_a_tensor) << offset;
      EXPECT_EQ(table->offset(), begins_a_tensor ? all.size() : offset);
      if (!begins_a_tensor) continue;
      EXPECT_EQ(std::memcmp(rest.data(), all.data() + offset, rest.size()), 0);
      ++filled;
    }
  }
  EXPECT_EQ(filled, 10);  // the tensors of kCases that are not empty
}

TEST(TableTest, FillRestLeavesMemoryThatIsNotAligned) {
  SingleFlightCache<Page> pages(1 << 20);
  const auto table = Open(kCases[0], std::make_shared<AddressPlan>(), &pages, 256, 0);
  std::vector<int32_t> out(Expected(kCases[0]).size() / 4 + 1);
  const auto bytes = std::as_writable_bytes(std::span(out));
  EXPECT_FALSE(table->FillRest(bytes.subspan(1, Expected(kCases[0]).size())));
  EXPECT_EQ(table->offset(), 0u);
}

TEST(TableTest, NextIfCachedGivesWhatNextWouldAndComputesNothing) {
  int cached = 0;
  for (const Case& c : kCases) {
    const std::string all = Expected(c);
    SingleFlightCache<Page> pages(1 << 20);
    const auto plan = std::make_shared<AddressPlan>();
    ReadAll(Open(c, plan, &pages, 256, 0).get());
    const int fills = plan->fills();
    for (size_t offset = 0; offset < all.size(); offset += 1 + offset / 64) {
      const auto table = Open(c, plan, &pages, 256, offset);
      const std::optional<Slice> slice = table->NextIfCached();
      EXPECT_EQ(plan->fills(), fills);
      if (!slice.has_value()) {
        EXPECT_EQ(table->offset(), offset);
        continue;
      }
      const auto bytes =
          std::string(reinterpret_cast<const char*>(slice->bytes.data()), slice->bytes.size());
      EXPECT_EQ(bytes, all.substr(offset, bytes.size()));
      EXPECT_FALSE(bytes.empty());
      ++cached;
    }
  }
  EXPECT_GT(cached, 100);
}

TEST(TableTest, OverlappingRangesShareWholePages) {
  SingleFlightCache<Page> pages(1 << 20);
  const auto plan = std::make_shared<AddressPlan>();
  ReadAll(Open({0, 64, 4}, plan, &pages, 256, 0).get());  // 4 pages of 16 rows
  EXPECT_EQ(plan->fills(), 4);
  ReadAll(Open({16, 32, 4}, plan, &pages, 256, 0).get());  // the two in the middle
  ReadAll(Open({20, 8, 4}, plan, &pages, 256, 0).get());   // part of one
  EXPECT_EQ(plan->fills(), 4);
}

TEST(TableTest, AShortRangeComputesNoMoreThanItsRows) {
  SingleFlightCache<Page> pages(1 << 20);
  const auto plan = std::make_shared<AddressPlan>();
  ReadAll(Open({20, 3, 4}, plan, &pages, 4096, 0).get());
  EXPECT_EQ(plan->elements(), 3 * 4);
}

TEST(TableTest, NothingIsComputedBeforeItIsAskedFor) {
  SingleFlightCache<Page> pages(1 << 20);
  const auto plan = std::make_shared<AddressPlan>();
  const auto table = Open({0, 64, 4}, plan, &pages, 256, 0);
  EXPECT_EQ(plan->fills(), 0);
  table->Next();
  EXPECT_EQ(plan->fills(), 1);
}

TEST(SetTensorsTest, ASizeThatOverflowsIsRefused) {
  TableShape shape;
  shape.tensors.push_back(
      Tensor{"t", v1::DTYPE_F64, {int64_t{1} << 31, int64_t{1} << 31, 2}, 1, 0});
  v1::TableHeader header;
  EXPECT_FALSE(SetTensors(shape, &header));
}

}  // namespace
}  // namespace posenc
