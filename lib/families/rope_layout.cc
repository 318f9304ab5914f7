#include "lib/families/rope_layout.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/memory/stream_copy.h"
#include "lib/numeric/dtype.h"

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

// Whether the rotation writes such rows itself.
bool IsOfKernel(const RopeRows& source, v1::Layout layout) {
  return source.writes_layouts() && layout != v1::LAYOUT_PAIRS_FULL &&
         layout != v1::LAYOUT_ROTATION_MATRIX;
}

// Whether the two of a value are neighbours, where it stands twice.
bool Alternates(v1::Layout layout, v1::Pairing pairing) {
  return layout == v1::LAYOUT_COS_AND_SIN_FULL && pairing == v1::PAIRING_INTERLEAVED;
}

// How it is to. REQUIRES: IsOfKernel.
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
    case v1::LAYOUT_COS_AND_SIN_REPEATED:
      kernel.cos = out;
      kernel.sin = rows.out[1];
      kernel.layout =
          Alternates(layout, pairing) ? RotationLayout::kTwiceAlternating : RotationLayout::kTwice;
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

// values [half] as [v0 v1 … v0 v1 …] or [v0 v0 v1 v1 …].
template <typename Element>
void SpreadTwice(bool alternates, const Element* values, int64_t half, Element* out) {
  for (int64_t i = 0; i < half; ++i) {
    out[alternates ? 2 * i : i] = values[i];
    out[alternates ? 2 * i + 1 : half + i] = values[i];
  }
}

template <typename Element>
void SpreadPairs(const Element* cos, const Element* sin, int64_t half, Element* out) {
  for (int64_t i = 0; i < half; ++i) {
    out[2 * i] = cos[i];
    out[2 * i + 1] = sin[i];
  }
}

template <typename Element>
void SpreadMatrices(const Element* cos, const Element* sin, int64_t half, Element* out) {
  for (int64_t i = 0; i < half; ++i, out += 4) {
    out[0] = cos[i];
    out[1] = Negated(sin[i]);
    out[2] = sin[i];
    out[3] = cos[i];
  }
}

// A row of any layout, from its cosines and sines [half].
template <typename Element>
void SpreadRow(v1::Layout layout, v1::Pairing pairing, int64_t half, const Element* cos,
               const Element* sin, const std::array<Element*, 2>& out) {
  switch (layout) {
    case v1::LAYOUT_COS_AND_SIN_HALF:
      if (out[0] != nullptr) std::copy_n(cos, half, out[0]);
      if (out[1] != nullptr) std::copy_n(sin, half, out[1]);
      return;
    case v1::LAYOUT_COS_AND_SIN_FULL:
    case v1::LAYOUT_COS_AND_SIN_REPEATED:
      if (out[0] != nullptr) SpreadTwice(Alternates(layout, pairing), cos, half, out[0]);
      if (out[1] != nullptr) SpreadTwice(Alternates(layout, pairing), sin, half, out[1]);
      return;
    case v1::LAYOUT_PAIRS:
      return SpreadPairs(cos, sin, half, out[0]);
    case v1::LAYOUT_PAIRS_FULL:
      SpreadPairs(cos, sin, half, out[0]);
      std::copy_n(out[0], 2 * half, out[0] + 2 * half);
      return;
    case v1::LAYOUT_ROTATION_MATRIX:
      return SpreadMatrices(cos, sin, half, out[0]);
    case v1::LAYOUT_SIN_COS:
      std::swap(cos, sin);
      [[fallthrough]];
    default:  // COS_SIN
      std::copy_n(cos, half, out[0]);
      std::copy_n(sin, half, out[0] + half);
  }
}

// The rotation is fastest over many rows; a block of them stays in the first-level
// cache until it is spread out.
template <typename Element>
void FillSpread(const RopeRows& source, v1::Pairing pairing, v1::Layout layout, int64_t width,
                const Rows<Element>& rows) {
  const int64_t half = source.pairs();
  const int64_t block_rows = std::clamp<int64_t>(kBlockElements / (2 * half), 1, rows.count);
  std::vector<Element> block(static_cast<size_t>(block_rows * 2 * half));
  std::array<Element*, 2> out = rows.out;
  for (int64_t first = 0; first < rows.count; first += block_rows) {
    const int64_t count = std::min(block_rows, rows.count - first);
    source.Fill<Element>(
        rows.position + first,
        {.count = count, .stride = 2 * half, .cos = block.data(), .sin = block.data() + half});
    for (int64_t row = 0; row < count; ++row) {
      const Element* cos = block.data() + row * 2 * half;
      SpreadRow(layout, pairing, half, cos, cos + half, out);
      for (Element*& place : out) place += place == nullptr ? 0 : width;
    }
  }
}

