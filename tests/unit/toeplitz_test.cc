#include "lib/families/toeplitz.h"

#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace posenc {
namespace {

constexpr int64_t kHeads = 3;

v1::AttentionGrid Grid(int64_t query_length, int64_t key_length, int64_t query_offset) {
  v1::AttentionGrid grid;
  grid.set_query_length(query_length);
  grid.set_key_length(key_length);
  grid.set_query_offset(query_offset);
  return grid;
}

// A value that tells head and relative position apart.
int32_t Value(int64_t head, int64_t relative_position) {
  return static_cast<int32_t>(head * 10000 + relative_position);
}

void FillValues(int64_t head, int64_t first, std::span<std::byte> out) {
  for (size_t i = 0; i < out.size() / sizeof(int32_t); ++i) {
    const int32_t value = Value(head, first + static_cast<int64_t>(i));
    std::memcpy(out.data() + i * sizeof(value), &value, sizeof(value));
  }
}

using FillPart = void (*)(const v1::AttentionGrid&, int64_t, int64_t, std::span<std::byte>,
                          FillRelative);

std::vector<int32_t> Part(FillPart fill, const v1::AttentionGrid& grid, int64_t begin,
                          int64_t end) {
  std::vector<int32_t> part(static_cast<size_t>(end - begin), -1);
  fill(grid, sizeof(int32_t), begin, std::as_writable_bytes(std::span(part)), FillValues);
  return part;
}

// The slow twins: the definition, one element at a time.
std::vector<int32_t> SlowMatrix(const v1::AttentionGrid& grid) {
  std::vector<int32_t> matrix;
  for (int64_t head = 0; head < kHeads; ++head) {
    for (int64_t i = 0; i < grid.query_length(); ++i) {
      for (int64_t j = 0; j < grid.key_length(); ++j) {
        matrix.push_back(Value(head, j - (grid.query_offset() + i)));
      }
    }
  }
  return matrix;
}

std::vector<int32_t> SlowVectors(const v1::AttentionGrid& grid) {
  std::vector<int32_t> vectors;
  const int64_t first = -(grid.query_offset() + grid.query_length() - 1);
  for (int64_t head = 0; head < kHeads; ++head) {
    for (int64_t v = 0; v < grid.query_length() + grid.key_length() - 1; ++v) {
      vectors.push_back(Value(head, first + v));
    }
  }
  return vectors;
}

std::vector<v1::AttentionGrid> Grids() {
  return {Grid(1, 1, 0), Grid(1, 7, 6), Grid(5, 1, 3),  Grid(4, 4, 0),
          Grid(3, 5, 2), Grid(6, 2, 0), Grid(2, 9, 100)};
}

TEST(ToeplitzTest, MatrixIsTheDefinitionAtEveryCut) {
  for (const v1::AttentionGrid& grid : Grids()) {
    const std::vector<int32_t> slow = SlowMatrix(grid);
    const int64_t size = static_cast<int64_t>(slow.size());
    for (int64_t begin = 0; begin <= size; ++begin) {
      for (int64_t end = begin; end <= size; ++end) {
        const std::vector<int32_t> expected(slow.begin() + begin, slow.begin() + end);
        ASSERT_EQ(Part(FillToeplitzMatrix, grid, begin, end), expected)
            << grid.ShortDebugString() << " [" << begin << ", " << end << ")";
      }
    }
  }
}

TEST(ToeplitzTest, VectorsAreTheDefinitionAtEveryCut) {
  for (const v1::AttentionGrid& grid : Grids()) {
    const std::vector<int32_t> slow = SlowVectors(grid);
    const int64_t size = static_cast<int64_t>(slow.size());
    for (int64_t begin = 0; begin <= size; ++begin) {
      for (int64_t end = begin; end <= size; ++end) {
        const std::vector<int32_t> expected(slow.begin() + begin, slow.begin() + end);
        ASSERT_EQ(Part(FillToeplitzVectors, grid, begin, end), expected)
            << grid.ShortDebugString() << " [" << begin << ", " << end << ")";
      }
    }
  }
}

// The largest grid has 2^62 elements a head; the last row ends at the main
// diagonal's key, query_length - 1.
TEST(ToeplitzTest, AddressesPast32BitsAreRight) {
  const int64_t length = int64_t{1} << 31;
  const v1::AttentionGrid grid = Grid(length, length, 0);
  const int64_t last = length * length;
  EXPECT_THAT(Part(FillToeplitzMatrix, grid, last - 3, last), ::testing::ElementsAre(-2, -1, 0));
  const int64_t row = 1'999'999'999;
  EXPECT_THAT(Part(FillToeplitzMatrix, grid, row * length + row - 1, row * length + row + 2),
              ::testing::ElementsAre(-1, 0, 1));
}

}  // namespace
}  // namespace posenc
