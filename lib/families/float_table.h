// The tables of numbers that come with a spec: checked once, read as floats.
#ifndef POSENC_LIB_FAMILIES_FLOAT_TABLE_H_
#define POSENC_LIB_FAMILIES_FLOAT_TABLE_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "posenc/v1/float_table.pb.h"

namespace posenc {

// Stands for any length from 1 on in an expected shape.
inline constexpr int64_t kAnyLength = -1;

// Turns `values` into `f32` and checks that there are as many as `shape` says, and
// that the shape is `expected`, and the numbers are those of `content_hash` where there is
// one, which is cleared. Allocates no more than the message holds.
// Errors: "<field>.shape: must be [15, any], got [14, 2]",
//         "<field>: shape [15, 2] needs 120 bytes of f32, got 116".
absl::Status CanonicalizeFloatTable(absl::string_view field,
                                    std::initializer_list<int64_t> expected, v1::FloatTable* table);

// Row-major. REQUIRES: table is canonical.
std::vector<float> FloatsOf(const v1::FloatTable& table);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_FLOAT_TABLE_H_
