// From the float32 that a family computes in to the dtype of a tensor.
#ifndef POSENC_LIB_FAMILIES_STORE_H_
#define POSENC_LIB_FAMILIES_STORE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/numeric/dtype.h"
#include "lib/numeric/wide_float.h"
#include "posenc/v1/arithmetic.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// F32, F64, F16, BF16: the dtypes of a table of reals, the default first.
std::vector<v1::DType> FloatDTypes();

// Of one element. REQUIRES: a known dtype.
int64_t ElementBytes(v1::DType dtype);

// Rounds each value once (f64 widens) into `out`, little-endian.
// REQUIRES: a float dtype; out.size() is values.size() elements.
void StoreFloats(std::span<const float> values, v1::DType dtype, std::span<std::byte> out);

// The same from doubles.
void StoreDoubles(std::span<const double> values, v1::DType dtype, std::span<std::byte> out);

// One element: a float32 value as above, a real rounded once.
void StoreElement(float value, v1::DType dtype, std::byte* out);
void StoreElement(const WideFloat& value, v1::DType dtype, std::byte* out);

// Rounds a float32 to the dtype that a spec computes in.
inline float RoundToComputeDType(v1::ComputeDType dtype, float value) {
  if (dtype == v1::COMPUTE_DTYPE_BF16) return Bf16ToFloat(RoundToBf16(value));
  if (dtype == v1::COMPUTE_DTYPE_F16) return F16ToFloat(RoundToF16(value));
  return value;
}

// Fills `out` a block at a time: make(index, block) writes the float32 values of
// elements index, index + 1, ... A block stays in the first-level cache; that of an
// f32 tensor is the tensor itself.
template <typename MakeBlock>
void StoreBlocks(v1::DType dtype, std::span<std::byte> out, const MakeBlock& make) {
  constexpr size_t kBlock = 1024;
  const auto element_bytes = static_cast<size_t>(ElementBytes(dtype));
  const size_t count = out.size() / element_bytes;
  std::array<float, kBlock> buffer;
  for (size_t index = 0; index < count; index += kBlock) {
    const size_t size = std::min(kBlock, count - index);
    const std::span<std::byte> part = out.subspan(index * element_bytes, size * element_bytes);
    const std::span<float> block(
        dtype == v1::DTYPE_F32 ? reinterpret_cast<float*>(part.data()) : buffer.data(), size);
    make(static_cast<int64_t>(index), block);
    if (dtype != v1::DTYPE_F32) StoreFloats(block, dtype, part);
  }
}

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_STORE_H_
