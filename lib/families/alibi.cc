// ALiBi: a bias on attention scores that falls linearly with distance.
//
// bias(h, query, key) = slope(h) * distance, where relative_position = key - query
// and the distance of the form is
//   RELATIVE_CAUSAL  min(relative_position, 0): keys after the query get 0, and
//                    masking them is the caller's
//   SYMMETRIC        -|relative_position|
//
//   BIAS         attention_bias [H, Q, K]
//   BIAS_VECTOR  attention_bias_vector [H, Q+K-1]; entry v belongs to relative
//                position -(query_offset + Q - 1) + v
//   SLOPES       alibi_slopes [H]
//
// Slope and distance are float32 and so is their product, which is then rounded
// once to the dtype: small near the diagonal, where 16-bit values keep their digits.
// Press et al., arXiv:2108.12409. Slopes: alibi_slopes.h.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/families/alibi_slopes.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"
#include "lib/families/toeplitz.h"

namespace posenc {
namespace {

constexpr int64_t kMaxNumHeads = 65536;

absl::Status CanonicalizeAlibi(v1::AlibiSpec* alibi) {
  if (!alibi->has_num_heads()) return FieldError("alibi.num_heads", "is required");
  RETURN_IF_ERROR(CheckInRange("alibi.num_heads", alibi->num_heads(), 1, kMaxNumHeads));
  if (!alibi->has_alibi_bias_max()) alibi->set_alibi_bias_max(8.0);
  RETURN_IF_ERROR(CheckPositive("alibi.alibi_bias_max", alibi->alibi_bias_max(), kMaxAlibiBiasMax));
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

// The factor of a slope. Integers, so that no zero is negative.
template <typename Int>
Int Distance(v1::AlibiForm form, Int relative_position) {
  return form == v1::ALIBI_FORM_SYMMETRIC ? -std::abs(relative_position)
                                          : std::min<Int>(relative_position, 0);
}

class AlibiPlan final : public Plan {
 public:
  explicit AlibiPlan(const v1::AlibiSpec& alibi)
      : form_(alibi.form()), slopes_(AlibiSlopes(alibi)) {}

  size_t bytes() const override { return slopes_.capacity() * sizeof(float); }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::DType dtype = shape.tensors[tensor].dtype;
    const v1::AttentionGrid& grid = shape.selection.attention_grid();
    const int64_t element_bytes = ElementBytes(dtype);
    const auto fill = [this, dtype](int64_t head, int64_t first, std::span<std::byte> run) {
      FillRun(slopes_[static_cast<size_t>(head)], first, dtype, run);
    };
    if (shape.format.layout() == v1::LAYOUT_SLOPES) {
      const size_t count = out.size() / static_cast<size_t>(element_bytes);
      StoreFloats(std::span(slopes_).subspan(static_cast<size_t>(begin), count), dtype, out);
    } else if (shape.format.layout() == v1::LAYOUT_BIAS) {
      FillToeplitzMatrix(grid, element_bytes, begin, out, fill);
    } else {
      FillToeplitzVectors(grid, element_bytes, begin, out, fill);
    }
  }

  void Describe(v1::DescribeTableResponse* response) const override {
    response->mutable_slopes()->Add(slopes_.begin(), slopes_.end());
  }

 private:
  // The biases at consecutive relative positions from `first` on.
  void FillRun(float slope, int64_t first, v1::DType dtype, std::span<std::byte> out) const {
    StoreBlocks(dtype, out, [&](int64_t index, std::span<float> block) {
      const int64_t position = first + index;
      const int64_t last = position + static_cast<int64_t>(block.size()) - 1;
      if (position > INT32_MIN && last <= INT32_MAX) {
        FillBlock(slope, static_cast<int32_t>(position), block);  // in vector registers
      } else {
        FillBlock(slope, position, block);
      }
    });
  }

  template <typename Int>
  void FillBlock(float slope, Int position, std::span<float> block) const {
    for (size_t i = 0; i < block.size(); ++i) {
      block[i] = slope * static_cast<float>(Distance<Int>(form_, position + static_cast<Int>(i)));
    }
  }

  v1::AlibiForm form_;
  std::vector<float> slopes_;  // [num_heads]
};

class AlibiFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "alibi"; }
  absl::string_view numerics_version() const override { return "alibi-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override {
    return {v1::LAYOUT_BIAS, v1::LAYOUT_BIAS_VECTOR, v1::LAYOUT_SLOPES};
  }
  std::vector<v1::DType> dtypes() const override {
    return {v1::DTYPE_F32, v1::DTYPE_F64, v1::DTYPE_F16, v1::DTYPE_BF16};
  }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeAlibi(spec->mutable_alibi());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    const int64_t num_heads = spec.proto().alibi().num_heads();
    const v1::DType dtype = shape.format.dtype();
    if (shape.format.layout() == v1::LAYOUT_SLOPES) {
      // Slopes have no coordinates: a grid is checked, then left out.
      if (selection.coordinates_case() != v1::Selection::COORDINATES_NOT_SET) {
        RETURN_IF_ERROR(ResolveGrid(selection).status());
      }
      shape.tensors = {{.name = "alibi_slopes", .dtype = dtype, .shape = {num_heads}, .unit = 1}};
      return shape;
    }
    ASSIGN_OR_RETURN(Grid grid, ResolveGrid(selection));
    if (shape.format.layout() == v1::LAYOUT_BIAS) {
      shape.tensors = {{.name = "attention_bias",
                        .dtype = dtype,
                        .shape = {num_heads, grid.query_length, grid.key_length},
                        .unit = 1}};
    } else {
      shape.tensors = {{.name = "attention_bias_vector",
                        .dtype = dtype,
                        .shape = {num_heads, grid.vector_length()},
                        .unit = 1}};
    }
    shape.selection = std::move(grid.selection);
    shape.coordinates_key = std::move(grid.coordinates_key);
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
