#include "lib/families/rope_layout.h"

#include <algorithm>

#include "lib/numeric/dtype.h"

namespace posenc {
namespace {

float Negated(float value) { return -value; }
double Negated(double value) { return -value; }
F16 Negated(F16 value) { return {static_cast<uint16_t>(value.bits ^ 0x8000)}; }
Bf16 Negated(Bf16 value) { return {static_cast<uint16_t>(value.bits ^ 0x8000)}; }

constexpr int64_t kBlockElements = 4096;

// Consecutive rows of one tensor, in memory.
template <typename Element>
struct Rows {
  int64_t position;  // of the first
  int64_t count;
  int64_t half;  // rotary_dim / 2
  Element* out;
};

template <typename Element>
void FillBoth(const Rotation& rotation, const Rows<Element>& rows, Element* cos, Element* sin) {
  rotation.Fill(
      rows.position,
      RotationRows<Element>{.count = rows.count, .stride = 2 * rows.half, .cos = cos, .sin = sin});
}

// The cosines (tensor 0) or the sines (tensor 1) at the start of each row.
template <typename Element>
void FillOne(const Rotation& rotation, const Rows<Element>& rows, size_t tensor, int64_t stride) {
  rotation.Fill(rows.position, RotationRows<Element>{.count = rows.count,
                                                     .stride = stride,
                                                     .cos = tensor == 0 ? rows.out : nullptr,
                                                     .sin = tensor == 1 ? rows.out : nullptr});
}

// [v0 v1 …] at the start of each row becomes [v0 v1 … v0 v1 …] or [v0 v0 v1 v1 …].
template <typename Element>
void DoubleValues(v1::Pairing pairing, const Rows<Element>& rows) {
  for (int64_t row = 0; row < rows.count; ++row) {
    Element* values = rows.out + row * 2 * rows.half;
    if (pairing == v1::PAIRING_INTERLEAVED) {
      for (int64_t i = rows.half; i-- > 0;) values[2 * i] = values[2 * i + 1] = values[i];
    } else {
      std::copy_n(values, rows.half, values + rows.half);
    }
  }
}

// `size` elements a pair, one pair after the other. The rotation is fastest over
// many rows; a block of them stays in the first-level cache until it is spread out.
template <typename Element, typename Store>
void FillPairwise(const Rotation& rotation, const Rows<Element>& rows, int64_t size,
                  const Store& store) {
  const int64_t block_rows = std::clamp<int64_t>(kBlockElements / (2 * rows.half), 1, rows.count);
  std::vector<Element> block(static_cast<size_t>(block_rows * 2 * rows.half));
  for (int64_t first = 0; first < rows.count; first += block_rows) {
    const int64_t count = std::min(block_rows, rows.count - first);
    FillBoth(rotation, Rows<Element>{rows.position + first, count, rows.half, block.data()},
             block.data(), block.data() + rows.half);
    for (int64_t row = 0; row < count; ++row) {
      const Element* cos = block.data() + row * 2 * rows.half;
      const Element* sin = cos + rows.half;
      Element* pairs = rows.out + (first + row) * size * rows.half;
      for (int64_t i = 0; i < rows.half; ++i) store(cos[i], sin[i], pairs + size * i);
    }
  }
}

template <typename Element>
void FillRows(const Rotation& rotation, v1::Pairing pairing, v1::Layout layout, size_t tensor,
              const Rows<Element>& rows) {
  switch (layout) {
    case v1::LAYOUT_COS_AND_SIN_HALF:
      return FillOne(rotation, rows, tensor, rows.half);
    case v1::LAYOUT_COS_AND_SIN_FULL:
      FillOne(rotation, rows, tensor, 2 * rows.half);
      return DoubleValues(pairing, rows);
    case v1::LAYOUT_PAIRS:
      return FillPairwise(rotation, rows, 2, [](Element cos, Element sin, Element* pair) {
        pair[0] = cos;
        pair[1] = sin;
      });
    case v1::LAYOUT_ROTATION_MATRIX:
      return FillPairwise(rotation, rows, 4, [](Element cos, Element sin, Element* matrix) {
        matrix[0] = cos;
        matrix[1] = Negated(sin);
        matrix[2] = sin;
        matrix[3] = cos;
      });
    case v1::LAYOUT_SIN_COS:
      return FillBoth(rotation, rows, rows.out + rows.half, rows.out);
    default:
      return FillBoth(rotation, rows, rows.out, rows.out + rows.half);
  }
}

// Rows of consecutive positions are filled together.
template <typename Element>
void FillRuns(const Rotation& rotation, v1::Pairing pairing, const TableShape& shape, size_t tensor,
              int64_t begin, std::span<std::byte> out) {
  auto* elements = reinterpret_cast<Element*>(out.data());
  const int64_t width = shape.tensors[tensor].unit;
  const int64_t end = begin / width + static_cast<int64_t>(out.size() / sizeof(Element)) / width;
  for (int64_t row = begin / width; row < end;) {
    const int64_t position = PositionAt(shape.selection, row);
    int64_t run = shape.selection.has_position_range() ? end - row : 1;
    while (row + run < end && PositionAt(shape.selection, row + run) == position + run) ++run;
    FillRows(rotation, pairing, shape.format.layout(), tensor,
             Rows<Element>{position, run, rotation.pairs(), elements});
    elements += run * width;
    row += run;
  }
}

}  // namespace

std::vector<v1::Layout> RopeRowLayouts() {
  return {v1::LAYOUT_COS_SIN, v1::LAYOUT_COS_AND_SIN_HALF, v1::LAYOUT_COS_AND_SIN_FULL,
          v1::LAYOUT_PAIRS,   v1::LAYOUT_SIN_COS,          v1::LAYOUT_ROTATION_MATRIX};
}

std::vector<Tensor> RopeTensors(v1::Layout layout, v1::DType dtype, int64_t rotary_dim,
                                const Positions& positions) {
  const auto rows = [&](const char* name, int64_t width) {
    return Tensor{.name = name,
                  .dtype = dtype,
                  .shape = {positions.count, width},
                  .unit = width,
                  .origin = positions.origin * width};
  };
  const int64_t half = rotary_dim / 2;
  switch (layout) {
    case v1::LAYOUT_COS_AND_SIN_HALF:
      return {rows("cos_cache", half), rows("sin_cache", half)};
    case v1::LAYOUT_COS_AND_SIN_FULL:
      return {rows("cos", rotary_dim), rows("sin", rotary_dim)};
    case v1::LAYOUT_PAIRS: {
      Tensor pairs = rows("freqs_cis", rotary_dim);
      pairs.shape = {positions.count, half, 2};
      return {pairs};
    }
    case v1::LAYOUT_ROTATION_MATRIX: {
      Tensor matrices = rows("rotation_matrix", 2 * rotary_dim);
      matrices.shape = {positions.count, half, 2, 2};
      return {matrices};
    }
    case v1::LAYOUT_SIN_COS:
      return {rows("sin_cos_cache", rotary_dim)};
    default:
      return {rows("cos_sin_cache", rotary_dim)};
  }
}

void FillRopeTensor(const Rotation& rotation, v1::Pairing pairing, const TableShape& shape,
                    size_t tensor, int64_t begin, std::span<std::byte> out) {
  switch (shape.tensors[tensor].dtype) {
    case v1::DTYPE_F64:
      return FillRuns<double>(rotation, pairing, shape, tensor, begin, out);
    case v1::DTYPE_F16:
      return FillRuns<F16>(rotation, pairing, shape, tensor, begin, out);
    case v1::DTYPE_BF16:
      return FillRuns<Bf16>(rotation, pairing, shape, tensor, begin, out);
    default:
      return FillRuns<float>(rotation, pairing, shape, tensor, begin, out);
  }
}

}  // namespace posenc
