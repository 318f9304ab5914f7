#include "lib/families/mask_tokens.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/canonical_key.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"

namespace posenc {
namespace {

constexpr absl::string_view kTokens = "selection.token_grid";

// A list that the rules read must have an entry a key; one that they do not is a
// mistake of the caller's.
absl::Status CheckList(absl::string_view name, bool is_read, int64_t size, int64_t key_length) {
  const std::string field = absl::StrCat(kTokens, ".", name);
  if (!is_read && size > 0) return FieldError(field, "nothing here reads it");
  if (is_read && size != key_length) {
    return FieldError(field,
                      absl::StrCat("must have key_length (", key_length, ") entries, got ", size));
  }
  return absl::OkStatus();
}

// A new sequence wherever positions do not go up by one.
absl::Status ResolvePackedPositions(v1::TokenGrid* tokens) {
  if (tokens->packed_position_ids_size() == 0) return absl::OkStatus();
  if (tokens->sequence_ids_size() > 0) {
    return FieldError(absl::StrCat(kTokens, ".sequence_ids"),
                      "packed_position_ids is given too; one is enough");
  }
  int64_t sequence = 0;
  int64_t previous = 0;
  for (int i = 0; i < tokens->packed_position_ids_size(); ++i) {
    const int64_t position = tokens->packed_position_ids(i);
    RETURN_IF_ERROR(CheckInRange(absl::StrCat(kTokens, ".packed_position_ids[", i, "]"), position,
                                 0, kMaxPosition - 1));
    if (i > 0 && position != previous + 1) ++sequence;
    tokens->add_sequence_ids(sequence);
    previous = position;
  }
  tokens->clear_packed_position_ids();
  return absl::OkStatus();
}

absl::Status CheckLists(const MaskInputs& inputs, const Grid& grid, const v1::TokenGrid& tokens) {
  RETURN_IF_ERROR(
      CheckList("padding_mask", inputs.padding_mask, tokens.padding_mask_size(), grid.key_length));
  RETURN_IF_ERROR(
      CheckList("sequence_ids", inputs.sequence_ids, tokens.sequence_ids_size(), grid.key_length));
  RETURN_IF_ERROR(
      CheckList("block_ids", inputs.block_ids, tokens.block_ids_size(), grid.key_length));
  for (int i = 0; i < tokens.padding_mask_size(); ++i) {
    RETURN_IF_ERROR(CheckInRange(absl::StrCat(kTokens, ".padding_mask[", i, "]"),
                                 int64_t{tokens.padding_mask(i)}, 0, 1));
  }
  if (inputs.queries_are_tokens && grid.query_offset + grid.query_length > grid.key_length) {
    return FieldError(
        absl::StrCat(kTokens, ".attention_grid"),
        absl::StrCat("the last query must be one of the key_length (", grid.key_length,
                     ") tokens, got position ", grid.query_offset + grid.query_length - 1));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Grid> ResolveTokens(const MaskInputs& inputs, const v1::Selection& selection) {
  if (!selection.has_token_grid()) {
    ASSIGN_OR_RETURN(Grid grid, ResolveGrid(selection));
    if (!inputs.any()) return grid;
    return FieldError("selection", "needs a token_grid with the lists that the mask's rules read");
  }
  v1::TokenGrid tokens = selection.token_grid();
  v1::Selection grid_alone;
  *grid_alone.mutable_attention_grid() = tokens.attention_grid();
  ASSIGN_OR_RETURN(Grid grid, ResolveGrid(grid_alone));
  RETURN_IF_ERROR(ResolvePackedPositions(&tokens));
  RETURN_IF_ERROR(CheckLists(inputs, grid, tokens));
  if (!inputs.any()) return grid;
  *tokens.mutable_attention_grid() = grid.selection.attention_grid();
  *grid.selection.mutable_token_grid() = std::move(tokens);
  grid.coordinates_key = CanonicalKey(grid.selection);
  return grid;
}

}  // namespace posenc
