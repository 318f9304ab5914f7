#include "lib/families/store.h"

#include <cstring>

#include "lib/numeric/dtype.h"

namespace posenc {
namespace {

template <typename T, typename Round>
void StoreAs(std::span<const float> values, std::byte* out, const Round& round) {
  T* elements = reinterpret_cast<T*>(out);
  for (size_t i = 0; i < values.size(); ++i) elements[i] = round(values[i]);
}

}  // namespace

int64_t ElementBytes(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_F64:
      return 8;
    case v1::DTYPE_F16:
    case v1::DTYPE_BF16:
      return 2;
    default:
      return 4;
  }
}

void StoreFloats(std::span<const float> values, v1::DType dtype, std::span<std::byte> out) {
  switch (dtype) {
    case v1::DTYPE_F64:
      return StoreAs<double>(values, out.data(), [](float v) { return static_cast<double>(v); });
    case v1::DTYPE_F16:
      return StoreAs<uint16_t>(values, out.data(), [](float v) { return RoundToF16(v); });
    case v1::DTYPE_BF16:
      return StoreAs<uint16_t>(values, out.data(), [](float v) { return RoundToBf16(v); });
    default:  // F32
      std::memcpy(out.data(), values.data(), values.size_bytes());
  }
}

}  // namespace posenc
