// Specs of real and of small RoPEs, in text form, that several tests use.
#ifndef POSENC_TESTS_UNIT_ROPE_SPECS_H_
#define POSENC_TESTS_UNIT_ROPE_SPECS_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/families/family.h"
#include "tests/support/tables.h"

namespace posenc::testing {

// The canonical form. Fails the test when the spec is refused.
inline v1::RopeSpec CanonicalRope(const std::string& rope) {
  const absl::StatusOr<CanonicalSpec> spec = Canonicalize(Spec(absl::StrCat("rope {", rope, "}")));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? spec->proto().rope() : v1::RopeSpec();
}

inline constexpr char kLlama31[] =
    "head_dim: 128 rope_theta: 500000 llama3 { factor: 8 low_freq_factor: 1 high_freq_factor: 4 "
    "original_max_position_embeddings: 8192 }";
inline constexpr char kDeepSeekV3[] =
    "head_dim: 64 yarn { factor: 40 original_max_position_embeddings: 4096 mscale: 1 "
    "mscale_all_dim: 1 }";
inline constexpr char kGptOss[] =
    "head_dim: 64 rope_theta: 150000 yarn { factor: 32 original_max_position_embeddings: 4096 "
    "truncate: false }";
inline constexpr char kQwenYarn[] =
    "head_dim: 128 rope_theta: 1e6 yarn { factor: 4 original_max_position_embeddings: 32768 }";

inline constexpr char kDynamic[] =
    "head_dim: 128 rope_theta: 1e6 dynamic { factor: 2 max_position_embeddings: 32768 "
    "sequence_length: 65536 }";
inline constexpr char kGemma4[] =
    "head_dim: 512 rope_theta: 1e6 proportional { partial_rotary_factor: 0.25 }";
// A short list of ones, a long one of 1, 2, 3.
inline constexpr char kLongRope[] =
    "head_dim: 6 longrope { short_factor: [1, 1, 1] long_factor: [1, 2, 3] factor: 32 "
    "original_max_position_embeddings: 4096 sequence_length: 131072 }";

}  // namespace posenc::testing

#endif  // POSENC_TESTS_UNIT_ROPE_SPECS_H_
