// Rotary position embedding: cos and sin tables.
//
// Row p holds cos(p·inv_freq[i]) and sin(p·inv_freq[i]), times attention_factor,
// for i in [0, rotary_dim/2). Where they stand: rope_layout.h.
//
// Su et al., arXiv:2104.09864; reference/hf-rope.md, sections 1 (the order of roundings), 2 (the
// rope_types), 3.1 and 3.2 (layouts), 5.3 (other codes' variants); reference/serving-stacks.md,
// section 5.2. Scaling: rope_scaling.h, rope_frequencies.h. The values: lib/numeric/rotation.h.
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/rope_frequencies.h"
#include "lib/families/rope_layout.h"
#include "lib/families/rope_rows.h"
#include "lib/families/rope_scaling.h"
#include "lib/families/selection.h"
#include "lib/numeric/dtype.h"

namespace posenc {
namespace {

constexpr int64_t kMaxHeadDim = 65536;
constexpr double kDefaultRopeTheta = 10000.0;

// Canonicalize -------------------------------------------------------------------

absl::Status CheckHeadDim(absl::string_view field, int64_t value) {
  return CheckInRange(field, value, 2, kMaxHeadDim);
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
  if (!rope->has_head_dim()) {
    return FieldError("rope.head_dim", "is required with partial_rotary_factor");
  }
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
  if (rope->has_frequencies() && !rope->has_head_dim() && !rope->has_rotary_dim()) {
    rope->set_rotary_dim(2 * int64_t{rope->frequencies().inv_freq_size()});
  }
  if (rope->has_proportional() && rope->has_partial_rotary_factor()) {
    return FieldError("rope.partial_rotary_factor",
                      "is proportional.partial_rotary_factor with this rope_type");
  }
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

absl::Status CanonicalizeTheta(v1::RopeSpec* rope) {
  if (rope->has_frequencies()) {
    if (!rope->has_rope_theta()) return absl::OkStatus();
    return FieldError("rope.rope_theta", "must be unset with explicit frequencies");
  }
  if (!rope->has_rope_theta()) rope->set_rope_theta(kDefaultRopeTheta);
  return absl::OkStatus();
}

// Unset where it says no more than its default. REQUIRES: the scaling is canonical.
absl::Status CanonicalizeScaleAfterRounding(v1::RopeSpec* rope) {
  if (rope->scale_after_rounding() && rope->arithmetic() == v1::ARITHMETIC_EXACT) {
    return FieldError("rope.scale_after_rounding",
                      "must be unset with ARITHMETIC_EXACT, which rounds once");
  }
  const bool scales =
      RopeAttentionFactor(*rope) != 1 || rope->longrope().has_long_attention_factor();
  if (!rope->scale_after_rounding() || !scales) rope->clear_scale_after_rounding();
  return absl::OkStatus();
}

absl::Status CanonicalizeRope(v1::RopeSpec* rope) {
  RETURN_IF_ERROR(CanonicalizeDims(rope));
  RETURN_IF_ERROR(CanonicalizeTheta(rope));
  RETURN_IF_ERROR(CheckEnum("rope.pairing", v1::Pairing_IsValid(rope->pairing()), rope->pairing()));
  RETURN_IF_ERROR(
      CheckEnum("rope.arithmetic", v1::Arithmetic_IsValid(rope->arithmetic()), rope->arithmetic()));
  if (rope->pairing() == v1::PAIRING_UNSPECIFIED) rope->set_pairing(v1::PAIRING_HALF);
  if (rope->arithmetic() == v1::ARITHMETIC_UNSPECIFIED) {
    rope->set_arithmetic(v1::ARITHMETIC_FLOAT32);
  }
  RETURN_IF_ERROR(CanonicalizeRopeScaling(rope));
  return CanonicalizeScaleAfterRounding(rope);
}

// Shapes -------------------------------------------------------------------------

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
    std::vector<int64_t> dims = {rope.rotary_dim() / 2};
    if (rope.longrope().short_then_long()) dims.insert(dims.begin(), 2);
    shape.tensors = {{.name = "inv_freq", .dtype = dtype, .shape = std::move(dims), .unit = 1}};
    return shape;
  }
  ASSIGN_OR_RETURN(Positions positions, ResolvePositions(selection, 0));
  shape.tensors = RopeTensors(shape.format.layout(), dtype, rope.rotary_dim(), positions);
  shape.selection = std::move(positions.selection);
  shape.coordinates_key = std::move(positions.coordinates_key);
  return shape;
}

// Plan ---------------------------------------------------------------------------

template <typename Element>
Element RoundFrequency(float value) {
  return RoundTo<Element>(value);
}
template <typename Element>
Element RoundFrequency(const WideFloat& value) {
  return RoundWideTo<Element>(value);
}

class RopePlan final : public Plan {
 public:
  explicit RopePlan(const v1::RopeSpec& rope)
      : pairing_(rope.pairing()), attention_factor_(RopeAttentionFactor(rope)), rows_(rope) {}

  size_t bytes() const override { return rows_.bytes(); }

  double attention_factor() const override { return attention_factor_; }

  void Describe(v1::DescribeTableResponse* response) const override {
    for (const RopeFrequencies& list : rows_.frequencies()) {
      std::visit(
          [&](const auto& inv_freq) {
            for (const auto& f : inv_freq) response->add_inv_freq(RoundFrequency<double>(f));
          },
          list);
    }
  }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    if (shape.format.layout() != v1::LAYOUT_INV_FREQ) {
      return FillRopeTensor(rows_, pairing_, shape, tensor, begin, out);
    }
    switch (shape.format.dtype()) {
      case v1::DTYPE_F64:
        return FillInvFreq<double>(begin, out);
      case v1::DTYPE_F16:
        return FillInvFreq<F16>(begin, out);
      case v1::DTYPE_BF16:
        return FillInvFreq<Bf16>(begin, out);
      default:
        return FillInvFreq<float>(begin, out);
    }
  }

  void FillCold(const TableShape& shape, std::span<const TensorPart> parts) const override {
    if (shape.format.layout() == v1::LAYOUT_INV_FREQ) return Plan::FillCold(shape, parts);
    FillColdRopeTensors(rows_, pairing_, shape, parts);
  }

 private:
  template <typename Element>
  void FillInvFreq(int64_t begin, std::span<std::byte> out) const {
    auto* elements = reinterpret_cast<Element*>(out.data());
    const auto pairs = static_cast<size_t>(rows_.pairs());
    for (size_t i = 0; i < out.size() / sizeof(Element); ++i) {
      const size_t address = static_cast<size_t>(begin) + i;
      elements[i] = std::visit(
          [&](const auto& list) { return RoundFrequency<Element>(list[address % pairs]); },
          rows_.frequencies()[address / pairs]);
    }
  }

  const v1::Pairing pairing_;
  const double attention_factor_;
  const RopeRows rows_;
};

// Family -------------------------------------------------------------------------

class RopeFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "rope"; }
  absl::string_view numerics_version() const override { return "rope-1"; }
  bool rows_are_positions() const override { return true; }
  std::vector<v1::Layout> layouts() const override {
    std::vector<v1::Layout> layouts = RopeRowLayouts();
    layouts.push_back(v1::LAYOUT_INV_FREQ);
    return layouts;
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
