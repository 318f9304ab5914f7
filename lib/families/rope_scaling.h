// What extends a RoPE beyond its training context: the parameters of each
// rope_type, completed and checked. The frequencies they give: rope_frequencies.h.
#ifndef POSENC_LIB_FAMILIES_ROPE_SCALING_H_
#define POSENC_LIB_FAMILIES_ROPE_SCALING_H_

#include "absl/status/status.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// Fills in and checks the oneof `scaling`. Frequencies of a spec that passes are
// finite and at most kMaxInvFreq.
// REQUIRES: rotary_dim and rope_theta are canonical.
absl::Status CanonicalizeRopeScaling(v1::RopeSpec* rope);

// Multiplies cos and sin. REQUIRES: `rope` is canonical.
double RopeAttentionFactor(const v1::RopeSpec& rope);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_ROPE_SCALING_H_
