// Rotary position embedding: cos and sin tables.
//
// Row p holds cos(p·inv_freq[i]) and sin(p·inv_freq[i]), times attention_factor,
// for i in [0, rotary_dim/2):
//   COS_SIN           [c0 c1 … s0 s1 …]
//   COS_AND_SIN_HALF  [c0 c1 …]                  and the sines as another tensor
//   COS_AND_SIN_FULL  [c0 c1 … c0 c1 …] (HALF) or [c0 c0 c1 c1 …] (INTERLEAVED), ditto
//   PAIRS             [c0 s0 c1 s1 …]
// Which channels a pair (c, s) rotates is `pairing`; only the last but one depends on it.
//
// Su et al., arXiv:2104.09864. Scaling: rope_scaling.h, rope_frequencies.h. The
// values: lib/numeric/rotation.h.
#include <algorithm>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/families.h"
#include "lib/families/rope_frequencies.h"
#include "lib/families/rope_scaling.h"
#include "lib/families/selection.h"
#include "lib/numeric/dtype.h"
#include "lib/numeric/rotation.h"

namespace posenc {
namespace {

constexpr int64_t kMaxHeadDim = 65536;
constexpr double kDefaultRopeTheta = 10000.0;

// Canonicalize -------------------------------------------------------------------

absl::Status CheckHeadDim(absl::string_view field, int64_t value) {
  if (value >= 2 && value <= kMaxHeadDim) return absl::OkStatus();
  return FieldError(field, absl::StrCat("must be in [2, ", kMaxHeadDim, "], got ", value));
}

// partial_rotary_factor becomes rotary_dim, by truncation of a double product as
// in the frameworks: 0.29 of 100 is 28.
absl::Status FoldPartialRotaryFactor(v1::RopeSpec* rope) {
  constexpr absl::string_view kField = "rope.partial_rotary_factor";
  if (!rope->has_partial_rotary_factor()) return absl::OkStatus();
  const double factor = rope->partial_rotary_factor();
  if (!(factor > 0 && factor <= 1)) {
    return FieldError(kField, absl::StrCat("must be above 0 and at most 1, got ", factor));
  }
  if (!rope->has_head_dim())
    return FieldError("rope.head_dim", "is required with partial_rotary_factor");
  RETURN_IF_ERROR(CheckHeadDim("rope.head_dim", rope->head_dim()));
  const auto rotary_dim = static_cast<int64_t>(static_cast<double>(rope->head_dim()) * factor);
  if (rope->has_rotary_dim() && rope->rotary_dim() != rotary_dim) {
    return FieldError(kField,
                      absl::StrCat("gives a rotary_dim of ", rotary_dim, " (of head_dim ",
                                   rope->head_dim(), "), got rotary_dim ", rope->rotary_dim()));
  }
  rope->set_rotary_dim(rotary_dim);
  rope->clear_partial_rotary_factor();
  return absl::OkStatus();
}

absl::Status CanonicalizeDims(v1::RopeSpec* rope) {
  if (!rope->has_head_dim() && !rope->has_rotary_dim() && !rope->has_partial_rotary_factor()) {
    return FieldError("rope.head_dim", "is required, or rotary_dim");
  }
  RETURN_IF_ERROR(FoldPartialRotaryFactor(rope));
  const bool all_rotate = !rope->has_rotary_dim();
  if (all_rotate) rope->set_rotary_dim(rope->head_dim());
  if (!rope->has_head_dim()) rope->set_head_dim(rope->rotary_dim());
  const absl::string_view field = all_rotate ? "rope.head_dim" : "rope.rotary_dim";
  RETURN_IF_ERROR(CheckHeadDim(field, rope->rotary_dim()));
  RETURN_IF_ERROR(CheckHeadDim("rope.head_dim", rope->head_dim()));
  if (rope->rotary_dim() % 2 != 0) {
    return FieldError(field, absl::StrCat("must be even, got ", rope->rotary_dim()));
  }
  if (rope->rotary_dim() > rope->head_dim()) {
    return FieldError(field, absl::StrCat("must be at most head_dim (", rope->head_dim(), "), got ",
                                          rope->rotary_dim()));
  }
  return absl::OkStatus();
}

absl::Status CanonicalizeRope(v1::RopeSpec* rope) {
  RETURN_IF_ERROR(CanonicalizeDims(rope));
  if (!rope->has_rope_theta()) rope->set_rope_theta(kDefaultRopeTheta);
  if (!v1::Pairing_IsValid(rope->pairing())) {
    return FieldError("rope.pairing",
                      absl::StrCat("unknown value ", static_cast<int>(rope->pairing())));
  }
  if (rope->pairing() == v1::PAIRING_UNSPECIFIED) rope->set_pairing(v1::PAIRING_HALF);
  if (!v1::Arithmetic_IsValid(rope->arithmetic())) {
    return FieldError("rope.arithmetic",
                      absl::StrCat("unknown value ", static_cast<int>(rope->arithmetic())));
  }
  if (rope->arithmetic() == v1::ARITHMETIC_UNSPECIFIED)
    rope->set_arithmetic(v1::ARITHMETIC_FLOAT32);
  return CanonicalizeRopeScaling(rope);
}

// Shapes -------------------------------------------------------------------------

std::vector<Tensor> RowTensors(v1::Layout layout, v1::DType dtype, int64_t rotary_dim,
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
    default:
      return {rows("cos_sin_cache", rotary_dim)};
  }
}

absl::StatusOr<TableShape> ResolveRope(const Family& family, const v1::RopeSpec& rope,
                                       const v1::Selection& selection,
                                       const v1::TensorFormat& format) {
  TableShape shape;
  shape.format = format;
  RETURN_IF_ERROR(ResolveFormat(family, &shape.format));
  const v1::DType dtype = shape.format.dtype();
  if (shape.format.layout() == v1::LAYOUT_INV_FREQ) {
    // Frequencies have no coordinates: a selection is checked, then left out.
    if (selection.coordinates_case() != v1::Selection::COORDINATES_NOT_SET) {
      RETURN_IF_ERROR(ResolvePositions(selection, 0).status());
    }
    shape.tensors = {
        {.name = "inv_freq", .dtype = dtype, .shape = {rope.rotary_dim() / 2}, .unit = 1}};
    return shape;
  }
  ASSIGN_OR_RETURN(Positions positions, ResolvePositions(selection, 0));
  shape.tensors = RowTensors(shape.format.layout(), dtype, rope.rotary_dim(), positions);
  shape.selection = std::move(positions.selection);
  shape.coordinates_key = std::move(positions.coordinates_key);
  return shape;
}

// Plan and rows ------------------------------------------------------------------

using Frequencies = std::variant<std::vector<float>, std::vector<WideFloat>>;

Frequencies MakeFrequencies(const v1::RopeSpec& rope) {
  if (rope.arithmetic() == v1::ARITHMETIC_EXACT) return RopeInvFreqExact(rope);
  return RopeInvFreqFloat32(rope);
}

Rotation MakeRotation(const Frequencies& inv_freq, double scale) {
  if (const auto* exact = std::get_if<std::vector<WideFloat>>(&inv_freq)) {
    return Rotation::Exact(*exact, scale);
  }
  return Rotation::Float32(std::get<std::vector<float>>(inv_freq), scale);
}

template <typename Element>
Element RoundFrequency(float value) {
  return RoundTo<Element>(value);
}
template <typename Element>
Element RoundFrequency(const WideFloat& value) {
  return RoundWideTo<Element>(value);
}

// Consecutive rows of one tensor, in memory.
template <typename Element>
struct Rows {
  Element* out;
  int64_t count;
  int64_t half;  // rotary_dim / 2
};

class RopePlan final : public Plan {
 public:
  explicit RopePlan(const v1::RopeSpec& rope)
      : interleaved_(rope.pairing() == v1::PAIRING_INTERLEAVED),
        attention_factor_(RopeAttentionFactor(rope)),
        inv_freq_(MakeFrequencies(rope)),
        rotation_(MakeRotation(inv_freq_, attention_factor_)) {}

