#include "lib/families/rope_layout.h"

#include <algorithm>
#include <array>

#include "lib/numeric/dtype.h"
#include "lib/numeric/stream_copy.h"

namespace posenc {
namespace {

float Negated(float value) { return -value; }
double Negated(double value) { return -value; }
F16 Negated(F16 value) { return {static_cast<uint16_t>(value.bits ^ 0x8000)}; }
Bf16 Negated(Bf16 value) { return {static_cast<uint16_t>(value.bits ^ 0x8000)}; }

// Elements that stay in the first-level cache until they are spread out or copied.
constexpr int64_t kBlockElements = 4096;

// Rows of consecutive positions, of one tensor or of both that a layout has.
template <typename Element>
struct Rows {
  int64_t position;  // of the first
  int64_t count;
  std::array<Element*, 2> out;  // null: not wanted
  bool cold = false;            // Plan::FillCold
};

// How the kernel is to write them; not for ROTATION_MATRIX.
template <typename Element>
RotationRows<Element> KernelRows(v1::Layout layout, v1::Pairing pairing, int64_t half,
                                 const Rows<Element>& rows) {
  Element* out = rows.out[0];
  RotationRows<Element> kernel{.count = rows.count, .stride = 2 * half, .cold = rows.cold};
  switch (layout) {
    case v1::LAYOUT_COS_AND_SIN_HALF:
      kernel.stride = half;
      kernel.cos = out;
      kernel.sin = rows.out[1];
      break;
    case v1::LAYOUT_COS_AND_SIN_FULL:
      kernel.cos = out;
      kernel.sin = rows.out[1];
      kernel.layout = pairing == v1::PAIRING_INTERLEAVED ? RotationLayout::kTwiceAlternating
                                                         : RotationLayout::kTwice;
      break;
    case v1::LAYOUT_PAIRS:
      kernel.cos = out;
      kernel.sin = out + 1;
      kernel.layout = RotationLayout::kAlternating;
      break;
    case v1::LAYOUT_SIN_COS:
      kernel.cos = out + half;
      kernel.sin = out;
      break;
    default:  // COS_SIN
      kernel.cos = out;
      kernel.sin = out + half;
  }
  return kernel;
}

template <typename Element>
void FillMatrices(const Rotation& rotation, const Rows<Element>& rows) {
  const int64_t half = rotation.pairs();
  const int64_t block_rows = std::clamp<int64_t>(kBlockElements / (2 * half), 1, rows.count);
  std::vector<Element> block(static_cast<size_t>(block_rows * 2 * half));
  Element* matrix = rows.out[0];
  for (int64_t first = 0; first < rows.count; first += block_rows) {
    const int64_t count = std::min(block_rows, rows.count - first);
    rotation.Fill<Element>(
        rows.position + first,
        {.count = count, .stride = 2 * half, .cos = block.data(), .sin = block.data() + half});
    for (int64_t row = 0; row < count; ++row) {
      const Element* cos = block.data() + row * 2 * half;
      const Element* sin = cos + half;
      for (int64_t i = 0; i < half; ++i, matrix += 4) {
        matrix[0] = cos[i];
        matrix[1] = Negated(sin[i]);
        matrix[2] = sin[i];
        matrix[3] = cos[i];
      }
    }
  }
}

template <typename Element>
void FillRows(const Rotation& rotation, v1::Pairing pairing, v1::Layout layout,
              const Rows<Element>& rows) {
  if (layout == v1::LAYOUT_ROTATION_MATRIX) return FillMatrices(rotation, rows);
  rotation.Fill(rows.position, KernelRows(layout, pairing, rotation.pairs(), rows));
}

// By way of a block in the first-level cache, where the kernel cannot write whole
// lines of memory.
template <typename Element>
void FillByCopies(const Rotation& rotation, v1::Pairing pairing, v1::Layout layout, int64_t width,
                  const Rows<Element>& rows) {
  const int64_t block_rows = std::clamp<int64_t>(kBlockElements / width, 1, rows.count);
  std::vector<Element> block(static_cast<size_t>(2 * block_rows * width));
  Rows<Element> part{rows.position, 0, {}};
  for (size_t i = 0; i < 2; ++i) {
    if (rows.out[i] != nullptr)
      part.out[i] = block.data() + static_cast<int64_t>(i) * block_rows * width;
  }
  for (int64_t first = 0; first < rows.count; first += block_rows) {
    part.position = rows.position + first;
    part.count = std::min(block_rows, rows.count - first);
    FillRows(rotation, pairing, layout, part);
    for (size_t i = 0; i < 2; ++i) {
      if (rows.out[i] == nullptr) continue;
      const std::span<const Element> from(part.out[i], static_cast<size_t>(part.count * width));
      StreamCopy(std::as_bytes(from), reinterpret_cast<std::byte*>(rows.out[i] + first * width));
    }
  }
  FinishStreams();
}

template <typename Element>
void FillColdRows(const Rotation& rotation, v1::Pairing pairing, v1::Layout layout, int64_t width,
                  const Rows<Element>& rows) {
  const bool is_direct =
      layout != v1::LAYOUT_ROTATION_MATRIX &&
      HasWholeLines(KernelRows(layout, pairing, rotation.pairs(), rows), rotation.pairs());
  if (is_direct) return FillRows(rotation, pairing, layout, rows);
  FillByCopies(rotation, pairing, layout, width, rows);
}

// Rows of consecutive positions are filled together. `parts` are of the same rows.
template <typename Element>
void FillRuns(const Rotation& rotation, v1::Pairing pairing, const TableShape& shape,
              std::span<const TensorPart> parts, bool cold) {
  const v1::Layout layout = shape.format.layout();
  const int64_t width = shape.tensors[parts[0].tensor].unit;
  const int64_t begin = parts[0].begin / width;
  const int64_t end = begin + static_cast<int64_t>(parts[0].out.size() / sizeof(Element)) / width;
  for (int64_t row = begin; row < end;) {
    const int64_t position = PositionAt(shape.selection, row);
    int64_t run = shape.selection.has_position_range() ? end - row : 1;
    while (row + run < end && PositionAt(shape.selection, row + run) == position + run) ++run;
    Rows<Element> rows{position, run, {}, cold};
    for (const TensorPart& part : parts) {
      rows.out[part.tensor] = reinterpret_cast<Element*>(part.out.data()) + (row - begin) * width;
    }
    cold ? FillColdRows(rotation, pairing, layout, width, rows)
         : FillRows(rotation, pairing, layout, rows);
    row += run;
  }
}

void FillParts(const Rotation& rotation, v1::Pairing pairing, const TableShape& shape,
               std::span<const TensorPart> parts, bool cold) {
  switch (shape.tensors[parts[0].tensor].dtype) {
    case v1::DTYPE_F64:
      return FillRuns<double>(rotation, pairing, shape, parts, cold);
    case v1::DTYPE_F16:
      return FillRuns<F16>(rotation, pairing, shape, parts, cold);
    case v1::DTYPE_BF16:
      return FillRuns<Bf16>(rotation, pairing, shape, parts, cold);
    default:
      return FillRuns<float>(rotation, pairing, shape, parts, cold);
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
  const TensorPart part{tensor, begin, out};
  FillParts(rotation, pairing, shape, {&part, 1}, /*cold=*/false);
}

void FillColdRopeTensors(const Rotation& rotation, v1::Pairing pairing, const TableShape& shape,
                         std::span<const TensorPart> parts) {
  const bool are_same_rows = parts.size() == 2 && parts[0].tensor != parts[1].tensor &&
                             parts[0].begin == parts[1].begin &&
                             parts[0].out.size() == parts[1].out.size();
  if (are_same_rows) return FillParts(rotation, pairing, shape, parts, /*cold=*/true);
  for (const TensorPart& part : parts) {
    FillParts(rotation, pairing, shape, {&part, 1}, /*cold=*/true);
  }
}

}  // namespace posenc
