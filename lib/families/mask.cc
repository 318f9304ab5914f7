// Attention masks: rules composed as booleans, and only then a bias.
//
//   MASK  attention_mask [Q, K], bool: 1 where the query may attend to the key
//   BIAS  attention_bias [Q, K]: 0 there, the fill elsewhere; with a bias, its
//         attention_bias [H, Q, K] with the fill where a key is masked
//
// A bias is chosen by the mask, never added to it: the lowest numbers of two masks
// add up to -infinity, and a row of those is NaN after softmax.
// reference/other-encodings.md, section 6. The rules: mask_rules.h.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/layout_dtypes.h"
#include "lib/families/mask_rules.h"
#include "lib/families/mask_tokens.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"
#include "lib/numeric/dtype.h"

namespace posenc {
namespace {

using v1::MaskSpec;

// Canonicalize -----------------------------------------------------------------

bool HasBias(const Family& family) {
  const std::vector<v1::Layout> layouts = family.layouts();
  return &family != &MaskFamily() &&
         std::find(layouts.begin(), layouts.end(), v1::LAYOUT_BIAS) != layouts.end();
}

// The refusal of a nested spec, at its own path: "mask.bias." + what it said.
absl::Status AtBias(const absl::Status& status) {
  const std::string text(status.message());
  const size_t colon = text.find(": ");
  if (colon == std::string::npos) return status;
  return FieldError(absl::StrCat("mask.bias.", text.substr(0, colon)), text.substr(colon + 2));
}

absl::Status CanonicalizeBias(v1::EncodingSpec* bias) {
  if (bias->family_case() == v1::EncodingSpec::FAMILY_NOT_SET) {
    return FieldError("mask.bias", "one family is required");
  }
  const Family& family = FamilyOf(*bias);
  if (!HasBias(family)) {
    return FieldError("mask.bias",
                      absl::StrCat("must be an encoding with a bias, got ", family.name()));
  }
  const absl::StatusOr<CanonicalSpec> canonical = Canonicalize(*bias);
  if (!canonical.ok()) return AtBias(canonical.status());
  *bias = canonical->proto();
  return absl::OkStatus();
}

absl::Status CanonicalizeMask(MaskSpec* mask) {
  RETURN_IF_ERROR(CheckPresent("mask.rule", mask->has_rule()));
  RETURN_IF_ERROR(CanonicalizeMaskRule(mask->mutable_rule()));
  RETURN_IF_ERROR(CheckEnum("mask.fill", v1::MaskFill_IsValid(mask->fill()), mask->fill()));
  if (mask->fill() == v1::MASK_FILL_UNSPECIFIED) mask->set_fill(v1::MASK_FILL_DTYPE_MIN);
  const bool takes_value = mask->fill() == v1::MASK_FILL_VALUE;
  if (takes_value != mask->has_fill_value()) {
    return FieldError("mask.fill_value",
                      takes_value ? "is required" : "only MASK_FILL_VALUE has one");
  }
  if (takes_value && !(mask->fill_value() <= 0)) {  // NaN is not either
    return FieldError("mask.fill_value",
                      absl::StrCat("must be at most 0, got ", mask->fill_value()));
  }
  return mask->has_bias() ? CanonicalizeBias(mask->mutable_bias()) : absl::OkStatus();
}

// Shapes -----------------------------------------------------------------------

v1::AttentionGrid GridOf(const v1::Selection& selection) {
  return selection.has_token_grid() ? selection.token_grid().attention_grid()
                                    : selection.attention_grid();
}

// The table of the nested bias over the same grid.
absl::StatusOr<TableShape> ResolveBias(const CanonicalSpec& bias, const v1::AttentionGrid& grid,
                                       v1::DType dtype) {
  v1::Selection selection;
  *selection.mutable_attention_grid() = grid;
  v1::TensorFormat format;
  format.set_layout(v1::LAYOUT_BIAS);
  format.set_dtype(dtype);
  return FamilyOf(bias.proto()).Resolve(bias, selection, format);
}

// REQUIRES: mask is canonical and has a bias.
CanonicalSpec BiasOf(const MaskSpec& mask) { return *Canonicalize(mask.bias()); }

// Values -----------------------------------------------------------------------

template <typename Bits>
void Overwrite(std::span<const uint8_t> allowed, Bits fill, std::byte* out) {
  for (size_t i = 0; i < allowed.size(); ++i) {
    Bits element;
    std::memcpy(&element, out + i * sizeof(Bits), sizeof(Bits));
    element = allowed[i] != 0 ? element : fill;
    std::memcpy(out + i * sizeof(Bits), &element, sizeof(Bits));
  }
}

double LowestOf(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_F64:
      return std::numeric_limits<double>::lowest();
    case v1::DTYPE_F16:
      return -0x1.ffcp15;
    case v1::DTYPE_BF16:
      return -0x1.fep127;
    default:  // F32
      return static_cast<double>(std::numeric_limits<float>::lowest());
  }
}

double FillOf(const MaskSpec& mask, v1::DType dtype) {
  switch (mask.fill()) {
    case v1::MASK_FILL_NEG_INF:
      return -std::numeric_limits<double>::infinity();
    case v1::MASK_FILL_VALUE:
      return mask.fill_value();
    default:  // DTYPE_MIN; a canonical spec has no other
      return LowestOf(dtype);
  }
}

void OverwriteMasked(std::span<const uint8_t> allowed, double fill, v1::DType dtype,
                     std::byte* out) {
  switch (dtype) {
    case v1::DTYPE_F64:
      return Overwrite(allowed, std::bit_cast<uint64_t>(fill), out);
    case v1::DTYPE_F16:
      return Overwrite(allowed, RoundToF16(fill), out);
    case v1::DTYPE_BF16:
      return Overwrite(allowed, RoundToBf16(fill), out);
    default:  // F32
      return Overwrite(allowed, std::bit_cast<uint32_t>(static_cast<float>(fill)), out);
  }
}

class MaskPlan final : public Plan {
 public:
  explicit MaskPlan(const MaskSpec& mask) : mask_(mask) {
    if (!mask.has_bias()) return;
    bias_.emplace(BiasOf(mask));
    bias_plan_ = FamilyOf(mask.bias()).MakePlan(*bias_);
  }

