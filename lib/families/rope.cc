// Rotary position embedding: cos and sin tables.
//
// Row p holds cos(p·inv_freq[i]) and sin(p·inv_freq[i]), times attention_factor,
// for i in [0, rotary_dim/2). Where they stand: rope_layout.h.
//
// Su et al., arXiv:2104.09864. Scaling: rope_scaling.h, rope_frequencies.h. The
// values: lib/numeric/rotation.h.
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
  return CanonicalizeRopeScaling(rope);
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
    shape.tensors = {
        {.name = "inv_freq", .dtype = dtype, .shape = {rope.rotary_dim() / 2}, .unit = 1}};
    return shape;
  }
  ASSIGN_OR_RETURN(Positions positions, ResolvePositions(selection, 0));
  shape.tensors = RopeTensors(shape.format.layout(), dtype, rope.rotary_dim(), positions);
  shape.selection = std::move(positions.selection);
  shape.coordinates_key = std::move(positions.coordinates_key);
  return shape;
}

// Plan ---------------------------------------------------------------------------

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

class RopePlan final : public Plan {
 public:
  explicit RopePlan(const v1::RopeSpec& rope)
      : pairing_(rope.pairing()),
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
    if (shape.format.layout() != v1::LAYOUT_INV_FREQ) {
      return FillRopeTensor(rotation_, pairing_, shape, tensor, begin, out);
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
    FillColdRopeTensors(rotation_, pairing_, shape, parts);
  }

 private:
  template <typename Element>
  void FillInvFreq(int64_t begin, std::span<std::byte> out) const {
    auto* elements = reinterpret_cast<Element*>(out.data());
    std::visit(
        [&](const auto& inv_freq) {
          for (size_t i = 0; i < out.size() / sizeof(Element); ++i) {
            elements[i] = RoundFrequency<Element>(inv_freq[static_cast<size_t>(begin) + i]);
          }
        },
        inv_freq_);
  }

  const v1::Pairing pairing_;
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
