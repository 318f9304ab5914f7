#include "lib/families/token_order.h"

#include <set>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace posenc {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

// Row-major numbers of the patches of the first frame, in token order.
std::vector<int64_t> Patches(const TokenOrder& order, const PatchGrid& grid) {
  std::vector<int64_t> patches;
  for (int64_t token = 0; token < grid.height * grid.width; ++token) {
    const GridPoint point = order.At(grid, token);
    patches.push_back(point.y * grid.width + point.x);
  }
  return patches;
}

TEST(TokenOrderTest, ColumnMajorRunsDownTheColumns) {
  EXPECT_THAT(Patches({v1::GRID_TOKEN_ORDER_COLUMN_MAJOR}, {1, 2, 3}),
              ElementsAre(0, 3, 1, 4, 2, 5));
}

// Qwen2-VL reshapes (H, W) to (H/m, m, W/m, m) and transposes the middle two.
TEST(TokenOrderTest, MergeBlocksAreTheTransposeOfFourAxes) {
  EXPECT_THAT(Patches({v1::GRID_TOKEN_ORDER_MERGE_BLOCKS, 2}, {1, 4, 6}),
              ElementsAre(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11,  //
                          12, 13, 18, 19, 14, 15, 20, 21, 16, 17, 22, 23));
}

// Qwen2.5-VL's get_window_index written as it is there: the merged grid is padded
// to whole windows with -1, cut into windows, and the padding is dropped.
std::vector<int64_t> PaddedWindows(int64_t window, int64_t height, int64_t width) {
  const int64_t rows = height + window - height % window;
  const int64_t columns = width + window - width % window;
  std::vector<int64_t> index;
  for (int64_t top = 0; top < rows; top += window) {
    for (int64_t left = 0; left < columns; left += window) {
      for (int64_t y = top; y < top + window; ++y) {
        for (int64_t x = left; x < left + window; ++x) {
          if (y < height && x < width) index.push_back(y * width + x);
        }
      }
    }
  }
  return index;
}

TEST(TokenOrderTest, WindowsAreThoseOfThePaddedGrid) {
  for (int64_t window = 1; window <= 5; ++window) {
    for (int64_t height = 1; height <= 11; ++height) {
      for (int64_t width = 1; width <= 11; ++width) {
        const TokenOrder order{v1::GRID_TOKEN_ORDER_MERGE_WINDOWS, 1, window};
        EXPECT_THAT(Patches(order, {1, height, width}),
                    ElementsAreArray(PaddedWindows(window, height, width)))
            << window << " " << height << "x" << width;
      }
    }
  }
}

TEST(TokenOrderTest, WindowsMoveWholeMergedSquares) {
  const TokenOrder order{v1::GRID_TOKEN_ORDER_MERGE_WINDOWS, 2, 1};
  EXPECT_EQ(Patches(order, {1, 4, 6}), Patches({v1::GRID_TOKEN_ORDER_MERGE_BLOCKS, 2}, {1, 4, 6}));
}

TEST(TokenOrderTest, EveryOrderVisitsEveryPatchOnceFrameByFrame) {
  const PatchGrid grid{3, 6, 8};
  for (const TokenOrder& order :
       {TokenOrder{v1::GRID_TOKEN_ORDER_ROW_MAJOR}, TokenOrder{v1::GRID_TOKEN_ORDER_COLUMN_MAJOR},
        TokenOrder{v1::GRID_TOKEN_ORDER_MERGE_BLOCKS, 2},
        TokenOrder{v1::GRID_TOKEN_ORDER_MERGE_WINDOWS, 2, 2}}) {
    std::set<std::tuple<int64_t, int64_t, int64_t>> seen;
    for (int64_t token = 0; token < grid.tokens(); ++token) {
      const GridPoint point = order.At(grid, token);
      EXPECT_EQ(point.t, token / 48);
      EXPECT_TRUE(point.y >= 0 && point.y < 6 && point.x >= 0 && point.x < 8);
      seen.emplace(point.t, point.y, point.x);
    }
    EXPECT_EQ(seen.size(), 144u) << order.order;
  }
}

TEST(TokenOrderTest, SidesThatDoNotMergeAreRefusedByName) {
  const TokenOrder order{v1::GRID_TOKEN_ORDER_MERGE_BLOCKS, 2};
  EXPECT_EQ(order.Check({1, 3, 4}).message(),
            "selection.patch_grid.height: must be a multiple of merge_size (2), got 3");
  EXPECT_EQ(order.Check({1, 4, 5}).message(),
            "selection.patch_grid.width: must be a multiple of merge_size (2), got 5");
  EXPECT_TRUE(order.Check({1, 4, 6}).ok());
}

}  // namespace
}  // namespace posenc
