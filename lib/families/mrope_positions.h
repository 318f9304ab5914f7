// Positions of a prompt of text, images and videos, an axis each for t, h, w.
//
//   text of n tokens   p, p + 1, … on all axes; then p += n
//   grid (T, H, W)     of patches merged to squares of side m, tokens t-major:
//                      t = p + ⌊frame · interval⌋, h = p + row, w = p + column over
//                      (T, H/m, W/m); then p += max(H, W)/m, or p = largest + 1
// Wang et al., arXiv:2409.12191 (Qwen2-VL); reference: hf-rope 3.3, serving-stacks 6.1.
#ifndef POSENC_LIB_FAMILIES_MROPE_POSITIONS_H_
#define POSENC_LIB_FAMILIES_MROPE_POSITIONS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Axes of the positions that runs give: t, h, w.
inline constexpr int64_t kMropeAxes = 3;

// The position of every token. Refuses (FieldError on selection.token_runs)
// grids that do not merge, positions outside the bounds of family.h, and more
// than kMaxExplicitCoordinates positions.
absl::StatusOr<v1::AxisPositionIds> PositionsOfRuns(const v1::TokenRuns& runs);

// What is added to a token's index to get its position after the prompt: the
// largest position + 1 - the number of tokens. 0 for no tokens.
int64_t RopeDelta(const v1::AxisPositionIds& ids);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_MROPE_POSITIONS_H_
