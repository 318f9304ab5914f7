#include "lib/families/selection.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "lib/base/canonical_key.h"
#include "lib/base/status.h"

namespace posenc {
namespace {

constexpr absl::string_view kRange = "selection.position_range";
constexpr absl::string_view kIds = "selection.position_ids.ids";
constexpr absl::string_view kGrid = "selection.attention_grid";

// "LAYOUT_COS_SIN" is cos_sin on the command line and in sentences.
std::string LayoutName(v1::Layout layout) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::Layout_Name(layout), "LAYOUT_"));
}

std::string DTypeName(v1::DType dtype) {
  return absl::AsciiStrToLower(absl::StripPrefix(v1::DType_Name(dtype), "DTYPE_"));
}

absl::Status CheckBounds(absl::string_view field, int64_t position, int64_t min, int64_t max) {
  if (position >= min && position <= max) return absl::OkStatus();
  return FieldError(field, absl::StrCat("must be in [", min, ", ", max, "], got ", position));
}

absl::StatusOr<Positions> ResolveRange(const v1::PositionRange& range, int64_t min_position) {
  if (!range.has_end()) return FieldError(absl::StrCat(kRange, ".end"), "is required");
  const int64_t begin = range.begin();
  const int64_t end = range.end();
  RETURN_IF_ERROR(CheckBounds(absl::StrCat(kRange, ".begin"), begin, min_position, kMaxPosition));
  if (end < begin) {
    return FieldError(absl::StrCat(kRange, ".end"),
                      absl::StrCat("must be at least begin (", begin, "), got ", end));
  }
  RETURN_IF_ERROR(CheckBounds(absl::StrCat(kRange, ".end"), end, min_position, kMaxPosition));
  Positions positions;
  positions.selection.mutable_position_range()->set_begin(begin);
  positions.selection.mutable_position_range()->set_end(end);
  positions.origin = begin;
  positions.count = end - begin;
  return positions;
}

absl::StatusOr<Positions> ResolveIds(const v1::Selection& selection, int64_t min_position) {
  const auto& ids = selection.position_ids().ids();
  for (int i = 0; i < ids.size(); ++i) {
    if (ids[i] < min_position || ids[i] >= kMaxPosition) {
      return CheckBounds(absl::StrCat(kIds, "[", i, "]"), ids[i], min_position, kMaxPosition - 1);
    }
  }
  Positions positions;
  *positions.selection.mutable_position_ids() = selection.position_ids();
  positions.count = ids.size();
  positions.coordinates_key = CanonicalKey(positions.selection);
  return positions;
}

}  // namespace

int64_t ExplicitCoordinates(const v1::Selection& selection) {
  const v1::TokenGrid& tokens = selection.token_grid();
  int64_t count =
      int64_t{selection.position_ids().ids_size()} + selection.points().coordinates_size() +
      static_cast<int64_t>(selection.token_mask().valid().size()) + tokens.padding_mask_size() +
      tokens.sequence_ids_size() + tokens.packed_position_ids_size() + tokens.block_ids_size() +
      selection.sequences().values_size();
  for (const auto& axis : selection.axis_position_ids().axes()) count += axis.ids_size();
  return count;
}

absl::Status WrongSelection(const v1::Selection& selection, absl::string_view wanted) {
  const auto* chosen = v1::Selection::descriptor()->FindFieldByNumber(selection.coordinates_case());
  if (chosen == nullptr) {
    return FieldError("selection", absl::StrCat("is required: ", wanted));
  }
  return FieldError("selection",
                    absl::StrCat("needs ", wanted, " for this encoding, got ", chosen->name()));
}

absl::StatusOr<Positions> ResolvePositions(const v1::Selection& selection, int64_t min_position) {
  if (selection.has_position_range()) {
    return ResolveRange(selection.position_range(), min_position);
  }
  if (selection.has_position_ids()) return ResolveIds(selection, min_position);
  return WrongSelection(selection, "a position_range or position_ids");
}

absl::StatusOr<Grid> ResolveGrid(const v1::Selection& selection) {
  if (!selection.has_attention_grid()) {
    return WrongSelection(selection, "an attention_grid");
  }
  const v1::AttentionGrid& from = selection.attention_grid();
  if (!from.has_query_length()) {
    return FieldError(absl::StrCat(kGrid, ".query_length"), "is required");
  }
  if (!from.has_key_length()) {
    return FieldError(absl::StrCat(kGrid, ".key_length"), "is required");
  }
  RETURN_IF_ERROR(
      CheckBounds(absl::StrCat(kGrid, ".query_length"), from.query_length(), 0, kMaxGridLength));
  RETURN_IF_ERROR(
      CheckBounds(absl::StrCat(kGrid, ".key_length"), from.key_length(), 0, kMaxGridLength));
  RETURN_IF_ERROR(
      CheckBounds(absl::StrCat(kGrid, ".query_offset"), from.query_offset(), 0, kMaxPosition - 1));
  Grid grid;
  v1::AttentionGrid* canonical = grid.selection.mutable_attention_grid();
  canonical->set_query_length(from.query_length());
  canonical->set_key_length(from.key_length());
  canonical->set_query_offset(from.query_offset());
  grid.query_length = from.query_length();
  grid.key_length = from.key_length();
  grid.query_offset = from.query_offset();
  grid.coordinates_key = CanonicalKey(grid.selection);
  return grid;
}

absl::Status ResolveNoSelection(const v1::Selection& selection) {
  if (selection.coordinates_case() == v1::Selection::COORDINATES_NOT_SET) return absl::OkStatus();
  return FieldError("selection", "must be unset: this encoding has no coordinates but its own");
}

absl::Status ResolveFormat(const Family& family, v1::TensorFormat* format) {
  const std::vector<v1::Layout> layouts = family.layouts();
  const std::vector<v1::DType> dtypes = family.dtypes();
  if (format->layout() == v1::LAYOUT_UNSPECIFIED) format->set_layout(layouts.front());
  if (format->dtype() == v1::DTYPE_UNSPECIFIED) format->set_dtype(dtypes.front());
  if (std::find(layouts.begin(), layouts.end(), format->layout()) == layouts.end()) {
    const std::string got = v1::Layout_IsValid(format->layout())
                                ? LayoutName(format->layout())
                                : absl::StrCat(static_cast<int>(format->layout()));
    return FieldError("format.layout",
                      absl::StrCat(family.name(), " has ",
                                   absl::StrJoin(layouts, ", ",
                                                 [](std::string* out, v1::Layout layout) {
                                                   out->append(LayoutName(layout));
                                                 }),
                                   ", got ", got));
  }
  if (std::find(dtypes.begin(), dtypes.end(), format->dtype()) == dtypes.end()) {
    const std::string got = v1::DType_IsValid(format->dtype())
                                ? DTypeName(format->dtype())
                                : absl::StrCat(static_cast<int>(format->dtype()));
    return FieldError("format.dtype",
                      absl::StrCat(family.name(), " has ",
                                   absl::StrJoin(dtypes, ", ",
                                                 [](std::string* out, v1::DType dtype) {
                                                   out->append(DTypeName(dtype));
                                                 }),
                                   ", got ", got));
  }
  return absl::OkStatus();
}

}  // namespace posenc