  size_t bytes() const override {
    return mask_.SpaceUsedLong() + (bias_plan_ == nullptr ? 0 : bias_plan_->bytes());
  }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::DType dtype = shape.tensors[tensor].dtype;
    const bool as_mask = shape.format.layout() == v1::LAYOUT_MASK;
    const v1::AttentionGrid grid = GridOf(shape.selection);
    if (!as_mask) FillUnmasked(grid, dtype, begin, out);
    const double fill = FillOf(mask_, dtype);
    const int64_t width = ElementBytes(dtype);
    std::array<uint8_t, kMaskBlock> block;
    for (int64_t done = 0; done * width < static_cast<int64_t>(out.size());) {
      const int64_t element = begin + done;
      const int64_t key = element % grid.key_length();
      const int64_t query = element / grid.key_length() % grid.query_length();
      const int64_t left = static_cast<int64_t>(out.size()) / width - done;
      const int64_t count =
          std::min({left, grid.key_length() - key, static_cast<int64_t>(kMaskBlock)});
      const std::span<uint8_t> allowed(block.data(), static_cast<size_t>(count));
      FillAllowed(mask_.rule(), shape.selection.token_grid(), grid.query_offset() + query, key,
                  allowed);
      std::byte* at = out.data() + done * width;
      if (as_mask) {
        std::memcpy(at, allowed.data(), allowed.size());
      } else {
        OverwriteMasked(allowed, fill, dtype, at);
      }
      done += count;
    }
  }

  void Describe(v1::DescribeTableResponse* response) const override {
    if (bias_plan_ != nullptr) bias_plan_->Describe(response);
  }

 private:
  void FillUnmasked(const v1::AttentionGrid& grid, v1::DType dtype, int64_t begin,
                    std::span<std::byte> out) const {
    if (bias_plan_ == nullptr) {
      std::fill(out.begin(), out.end(), std::byte{0});
    } else {
      // Resolve accepted the same before there was a table.
      bias_plan_->Fill(*ResolveBias(*bias_, grid, dtype), 0, begin, out);
    }
  }

  const MaskSpec mask_;
  std::optional<CanonicalSpec> bias_;
  std::shared_ptr<const Plan> bias_plan_;  // null when there is none
};

// Family -----------------------------------------------------------------------

const LayoutDTypes kFormats[] = {{v1::LAYOUT_MASK, {v1::DTYPE_BOOL}},
                                 {v1::LAYOUT_BIAS, FloatDTypes()}};

// A table's bytes are those of any of the biases too.
std::string NumericsVersion() {
  std::string version = "mask-1";
  for (const Family* family : AllFamilies()) {
    if (HasBias(*family)) absl::StrAppend(&version, "+", family->numerics_version());
  }
  return version;
}

class MaskFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "mask"; }
  absl::string_view numerics_version() const override {
    static const std::string version = NumericsVersion();
    return version;
  }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override { return LayoutsOf(kFormats); }
  std::vector<v1::DType> dtypes() const override { return DTypesOf(kFormats); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeMask(spec->mutable_mask());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    const MaskSpec& mask = spec.proto().mask();
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, kFormats, &shape.format));
    ASSIGN_OR_RETURN(Grid grid, ResolveTokens(InputsOf(mask.rule()), selection));
    shape.selection = std::move(grid.selection);
    shape.coordinates_key = std::move(grid.coordinates_key);
    const v1::DType dtype = shape.format.dtype();
    Tensor tensor{.name = "attention_mask",
                  .dtype = dtype,
                  .shape = {grid.query_length, grid.key_length},
                  .unit = 1};
    if (shape.format.layout() == v1::LAYOUT_BIAS) {
      tensor.name = "attention_bias";
      if (mask.has_bias()) {
        ASSIGN_OR_RETURN(const TableShape bias,
                         ResolveBias(BiasOf(mask), GridOf(shape.selection), dtype));
        tensor = bias.tensors.front();
      }
    }
    shape.tensors.push_back(std::move(tensor));
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<MaskPlan>(spec.proto().mask());
  }
};

}  // namespace

const Family& MaskFamily() {
  static const MaskFamilyImpl family;
  return family;
}

}  // namespace posenc