  size_t bytes() const override {
    return rotation_.bytes() +
           std::visit([](const auto& f) { return f.capacity() * sizeof(f[0]); }, inv_freq_);
  }

  double attention_factor() const override { return attention_factor_; }

  void Describe(v1::DescribeTableResponse* response) const override {
    std::visit(
        [&](const auto& inv_freq) {
          for (const auto& f : inv_freq) response->add_inv_freq(RoundFrequency<double>(f));
        },
        inv_freq_);
  }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    switch (shape.tensors[tensor].dtype) {
      case v1::DTYPE_F64:
        return FillAs<double>(shape, tensor, begin, out);
      case v1::DTYPE_F16:
        return FillAs<F16>(shape, tensor, begin, out);
      case v1::DTYPE_BF16:
        return FillAs<Bf16>(shape, tensor, begin, out);
      default:
        return FillAs<float>(shape, tensor, begin, out);
    }
  }

 private:
  template <typename Element>
  void FillAs(const TableShape& shape, size_t tensor, int64_t begin,
              std::span<std::byte> out) const {
    auto* elements = reinterpret_cast<Element*>(out.data());
    const auto count = static_cast<int64_t>(out.size() / sizeof(Element));
    if (shape.format.layout() == v1::LAYOUT_INV_FREQ) {
      return FillInvFreq(begin, count, elements);
    }
    const int64_t width = shape.tensors[tensor].unit;
    const int64_t end = (begin + count) / width;
    for (int64_t row = begin / width; row < end;) {
      // Rows of consecutive positions are filled together.
      const int64_t position = PositionAt(shape.selection, row);
      int64_t run = shape.selection.has_position_range() ? end - row : 1;
      while (row + run < end && PositionAt(shape.selection, row + run) == position + run) ++run;
      FillRun(shape.format.layout(), tensor, position,
              Rows<Element>{elements, run, rotation_.pairs()});
      elements += run * width;
      row += run;
    }
  }

