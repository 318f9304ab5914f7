#include "lib/families/token_order.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"

namespace posenc {
namespace {

// `place` in a row-major grid of squares, and in the square there.
GridPoint InSquare(const GridPoint& square, int64_t merge_size, int64_t patch) {
  return {0, square.y * merge_size + patch / merge_size,
          square.x * merge_size + patch % merge_size};
}

// Square number `index` of a frame of height x width squares, window by window.
// Windows at the right and lower edges are cut off, so their squares are counted
// with the sides that they have.
GridPoint SquareInWindows(int64_t index, int64_t window, int64_t height, int64_t width) {
  const int64_t window_row = index / (window * width);
  const int64_t rows = std::min(window, height - window_row * window);
  index -= window_row * window * width;
  const int64_t window_column = index / (rows * window);
  const int64_t columns = std::min(window, width - window_column * window);
  index -= window_column * rows * window;
  return {0, window_row * window + index / columns, window_column * window + index % columns};
}

absl::Status CheckDivides(absl::string_view side, int64_t length, int64_t merge_size) {
  if (length % merge_size == 0) return absl::OkStatus();
  return FieldError(
      absl::StrCat("selection.patch_grid.", side),
      absl::StrCat("must be a multiple of merge_size (", merge_size, "), got ", length));
}

bool Merges(v1::GridTokenOrder order) {
  return order == v1::GRID_TOKEN_ORDER_MERGE_BLOCKS || order == v1::GRID_TOKEN_ORDER_MERGE_WINDOWS;
}

}  // namespace

absl::Status TokenOrder::Check(const PatchGrid& grid) const {
  if (!Merges(order)) return absl::OkStatus();
  RETURN_IF_ERROR(CheckDivides("height", grid.height, merge_size));
  return CheckDivides("width", grid.width, merge_size);
}

GridPoint TokenOrder::At(const PatchGrid& grid, int64_t token) const {
  const int64_t frame = grid.height * grid.width;
  const int64_t t = token / frame;
  const int64_t i = token % frame;
  const int64_t patches = merge_size * merge_size;
  GridPoint point;
  switch (order) {
    case v1::GRID_TOKEN_ORDER_COLUMN_MAJOR:
      point = {t, i % grid.height, i / grid.height};
      break;
    case v1::GRID_TOKEN_ORDER_MERGE_BLOCKS: {
      const int64_t columns = grid.width / merge_size;
      const int64_t square = i / patches;
      point = InSquare({0, square / columns, square % columns}, merge_size, i % patches);
      break;
    }
    case v1::GRID_TOKEN_ORDER_MERGE_WINDOWS:
      point = InSquare(SquareInWindows(i / patches, window_size, grid.height / merge_size,
                                       grid.width / merge_size),
                       merge_size, i % patches);
      break;
    default:  // ROW_MAJOR; a canonical spec has no other
      point = {t, i / grid.width, i % grid.width};
  }
  point.t = t;
  return point;
}

absl::Status CheckGridAxis(absl::string_view field, v1::GridAxis axis) {
  if (axis == v1::GRID_AXIS_T || axis == v1::GRID_AXIS_Y || axis == v1::GRID_AXIS_X) {
    return absl::OkStatus();
  }
  return FieldError(field, axis == v1::GRID_AXIS_UNSPECIFIED
                               ? std::string("is required: t, y or x")
                               : absl::StrCat("must be t, y or x, got ", static_cast<int>(axis)));
}

}  // namespace posenc
