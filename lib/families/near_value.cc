#include "lib/families/near_value.h"

#include <cstring>

#include "lib/families/store.h"
#include "lib/numeric/dtype.h"

namespace posenc {
namespace {

template <typename Element>
bool StoreIfSafe(NearValue near, std::byte* out) {
  const auto low = RoundTo<Element>(near.value - near.error);
  std::memcpy(out, &low, sizeof(low));
  return low == RoundTo<Element>(near.value + near.error);
}

bool StoreIfSafe(NearValue near, v1::DType dtype, std::byte* out) {
  switch (dtype) {
    case v1::DTYPE_F16:
      return StoreIfSafe<F16>(near, out);
    case v1::DTYPE_BF16:
      return StoreIfSafe<Bf16>(near, out);
    default:  // F32
      return StoreIfSafe<float>(near, out);
  }
}

}  // namespace

void StoreNear(NearValue near, v1::DType dtype, absl::FunctionRef<WideFloat()> exact,
               std::byte* out) {
  const bool stored = dtype != v1::DTYPE_F64 && StoreIfSafe(near, dtype, out);
  if (!stored) StoreElement(exact(), dtype, out);
}

}  // namespace posenc
