// The options of an axial RoPE, completed from their preset and checked.
#ifndef POSENC_LIB_FAMILIES_AXIAL_SPEC_H_
#define POSENC_LIB_FAMILIES_AXIAL_SPEC_H_

#include "absl/status/status.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// Refusals name the field: `axial_rope.axes[1].dim: must be even, got 21`.
absl::Status CanonicalizeAxialRope(v1::AxialRopeSpec* spec);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_AXIAL_SPEC_H_
