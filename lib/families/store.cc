#include "lib/families/store.h"

#include <cstring>

#include "lib/numeric/dtype.h"

namespace posenc {
namespace {

template <typename Element, typename Number>
void StoreAs(std::span<const Number> values, std::byte* out) {
  auto* elements = reinterpret_cast<Element*>(out);
  for (size_t i = 0; i < values.size(); ++i) elements[i] = RoundTo<Element>(values[i]);
}

template <typename T>
void Put(T value, std::byte* out) {
  std::memcpy(out, &value, sizeof(value));
}

}  // namespace

std::vector<v1::DType> FloatDTypes() {
  return {v1::DTYPE_F32, v1::DTYPE_F64, v1::DTYPE_F16, v1::DTYPE_BF16};
}

int64_t ElementBytes(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_F64:
      return 8;
    case v1::DTYPE_F16:
    case v1::DTYPE_BF16:
      return 2;
    case v1::DTYPE_BOOL:
      return 1;
    default:
      return 4;
  }
}

void StoreFloats(std::span<const float> values, v1::DType dtype, std::span<std::byte> out) {
  switch (dtype) {
    case v1::DTYPE_F64:
      return StoreAs<double>(values, out.data());
    case v1::DTYPE_F16:
      return StoreAs<F16>(values, out.data());
    case v1::DTYPE_BF16:
      return StoreAs<Bf16>(values, out.data());
    default:  // F32
      std::memcpy(out.data(), values.data(), values.size_bytes());
  }
}

void StoreDoubles(std::span<const double> values, v1::DType dtype, std::span<std::byte> out) {
  switch (dtype) {
    case v1::DTYPE_F64:
      return StoreAs<double>(values, out.data());
    case v1::DTYPE_F16:
      return StoreAs<F16>(values, out.data());
    case v1::DTYPE_BF16:
      return StoreAs<Bf16>(values, out.data());
    default:  // F32
      return StoreAs<float>(values, out.data());
  }
}

void StoreElement(float value, v1::DType dtype, std::byte* out) {
  StoreFloats({&value, 1}, dtype, {out, static_cast<size_t>(ElementBytes(dtype))});
}

void StoreElement(const WideFloat& value, v1::DType dtype, std::byte* out) {
  switch (dtype) {
    case v1::DTYPE_F64:
      return Put(value.ToDouble(), out);
    case v1::DTYPE_F16:
      return Put(value.ToF16(), out);
    case v1::DTYPE_BF16:
      return Put(value.ToBf16(), out);
    default:  // F32
      return Put(value.ToFloat(), out);
  }
}

}  // namespace posenc
