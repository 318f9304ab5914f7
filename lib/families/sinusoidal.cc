// Sinusoidal position encodings: a sine and a cosine a frequency.
//
// Row p holds, for n frequencies w (sinusoidal_frequencies.h) and x = p + position_offset,
//   INTERLEAVED   [sin(x w0) cos(x w0) sin(x w1) cos(x w1) ...]
//   HALF_SIN_COS  [sin(x w0) sin(x w1) ... | cos(x w0) cos(x w1) ...]
//   HALF_COS_SIN  the halves the other way round
// or zeros, where x is the padding_row: fairseq zeroes a row of its table, and x
// is what looks a row up, so the offset comes first.
//
//   TABLE  positional_encoding [R, d_model]
//
// Vaswani et al., arXiv:1706.03762.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/selection.h"
#include "lib/families/sinusoidal_frequencies.h"
#include "lib/families/store.h"
#include "lib/numeric/dtype.h"
#include "lib/numeric/rotation.h"

namespace posenc {
namespace {

constexpr int64_t kMaxDModel = 65536;
// Of a position and of a position with its offset: both signs make sense.
constexpr int64_t kMaxMagnitude = kMaxPosition - 1;

absl::Status CheckEnums(const v1::SinusoidalSpec& spec) {
  RETURN_IF_ERROR(
      CheckEnum("sinusoidal.layout", v1::SinusoidalLayout_IsValid(spec.layout()), spec.layout()));
  RETURN_IF_ERROR(CheckEnum("sinusoidal.frequency_rule",
                            v1::FrequencyRule_IsValid(spec.frequency_rule()),
                            spec.frequency_rule()));
  RETURN_IF_ERROR(CheckEnum("sinusoidal.odd_dim_rule", v1::OddDimRule_IsValid(spec.odd_dim_rule()),
                            spec.odd_dim_rule()));
  return CheckEnum("sinusoidal.arithmetic", v1::Arithmetic_IsValid(spec.arithmetic()),
                   spec.arithmetic());
}

v1::OddDimRule DefaultOddDimRule(const v1::SinusoidalSpec& spec) {
  return spec.layout() != v1::SINUSOIDAL_LAYOUT_INTERLEAVED &&
                 spec.frequency_rule() == v1::FREQUENCY_RULE_T2T
             ? v1::ODD_DIM_RULE_ZERO_LAST_COLUMN
             : v1::ODD_DIM_RULE_EXTRA_SIN_COLUMN;
}

void FillDefaults(v1::SinusoidalSpec* spec) {
  if (spec->layout() == v1::SINUSOIDAL_LAYOUT_UNSPECIFIED) {
    spec->set_layout(v1::SINUSOIDAL_LAYOUT_INTERLEAVED);
  }
  if (spec->frequency_rule() == v1::FREQUENCY_RULE_UNSPECIFIED) {
    spec->set_frequency_rule(v1::FREQUENCY_RULE_THETA);
  }
  if (!spec->has_base()) spec->set_base(10000.0);
  if (!spec->has_position_offset()) spec->set_position_offset(0);
  // An even width has no odd column: one canonical form for what changes nothing.
  if (spec->odd_dim_rule() == v1::ODD_DIM_RULE_UNSPECIFIED || spec->d_model() % 2 == 0) {
    spec->set_odd_dim_rule(DefaultOddDimRule(*spec));
  }
  if (spec->arithmetic() == v1::ARITHMETIC_UNSPECIFIED) {
    spec->set_arithmetic(spec->frequency_rule() == v1::FREQUENCY_RULE_T2T ? v1::ARITHMETIC_FLOAT32
                                                                          : v1::ARITHMETIC_EXACT);
  }
}

absl::Status CanonicalizeSinusoidal(v1::SinusoidalSpec* spec) {
  if (!spec->has_d_model()) return FieldError("sinusoidal.d_model", "is required");
  RETURN_IF_ERROR(CheckInRange("sinusoidal.d_model", spec->d_model(), 1, kMaxDModel));
  RETURN_IF_ERROR(CheckEnums(*spec));
  FillDefaults(spec);
  if (spec->layout() == v1::SINUSOIDAL_LAYOUT_INTERLEAVED &&
      spec->odd_dim_rule() == v1::ODD_DIM_RULE_ZERO_LAST_COLUMN) {
    return FieldError("sinusoidal.odd_dim_rule",
                      "an interleaved row ends with a sine: zero_last_column is for half splits");
  }
  if (spec->frequency_rule() == v1::FREQUENCY_RULE_T2T && spec->d_model() < 4) {
    return FieldError("sinusoidal.d_model",
                      absl::StrCat("must be at least 4 with the t2t rule, which divides by the "
                                   "number of frequencies less one; got ",
                                   spec->d_model()));
  }
  if (SinusoidalPairs(*spec) < 1) {
    return FieldError(
        "sinusoidal.d_model",
        absl::StrCat("must be at least 2 with zero_last_column, got ", spec->d_model()));
  }
  RETURN_IF_ERROR(CheckFinitePositive("sinusoidal.base", spec->base()));
  if (const double frequency = MaxSinusoidalFrequency(*spec); !(frequency <= kMaxInvFreq)) {
    return FieldError("sinusoidal.base", absl::StrCat("gives frequencies up to ", frequency,
                                                      " radians a position, at most ", kMaxInvFreq,
                                                      " are allowed; got ", spec->base()));
  }
  RETURN_IF_ERROR(CheckInRange("sinusoidal.position_offset", spec->position_offset(),
                               -kMaxMagnitude, kMaxMagnitude));
  if (spec->has_padding_row()) {
    RETURN_IF_ERROR(
        CheckInRange("sinusoidal.padding_row", spec->padding_row(), -kMaxMagnitude, kMaxMagnitude));
  }
  return absl::OkStatus();
}

// A position stays in the rotation's range when the offset is added.
absl::Status CheckPosition(const std::string& field, int64_t position, int64_t offset) {
  if (std::abs(position + offset) <= kMaxMagnitude) return absl::OkStatus();
  return FieldError(field, absl::StrCat("with position_offset ", offset, " must stay in [",
                                        -kMaxMagnitude, ", ", kMaxMagnitude, "], got ", position));
}

absl::Status CheckPositions(const v1::Selection& selection, int64_t offset) {
  if (selection.has_position_range()) {
    const v1::PositionRange& range = selection.position_range();
    if (range.begin() == range.end()) return absl::OkStatus();
    RETURN_IF_ERROR(CheckPosition("selection.position_range.begin", range.begin(), offset));
    return CheckPosition("selection.position_range.end", range.end() - 1, offset);
  }
  const auto& ids = selection.position_ids().ids();
  for (int i = 0; i < ids.size(); ++i) {
    RETURN_IF_ERROR(
        CheckPosition(absl::StrCat("selection.position_ids.ids[", i, "]"), ids[i], offset));
  }
  return absl::OkStatus();
}

Rotation MakeRotation(const v1::SinusoidalSpec& spec) {
  return spec.arithmetic() == v1::ARITHMETIC_FLOAT32
             ? Rotation::Float32(SinusoidalFrequencies32(spec), 1.0)
             : Rotation::Exact(SinusoidalFrequencies(spec), 1.0);
}

class SinusoidalPlan final : public Plan {
 public:
  explicit SinusoidalPlan(const v1::SinusoidalSpec& spec)
      : spec_(spec), rotation_(MakeRotation(spec)) {}

