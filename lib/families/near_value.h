// Values known to within an error, rounded once: Ziv's method for single elements.
#ifndef POSENC_LIB_FAMILIES_NEAR_VALUE_H_
#define POSENC_LIB_FAMILIES_NEAR_VALUE_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "lib/numeric/wide_float.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// A real number in [value - error, value + error].
struct NearValue {
  double value = 0;
  double error = 0;
};

// Writes the real number rounded once to the dtype, little-endian: from `near` where
// its error leaves no doubt, else from `exact()`, which is slow and seldom called.
// An F64 always is, since the error leaves it in doubt. REQUIRES: a float dtype.
void StoreNear(NearValue near, v1::DType dtype, absl::FunctionRef<WideFloat()> exact,
               std::byte* out);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_NEAR_VALUE_H_
