// Coordinates of images, videos and boxes: what a selection may name besides
// positions, checked once here for every family. Errors name the field:
// `selection.patch_grid.height: must be in [0, 1048576], got -1`.
#ifndef POSENC_LIB_FAMILIES_GRID_SELECTION_H_
#define POSENC_LIB_FAMILIES_GRID_SELECTION_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Sides of a grid are bounded so that indexes are exact in float32 and the
// number of its tokens fits 63 bits.
inline constexpr int64_t kMaxGridSide = int64_t{1} << 20;

// Coordinates of points are bounded so that every angle stays in the range that
// the argument reduction is made for.
inline constexpr double kMaxCoordinate = 0x1p24;

struct PatchGrid {
  int64_t frames = 1;
  int64_t height = 0;
  int64_t width = 0;

  int64_t tokens() const { return frames * height * width; }
};

struct ResolvedGrid {
  v1::Selection selection;  // canonical
  PatchGrid grid;
  std::string coordinates_key;
};

// Checks that `selection` is a patch_grid with sides in [0, kMaxGridSide] and
// fills in the default of frames.
absl::StatusOr<ResolvedGrid> ResolvePatchGrid(const v1::Selection& selection);

// A grid of a canonical selection.
PatchGrid PatchGridOf(const v1::Selection& selection);

// Refuses more than one frame, for encodings of images.
absl::Status CheckOneFrame(const PatchGrid& grid);

struct ResolvedMask {
  v1::Selection selection;  // canonical: always a token_mask
  int64_t height = 0;
  int64_t width = 0;
  std::string coordinates_key;
};

// Checks that `selection` is a token_mask of height * width bytes that are 0 or
// 1, or a patch_grid of one frame, which is a mask without padding.
absl::StatusOr<ResolvedMask> ResolveMask(const v1::Selection& selection);

struct ResolvedPoints {
  v1::Selection selection;  // canonical
  int64_t dimensions = 0;
  int64_t count = 0;
  std::string coordinates_key;
};

// Checks that `selection` is points of min_dimensions to max_dimensions
// coordinates, each finite and at most kMaxCoordinate in magnitude.
absl::StatusOr<ResolvedPoints> ResolvePoints(const v1::Selection& selection, int64_t min_dimensions,
                                             int64_t max_dimensions);

struct ResolvedAxisIds {
  v1::Selection selection;  // canonical: always axis_position_ids
  int64_t count = 0;        // tokens
  std::string coordinates_key;
};

// Checks that `selection` is axis_position_ids with `axes` axes of equal length,
// each id in (-kMaxPosition, kMaxPosition).
absl::StatusOr<ResolvedAxisIds> ResolveAxisIds(const v1::Selection& selection, int64_t axes);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_GRID_SELECTION_H_
