// From a token's index to its place in the grid of patches.
//
// Grids are stored frame by frame; within a frame the order is the model's
// (GridTokenOrder). Places are computed, not listed: a page of a table needs
// only the tokens that are in it.
#ifndef POSENC_LIB_FAMILIES_TOKEN_ORDER_H_
#define POSENC_LIB_FAMILIES_TOKEN_ORDER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/families/grid_selection.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

struct GridPoint {
  int64_t t = 0;
  int64_t y = 0;
  int64_t x = 0;

  int64_t on(v1::GridAxis axis) const {
    return axis == v1::GRID_AXIS_T ? t : axis == v1::GRID_AXIS_Y ? y : x;
  }
  bool operator==(const GridPoint&) const = default;
};

// Length of a grid along an axis.
inline int64_t LengthOn(v1::GridAxis axis, const PatchGrid& grid) {
  return GridPoint{grid.frames, grid.height, grid.width}.on(axis);
}

struct TokenOrder {
  v1::GridTokenOrder order = v1::GRID_TOKEN_ORDER_ROW_MAJOR;
  int64_t merge_size = 1;   // patches per side of a square; MERGE_BLOCKS and MERGE_WINDOWS
  int64_t window_size = 1;  // squares per side of a window; MERGE_WINDOWS

  // Refuses a grid whose sides are no multiples of merge_size, where that counts.
  absl::Status Check(const PatchGrid& grid) const;

  // REQUIRES: 0 <= token < grid.tokens(), Check(grid) is OK. O(1).
  GridPoint At(const PatchGrid& grid, int64_t token) const;
};

// "spec.axis" must be one of the three axes.
absl::Status CheckGridAxis(absl::string_view field, v1::GridAxis axis);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_TOKEN_ORDER_H_