  size_t bytes() const override { return rotation_.bytes(); }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    switch (shape.tensors[tensor].dtype) {
      case v1::DTYPE_F64:
        return FillAs<double>(shape.selection, begin, out);
      case v1::DTYPE_F16:
        return FillAs<F16>(shape.selection, begin, out);
      case v1::DTYPE_BF16:
        return FillAs<Bf16>(shape.selection, begin, out);
      default:
        return FillAs<float>(shape.selection, begin, out);
    }
  }

  void Describe(v1::DescribeTableResponse* response) const override {
    if (spec_.arithmetic() == v1::ARITHMETIC_FLOAT32) {
      for (const float w : SinusoidalFrequencies32(spec_)) response->add_inv_freq(w);
    } else {
      for (const WideFloat& w : SinusoidalFrequencies(spec_)) response->add_inv_freq(w.ToDouble());
    }
  }

 private:
  template <typename Element>
  void FillAs(const v1::Selection& selection, int64_t begin, std::span<std::byte> out) const {
    auto* element = reinterpret_cast<Element*>(out.data());
    const int64_t first_row = begin / spec_.d_model();
    const int64_t rows = static_cast<int64_t>(out.size() / sizeof(Element)) / spec_.d_model();
    std::vector<Element> scratch(static_cast<size_t>(2 * rotation_.pairs()));
    for (int64_t row = 0; row < rows; ++row) {
      FillRow(PositionAt(selection, first_row + row) + spec_.position_offset(), scratch.data(),
              element + row * spec_.d_model());
    }
  }

