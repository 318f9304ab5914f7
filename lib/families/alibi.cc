// ALiBi: a bias on attention scores that falls linearly with distance.
//
// bias(h, query, key) = slope(h) * distance, where relative_position = key - query
// and the distance is that of the form (AlibiForm in bias.proto):
//
//   RELATIVE_CAUSAL  min(relative_position, 0)     KEY_POSITION  key
//   SYMMETRIC        -|relative_position|          LAST_ROW      key - (K - 1)
//   SQRT             -sqrt(-relative_position)     KEY_MASK      rank of an attended key
//   MANHATTAN, EUCLIDEAN  of two patches
//
//   BIAS         attention_bias [H, Q, K]
//   BIAS_VECTOR  attention_bias_vector [H, Q+K-1]; entry v belongs to relative
//                position -(query_offset + Q - 1) + v
//   SLOPES       alibi_slopes [H]
//
// Slope and distance are float32 and so is their product, which is then rounded
// once to the dtype: small near the diagonal, where 16-bit values keep their digits.
// Press et al., arXiv:2108.12409; reference/other-encodings.md, section 2. Slopes:
// alibi_slopes.h. Values: alibi_plan.h.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/alibi_plan.h"
#include "lib/families/alibi_slopes.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/grid_selection.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"

namespace posenc {
namespace {

constexpr int64_t kMaxNumHeads = 65536;
constexpr int64_t kMaxHeadDim = 65536;

absl::Status CanonicalizeEnums(v1::AlibiSpec* alibi) {
  RETURN_IF_ERROR(CheckEnum("alibi.slope_rounding",
                            v1::SlopeRounding_IsValid(alibi->slope_rounding()),
                            alibi->slope_rounding()));
  if (alibi->slope_rounding() == v1::SLOPE_ROUNDING_UNSPECIFIED) {
    alibi->set_slope_rounding(v1::SLOPE_ROUNDING_PRESS);
  }
  RETURN_IF_ERROR(CheckEnum("alibi.form", v1::AlibiForm_IsValid(alibi->form()), alibi->form()));
  if (alibi->form() == v1::ALIBI_FORM_UNSPECIFIED) {
    alibi->set_form(v1::ALIBI_FORM_RELATIVE_CAUSAL);
  }
  return absl::OkStatus();
}

absl::Status CanonicalizeBiasMax(v1::AlibiSpec* alibi) {
  if (!alibi->has_alibi_bias_max()) alibi->set_alibi_bias_max(8.0);
  // llama.cpp's way to ask for distances that something else scales.
  const bool slopes_of_one =
      alibi->slope_rounding() == v1::SLOPE_ROUNDING_GGML && alibi->alibi_bias_max() == 0;
  if (slopes_of_one) return absl::OkStatus();
  return CheckPositive("alibi.alibi_bias_max", alibi->alibi_bias_max(), kMaxAlibiBiasMax);
}

// What says no more than its default is left out, so that specs from before these
// fields keep their table ids.
absl::Status CanonicalizeHeads(v1::AlibiSpec* alibi) {
  if (!alibi->has_num_heads()) return FieldError("alibi.num_heads", "is required");
  RETURN_IF_ERROR(CheckInRange("alibi.num_heads", alibi->num_heads(), 1, kMaxNumHeads));
  const int64_t total = AlibiTotalHeads(*alibi);
  RETURN_IF_ERROR(CheckInRange("alibi.total_heads", total, alibi->num_heads(), kMaxNumHeads));
  if (total == alibi->num_heads()) alibi->clear_total_heads();

  const int64_t size = AlibiTensorParallelSize(*alibi);
  RETURN_IF_ERROR(CheckInRange("alibi.tensor_parallel_size", size, 1, total));
  if (total % size != 0) {
    return FieldError("alibi.tensor_parallel_size",
                      absl::StrCat("must divide the ", total, " heads, got ", size));
  }
  RETURN_IF_ERROR(
      CheckInRange("alibi.tensor_parallel_rank", alibi->tensor_parallel_rank(), 0, size - 1));
  if (size == 1) {
    alibi->clear_tensor_parallel_size();
    alibi->clear_tensor_parallel_rank();
  } else {
    alibi->set_tensor_parallel_rank(alibi->tensor_parallel_rank());
  }
  return absl::OkStatus();
}

absl::Status CanonicalizeScales(v1::AlibiSpec* alibi) {
  if (alibi->has_scale_head_dim()) {
    RETURN_IF_ERROR(CheckInRange("alibi.scale_head_dim", alibi->scale_head_dim(), 1, kMaxHeadDim));
    if (alibi->scale_head_dim() == 1) alibi->clear_scale_head_dim();
  }
  if (alibi->has_seq_len_interpolation_factor()) {
    RETURN_IF_ERROR(CheckCoordinateScale("alibi.seq_len_interpolation_factor",
                                         alibi->seq_len_interpolation_factor()));
    if (alibi->seq_len_interpolation_factor() == 1) alibi->clear_seq_len_interpolation_factor();
  }
  if (alibi->has_seq_len_interpolation_factor() &&
      alibi->slope_rounding() == v1::SLOPE_ROUNDING_FALCON_BF16) {
    return FieldError("alibi.seq_len_interpolation_factor",
                      "is float32: slopes of falcon_bf16 are bfloat16");
  }
  return absl::OkStatus();
}

absl::Status CanonicalizeAlibi(v1::AlibiSpec* alibi) {
  RETURN_IF_ERROR(CanonicalizeHeads(alibi));
  RETURN_IF_ERROR(CanonicalizeEnums(alibi));
  RETURN_IF_ERROR(CanonicalizeBiasMax(alibi));
  return CanonicalizeScales(alibi);
}

// What a form is a function of: its selection, and the dimensions after the heads.
struct Coordinates {
  v1::Selection selection;  // canonical
  std::string key;
  int64_t heads = 0;  // the first dimension of a bias
  int64_t queries = 0;
  int64_t keys = 0;
};

absl::StatusOr<Coordinates> ResolveCoordinates(const v1::AlibiSpec& alibi,
                                               const v1::Selection& selection) {
  const int64_t heads = AlibiHeads(alibi);
  switch (alibi.form()) {
    case v1::ALIBI_FORM_KEY_MASK: {
      ASSIGN_OR_RETURN(ResolvedMask mask, ResolveMask(selection));
      return Coordinates{std::move(mask.selection), std::move(mask.coordinates_key),
                         mask.height * heads, 1, mask.width};
    }
    case v1::ALIBI_FORM_MANHATTAN:
    case v1::ALIBI_FORM_EUCLIDEAN: {
      ASSIGN_OR_RETURN(ResolvedGrid grid, ResolvePatchGrid(selection));
      RETURN_IF_ERROR(CheckOneFrame(grid.grid));
      return Coordinates{std::move(grid.selection), std::move(grid.coordinates_key), heads,
                         grid.grid.tokens(), grid.grid.tokens()};
    }
    default: {
      ASSIGN_OR_RETURN(Grid grid, ResolveGrid(selection));
      return Coordinates{std::move(grid.selection), std::move(grid.coordinates_key), heads,
                         grid.query_length, grid.key_length};
    }
  }
}

class AlibiFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "alibi"; }
  absl::string_view numerics_version() const override { return "alibi-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override {
    return {v1::LAYOUT_BIAS, v1::LAYOUT_BIAS_VECTOR, v1::LAYOUT_SLOPES};
  }
  std::vector<v1::DType> dtypes() const override { return FloatDTypes(); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeAlibi(spec->mutable_alibi());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    const v1::AlibiSpec& alibi = spec.proto().alibi();
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    const v1::Layout layout = shape.format.layout();
    const v1::DType dtype = shape.format.dtype();
    if (layout == v1::LAYOUT_SLOPES) {
      // Slopes have no coordinates: a selection is checked, then left out.
      if (selection.coordinates_case() != v1::Selection::COORDINATES_NOT_SET) {
        RETURN_IF_ERROR(ResolveCoordinates(alibi, selection).status());
      }
      shape.tensors = {
          {.name = "alibi_slopes", .dtype = dtype, .shape = {AlibiHeads(alibi)}, .unit = 1}};
      return shape;
    }
    if (layout == v1::LAYOUT_BIAS_VECTOR && !IsRelative(alibi.form())) {
      return FieldError("format.layout",
                        "bias_vector is for relative_causal, symmetric and sqrt: the other forms "
                        "are no function of relative_position alone");
    }
    ASSIGN_OR_RETURN(Coordinates at, ResolveCoordinates(alibi, selection));
    shape.tensors = {{.name = "attention_bias", .dtype = dtype, .shape = {}, .unit = 1}};
    if (layout == v1::LAYOUT_BIAS) {
      shape.tensors[0].shape = {at.heads, at.queries, at.keys};
    } else {
      const bool empty = at.queries == 0 || at.keys == 0;
      shape.tensors[0].name = "attention_bias_vector";
      shape.tensors[0].shape = {at.heads, empty ? 0 : at.queries + at.keys - 1};
    }
    shape.selection = std::move(at.selection);
    shape.coordinates_key = std::move(at.key);
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<AlibiPlan>(spec.proto().alibi());
  }
};

}  // namespace

const Family& AlibiFamily() {
  static const AlibiFamilyImpl family;
  return family;
}

}  // namespace posenc
