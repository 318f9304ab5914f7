// The selection of a mask: a grid, and the lists of its tokens that the rules read.
#ifndef POSENC_LIB_FAMILIES_MASK_TOKENS_H_
#define POSENC_LIB_FAMILIES_MASK_TOKENS_H_

#include "absl/status/statusor.h"
#include "lib/families/mask_rules.h"
#include "lib/families/selection.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Checks that the lists which the rules read, and no others, have an entry a key.
// The canonical selection is a token_grid when there are any (with sequence_ids in
// the place of packed_position_ids), else an attention_grid.
absl::StatusOr<Grid> ResolveTokens(const MaskInputs& inputs, const v1::Selection& selection);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_MASK_TOKENS_H_