  // The row of one table index, put together from `scratch` [2 * pairs].
  template <typename Element>
  void FillRow(int64_t index, Element* scratch, Element* row) const {
    const int64_t width = spec_.d_model();
    if (spec_.has_padding_row() && index == spec_.padding_row()) {
      std::fill(row, row + width, Element{});
      return;
    }
    const int64_t pairs = rotation_.pairs();
    Element* sin = scratch;
    Element* cos = scratch + pairs;
    rotation_.Fill<Element>(index, {.count = 1, .stride = 0, .cos = cos, .sin = sin});
    const int64_t cosines = width / 2;  // an odd width has one fewer, or a zero column
    switch (spec_.layout()) {
      case v1::SINUSOIDAL_LAYOUT_HALF_SIN_COS:
        std::copy(cos, cos + cosines, std::copy(sin, sin + pairs, row));
        break;
      case v1::SINUSOIDAL_LAYOUT_HALF_COS_SIN:
        std::copy(sin, sin + pairs, std::copy(cos, cos + cosines, row));
        break;
      default:  // INTERLEAVED
        for (int64_t k = 0; k < cosines; ++k) {
          row[2 * k] = sin[k];
          row[2 * k + 1] = cos[k];
        }
        if (width % 2 != 0) row[width - 1] = sin[pairs - 1];
    }
    if (pairs + cosines < width) row[width - 1] = Element{};
  }

  v1::SinusoidalSpec spec_;
  Rotation rotation_;
};

class SinusoidalFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "sinusoidal"; }
  absl::string_view numerics_version() const override { return "sinusoidal-1"; }
  bool rows_are_positions() const override { return true; }
  std::vector<v1::Layout> layouts() const override { return {v1::LAYOUT_TABLE}; }
  std::vector<v1::DType> dtypes() const override {
    return {v1::DTYPE_F32, v1::DTYPE_F64, v1::DTYPE_F16, v1::DTYPE_BF16};
  }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeSinusoidal(spec->mutable_sinusoidal());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    const v1::SinusoidalSpec& sinusoidal = spec.proto().sinusoidal();
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    ASSIGN_OR_RETURN(Positions positions, ResolvePositions(selection, -kMaxMagnitude));
    RETURN_IF_ERROR(CheckPositions(positions.selection, sinusoidal.position_offset()));
    shape.tensors = {{.name = "positional_encoding",
                      .dtype = shape.format.dtype(),
                      .shape = {positions.count, sinusoidal.d_model()},
                      .unit = sinusoidal.d_model(),
                      .origin = positions.origin * sinusoidal.d_model()}};
    shape.selection = std::move(positions.selection);
    shape.coordinates_key = std::move(positions.coordinates_key);
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<SinusoidalPlan>(spec.proto().sinusoidal());
  }
};

}  // namespace

const Family& SinusoidalFamily() {
  static const SinusoidalFamilyImpl family;
  return family;
}

}  // namespace posenc
