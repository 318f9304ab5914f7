#include "lib/families/grid_selection.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "lib/base/canonical_key.h"
#include "lib/base/status.h"
#include "lib/families/selection.h"

namespace posenc {
namespace {

constexpr absl::string_view kGrid = "selection.patch_grid";
constexpr absl::string_view kMask = "selection.token_mask";
constexpr absl::string_view kPoints = "selection.points";

absl::Status CheckSide(absl::string_view message, absl::string_view field, bool is_set,
                       int64_t side) {
  const std::string path = absl::StrCat(message, ".", field);
  if (!is_set) return FieldError(path, "is required");
  if (side >= 0 && side <= kMaxGridSide) return absl::OkStatus();
  return FieldError(path, absl::StrCat("must be in [0, ", kMaxGridSide, "], got ", side));
}

// A mask without padding; its size was checked.
void FillMask(int64_t height, int64_t width, v1::TokenMask* mask) {
  mask->set_height(height);
  mask->set_width(width);
  mask->set_valid(std::string(static_cast<size_t>(height * width), '\1'));
}

absl::Status CheckValid(const v1::TokenMask& mask) {
  const std::string path = absl::StrCat(kMask, ".valid");
  const int64_t want = mask.height() * mask.width();
  if (static_cast<int64_t>(mask.valid().size()) != want) {
    return FieldError(path, absl::StrCat("must have height * width (", want, ") bytes, got ",
                                         mask.valid().size()));
  }
  const size_t bad = mask.valid().find_first_not_of(std::string("\0\1", 2));
  if (bad == std::string::npos) return absl::OkStatus();
  return FieldError(absl::StrCat(path, "[", bad, "]"),
                    absl::StrCat("must be 1 (valid) or 0 (padding), got ",
                                 static_cast<int>(static_cast<unsigned char>(mask.valid()[bad]))));
}

}  // namespace

absl::StatusOr<ResolvedGrid> ResolvePatchGrid(const v1::Selection& selection) {
  if (!selection.has_patch_grid()) return WrongSelection(selection, "a patch_grid");
  const v1::PatchGrid& from = selection.patch_grid();
  const int64_t frames = from.has_frames() ? from.frames() : 1;
  RETURN_IF_ERROR(CheckSide(kGrid, "frames", true, frames));
  RETURN_IF_ERROR(CheckSide(kGrid, "height", from.has_height(), from.height()));
  RETURN_IF_ERROR(CheckSide(kGrid, "width", from.has_width(), from.width()));
  ResolvedGrid resolved;
  v1::PatchGrid* canonical = resolved.selection.mutable_patch_grid();
  canonical->set_frames(frames);
  canonical->set_height(from.height());
  canonical->set_width(from.width());
  resolved.grid = {frames, from.height(), from.width()};
  resolved.coordinates_key = CanonicalKey(resolved.selection);
  return resolved;
}

PatchGrid PatchGridOf(const v1::Selection& selection) {
  const v1::PatchGrid& grid = selection.patch_grid();
  return {grid.frames(), grid.height(), grid.width()};
}

absl::Status CheckOneFrame(const PatchGrid& grid) {
  if (grid.frames == 1) return absl::OkStatus();
  return FieldError(absl::StrCat(kGrid, ".frames"),
                    absl::StrCat("must be 1 for an encoding of images, got ", grid.frames));
}

absl::StatusOr<ResolvedMask> ResolveMask(const v1::Selection& selection) {
  ResolvedMask resolved;
  if (selection.has_patch_grid()) {
    ASSIGN_OR_RETURN(const ResolvedGrid grid, ResolvePatchGrid(selection));
    RETURN_IF_ERROR(CheckOneFrame(grid.grid));
    if (grid.grid.tokens() > kMaxExplicitCoordinates) {
      return FieldError(kGrid, absl::StrCat("must have at most ", kMaxExplicitCoordinates,
                                            " patches here, got ", grid.grid.tokens()));
    }
    FillMask(grid.grid.height, grid.grid.width, resolved.selection.mutable_token_mask());
  } else if (selection.has_token_mask()) {
    const v1::TokenMask& mask = selection.token_mask();
    RETURN_IF_ERROR(CheckSide(kMask, "height", mask.has_height(), mask.height()));
    RETURN_IF_ERROR(CheckSide(kMask, "width", mask.has_width(), mask.width()));
    RETURN_IF_ERROR(CheckValid(mask));
    *resolved.selection.mutable_token_mask() = mask;
  } else {
    return WrongSelection(selection, "a token_mask or a patch_grid");
  }
  resolved.height = resolved.selection.token_mask().height();
  resolved.width = resolved.selection.token_mask().width();
  resolved.coordinates_key = CanonicalKey(resolved.selection);
  return resolved;
}

absl::StatusOr<ResolvedPoints> ResolvePoints(const v1::Selection& selection, int64_t min_dimensions,
                                             int64_t max_dimensions) {
  if (!selection.has_points()) return WrongSelection(selection, "points");
  const v1::Points& points = selection.points();
  const std::string path = absl::StrCat(kPoints, ".coordinates");
  if (!points.has_dimensions() || points.dimensions() < min_dimensions ||
      points.dimensions() > max_dimensions) {
    return FieldError(absl::StrCat(kPoints, ".dimensions"),
                      absl::StrCat("must be in [", min_dimensions, ", ", max_dimensions,
                                   "] for this encoding, got ", points.dimensions()));
  }
  if (points.coordinates_size() % points.dimensions() != 0) {
    return FieldError(path, absl::StrCat("must be a multiple of dimensions (", points.dimensions(),
                                         ") in number, got ", points.coordinates_size()));
  }
  for (int i = 0; i < points.coordinates_size(); ++i) {
    if (!(std::fabs(points.coordinates(i)) <= kMaxCoordinate)) {
      return FieldError(absl::StrCat(path, "[", i, "]"),
                        absl::StrCat("must be a number of at most ", kMaxCoordinate,
                                     " in magnitude, got ", points.coordinates(i)));
    }
  }
  ResolvedPoints resolved;
  *resolved.selection.mutable_points() = points;
  resolved.dimensions = points.dimensions();
  resolved.count = points.coordinates_size() / points.dimensions();
  resolved.coordinates_key = CanonicalKey(resolved.selection);
  return resolved;
}

absl::StatusOr<ResolvedAxisIds> ResolveAxisIds(const v1::Selection& selection, int64_t axes) {
  constexpr absl::string_view kAxes = "selection.axis_position_ids.axes";
  if (!selection.has_axis_position_ids()) return WrongSelection(selection, "axis_position_ids");
  const v1::AxisPositionIds& ids = selection.axis_position_ids();
  if (ids.axes_size() != axes) {
    return FieldError(kAxes, absl::StrCat("must have the ", axes, " axes of this encoding, got ",
                                          ids.axes_size()));
  }
  for (int a = 0; a < ids.axes_size(); ++a) {
    const std::string path = absl::StrCat(kAxes, "[", a, "].ids");
    const auto& axis = ids.axes(a).ids();
    if (axis.size() != ids.axes(0).ids_size()) {
      return FieldError(path, absl::StrCat("must have as many ids as axes[0] (",
                                           ids.axes(0).ids_size(), "), got ", axis.size()));
    }
    for (int i = 0; i < axis.size(); ++i) {
      if (axis[i] <= -kMaxPosition || axis[i] >= kMaxPosition) {
        return FieldError(
            absl::StrCat(path, "[", i, "]"),
            absl::StrCat("must be in (", -kMaxPosition, ", ", kMaxPosition, "), got ", axis[i]));
      }
    }
  }
  ResolvedAxisIds resolved;
  *resolved.selection.mutable_axis_position_ids() = ids;
  resolved.count = ids.axes(0).ids_size();
  resolved.coordinates_key = CanonicalKey(resolved.selection);
  return resolved;
}

}  // namespace posenc