  template <typename Element>
  void FillInvFreq(int64_t begin, int64_t count, Element* out) const {
    std::visit(
        [&](const auto& inv_freq) {
          for (int64_t i = 0; i < count; ++i) {
            out[i] = RoundFrequency<Element>(inv_freq[static_cast<size_t>(begin + i)]);
          }
        },
        inv_freq_);
  }

  template <typename Element>
  void FillRun(v1::Layout layout, size_t tensor, int64_t position, Rows<Element> rows) const {
    switch (layout) {
      case v1::LAYOUT_COS_AND_SIN_HALF:
        return FillHalf(tensor, position, rows.half, rows);
      case v1::LAYOUT_COS_AND_SIN_FULL:
        return interleaved_ ? FillDoubledInPlace(tensor, position, rows)
                            : FillDoubledHalves(tensor, position, rows);
      case v1::LAYOUT_PAIRS:
        return FillPairs(position, rows);
      default:
        return rotation_.Fill(position, RotationRows<Element>{.count = rows.count,
                                                              .stride = 2 * rows.half,
                                                              .cos = rows.out,
                                                              .sin = rows.out + rows.half});
    }
  }

  // The cosines (tensor 0) or the sines (tensor 1) at the start of each row.
  template <typename Element>
  void FillHalf(size_t tensor, int64_t position, int64_t stride, Rows<Element> rows) const {
    rotation_.Fill(position, RotationRows<Element>{.count = rows.count,
                                                   .stride = stride,
                                                   .cos = tensor == 0 ? rows.out : nullptr,
                                                   .sin = tensor == 1 ? rows.out : nullptr});
  }

  template <typename Element>
  void FillDoubledHalves(size_t tensor, int64_t position, Rows<Element> rows) const {
    FillHalf(tensor, position, 2 * rows.half, rows);
    for (int64_t row = 0; row < rows.count; ++row) {
      Element* first = rows.out + row * 2 * rows.half;
      std::copy_n(first, rows.half, first + rows.half);
    }
  }

  template <typename Element>
  void FillDoubledInPlace(size_t tensor, int64_t position, Rows<Element> rows) const {
    FillHalf(tensor, position, 2 * rows.half, rows);
    for (int64_t row = 0; row < rows.count; ++row) {
      Element* first = rows.out + row * 2 * rows.half;
      for (int64_t i = rows.half; i-- > 0;) first[2 * i] = first[2 * i + 1] = first[i];
    }
  }

  template <typename Element>
  void FillPairs(int64_t position, Rows<Element> rows) const {
    std::vector<Element> row_values(static_cast<size_t>(2 * rows.half));
    Element* cos = row_values.data();
    Element* sin = cos + rows.half;
    for (int64_t row = 0; row < rows.count; ++row) {
      rotation_.Fill(position + row, RotationRows<Element>{.count = 1, .cos = cos, .sin = sin});
      Element* pairs = rows.out + row * 2 * rows.half;
      for (int64_t i = 0; i < rows.half; ++i) {
        pairs[2 * i] = cos[i];
        pairs[2 * i + 1] = sin[i];
      }
    }
  }

  const bool interleaved_;
  const double attention_factor_;
  const Frequencies inv_freq_;  // [rotary_dim / 2], radians per position
  const Rotation rotation_;
};

// Family -------------------------------------------------------------------------

class RopeFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "rope"; }
  absl::string_view numerics_version() const override { return "rope-1"; }
  bool rows_are_positions() const override { return true; }
  std::vector<v1::Layout> layouts() const override {
    return {v1::LAYOUT_COS_SIN, v1::LAYOUT_COS_AND_SIN_HALF, v1::LAYOUT_COS_AND_SIN_FULL,
            v1::LAYOUT_PAIRS, v1::LAYOUT_INV_FREQ};
  }
  std::vector<v1::DType> dtypes() const override {
    return {v1::DTYPE_F32, v1::DTYPE_F64, v1::DTYPE_F16, v1::DTYPE_BF16};
  }
  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeRope(spec->mutable_rope());
  }
  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    return ResolveRope(*this, spec.proto().rope(), selection, format);
  }
  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<RopePlan>(spec.proto().rope());
  }
};

}  // namespace

const Family& RopeFamily() {
  static const RopeFamilyImpl family;
  return family;
}

}  // namespace posenc
