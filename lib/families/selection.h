// Which coordinates a table has: checked once here, for every family.
//
// Rules: what is required is there, ranges are not reversed, and nothing leaves
// the bounds of family.h. Errors name the field: `selection.position_range.end:
// must be at least begin (8), got 5`.
#ifndef POSENC_LIB_FAMILIES_SELECTION_H_
#define POSENC_LIB_FAMILIES_SELECTION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/families/family.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Ids, points and masks travel in the request and in the header, and are part of
// every page's key.
inline constexpr int64_t kMaxExplicitCoordinates = int64_t{1} << 20;

// How many coordinates `selection` spells out; 0 for ranges and grids.
int64_t ExplicitCoordinates(const v1::Selection& selection);

// "selection: is required: a patch_grid", or what came instead of it.
absl::Status WrongSelection(const v1::Selection& selection, absl::string_view wanted);

// Positions as rows: row address a of a range is position a; of explicit ids it
// is their element a.
struct Positions {
  v1::Selection selection;  // canonical
  int64_t origin = 0;       // row address of the first row
  int64_t count = 0;        // rows, may be 0
  std::string coordinates_key;
};

// Checks that `selection` is a range or ids within [min_position, kMaxPosition).
absl::StatusOr<Positions> ResolvePositions(const v1::Selection& selection, int64_t min_position);

// The position of a row address of a canonical selection.
inline int64_t PositionAt(const v1::Selection& selection, int64_t row) {
  return selection.has_position_ids() ? selection.position_ids().ids(static_cast<int>(row)) : row;
}

// Query i at position query_offset + i, key j at position j.
struct Grid {
  v1::Selection selection;  // canonical
  int64_t query_length = 0;
  int64_t key_length = 0;
  int64_t query_offset = 0;
  std::string coordinates_key;

  // Relative positions (key - query) are the consecutive integers from
  // first_relative_position() on, vector_length() of them; none when a side is empty.
  int64_t first_relative_position() const { return -(query_offset + query_length - 1); }
  int64_t vector_length() const {
    return query_length == 0 || key_length == 0 ? 0 : query_length + key_length - 1;
  }
};

// Checks that `selection` is a grid: lengths in [0, kMaxGridLength], offset in
// [0, kMaxPosition).
absl::StatusOr<Grid> ResolveGrid(const v1::Selection& selection);

// Checks that nothing is selected: the encoding's own fields say what there is.
absl::Status ResolveNoSelection(const v1::Selection& selection);

// Fills in the default layout and dtype and checks that the family has them.
absl::Status ResolveFormat(const Family& family, v1::TensorFormat* format);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_SELECTION_H_
