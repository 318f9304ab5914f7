// What the tests of RoPE over grids share.
#ifndef POSENC_TESTS_UNIT_AXIAL_ROPE_TESTING_H_
#define POSENC_TESTS_UNIT_AXIAL_ROPE_TESTING_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/tables.h"

namespace posenc::testing {

// A spec of AXIAL_ROPE_PRESET_<preset>.
inline std::string Axial(const std::string& preset, int64_t head_dim,
                         const std::string& options = "") {
  return absl::StrCat("axial_rope { preset: AXIAL_ROPE_PRESET_", preset, " head_dim: ", head_dim,
                      " ", options, " }");
}

inline v1::Selection SelectPatches(int64_t frames, int64_t height, int64_t width) {
  return Select(
      absl::StrCat("patch_grid { frames: ", frames, " height: ", height, " width: ", width, " }"));
}

}  // namespace posenc::testing

#endif  // POSENC_TESTS_UNIT_AXIAL_ROPE_TESTING_H_