template <typename Element>
void FillRows(const RopeRows& source, v1::Pairing pairing, v1::Layout layout, int64_t width,
              const Rows<Element>& rows) {
  if (!IsOfKernel(source, layout)) return FillSpread(source, pairing, layout, width, rows);
  source.Fill(rows.position, KernelRows(layout, pairing, source.pairs(), rows));
}

// By way of a block in the first-level cache, where the kernel cannot write whole
// lines of memory.
template <typename Element>
void FillByCopies(const RopeRows& source, v1::Pairing pairing, v1::Layout layout, int64_t width,
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
    FillRows(source, pairing, layout, width, part);
    for (size_t i = 0; i < 2; ++i) {
      if (rows.out[i] == nullptr) continue;
      const std::span<const Element> from(part.out[i], static_cast<size_t>(part.count * width));
      StreamCopy(std::as_bytes(from), reinterpret_cast<std::byte*>(rows.out[i] + first * width));
    }
  }
  FinishStreams();
}

template <typename Element>
void FillColdRows(const RopeRows& source, v1::Pairing pairing, v1::Layout layout, int64_t width,
                  const Rows<Element>& rows) {
  const bool is_direct =
      IsOfKernel(source, layout) &&
      HasWholeLines(KernelRows(layout, pairing, source.pairs(), rows), source.pairs());
  if (is_direct) return FillRows(source, pairing, layout, width, rows);
  FillByCopies(source, pairing, layout, width, rows);
}

// Rows of consecutive positions are filled together. `parts` are of the same rows.
template <typename Element>
void FillRuns(const RopeRows& source, v1::Pairing pairing, const TableShape& shape,
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
    cold ? FillColdRows(source, pairing, layout, width, rows)
         : FillRows(source, pairing, layout, width, rows);
    row += run;
  }
}

void FillParts(const RopeRows& source, v1::Pairing pairing, const TableShape& shape,
               std::span<const TensorPart> parts, bool cold) {
  switch (shape.tensors[parts[0].tensor].dtype) {
    case v1::DTYPE_F64:
      return FillRuns<double>(source, pairing, shape, parts, cold);
    case v1::DTYPE_F16:
      return FillRuns<F16>(source, pairing, shape, parts, cold);
    case v1::DTYPE_BF16:
      return FillRuns<Bf16>(source, pairing, shape, parts, cold);
    default:
      return FillRuns<float>(source, pairing, shape, parts, cold);
  }
}

}  // namespace

std::vector<v1::Layout> RopeRowLayouts() {
  return {v1::LAYOUT_COS_SIN,         v1::LAYOUT_COS_AND_SIN_HALF,    v1::LAYOUT_COS_AND_SIN_FULL,
          v1::LAYOUT_PAIRS,           v1::LAYOUT_PAIRS_FULL,          v1::LAYOUT_SIN_COS,
          v1::LAYOUT_ROTATION_MATRIX, v1::LAYOUT_COS_AND_SIN_REPEATED};
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
    case v1::LAYOUT_COS_AND_SIN_REPEATED:
      return {rows("cos", rotary_dim), rows("sin", rotary_dim)};
    case v1::LAYOUT_PAIRS: {
      Tensor pairs = rows("freqs_cis", rotary_dim);
      pairs.shape = {positions.count, half, 2};
      return {pairs};
    }
    case v1::LAYOUT_PAIRS_FULL: {
      Tensor pairs = rows("freqs_cis", 2 * rotary_dim);
      pairs.shape = {positions.count, rotary_dim, 2};
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

void FillRopeTensor(const RopeRows& source, v1::Pairing pairing, const TableShape& shape,
                    size_t tensor, int64_t begin, std::span<std::byte> out) {
  const TensorPart part{tensor, begin, out};
  FillParts(source, pairing, shape, {&part, 1}, /*cold=*/false);
}

void FillColdRopeTensors(const RopeRows& source, v1::Pairing pairing, const TableShape& shape,
                         std::span<const TensorPart> parts) {
  const bool are_same_rows = parts.size() == 2 && parts[0].tensor != parts[1].tensor &&
                             parts[0].begin == parts[1].begin &&
                             parts[0].out.size() == parts[1].out.size();
  if (are_same_rows) return FillParts(source, pairing, shape, parts, /*cold=*/true);
  for (const TensorPart& part : parts) {
    FillParts(source, pairing, shape, {&part, 1}, /*cold=*/true);
  }
}

}  // namespace posenc
