#include "lib/families/distance_bias.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"
#include "lib/families/toeplitz.h"

namespace posenc {
namespace {

class DistanceBiasPlan final : public Plan {
 public:
  explicit DistanceBiasPlan(std::unique_ptr<const DistanceFunction> function)
      : function_(std::move(function)) {}

  size_t bytes() const override { return function_->bytes(); }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::DType dtype = shape.tensors[tensor].dtype;
    const v1::AttentionGrid& grid = shape.selection.attention_grid();
    const auto fill = [&](int64_t head, int64_t first, std::span<std::byte> run) {
      FillRun(head, first, dtype, run);
    };
    if (shape.format.layout() == v1::LAYOUT_BIAS_VECTOR) {
      FillToeplitzVectors(grid, ElementBytes(dtype), begin, out, fill);
    } else {
      FillToeplitzMatrix(grid, ElementBytes(dtype), begin, out, fill);
    }
  }

  void Describe(v1::DescribeTableResponse*) const override {}

 private:
  // Relative positions first, first + 1, ... of one head.
  void FillRun(int64_t head, int64_t first, v1::DType dtype, std::span<std::byte> out) const {
    const int64_t width = ElementBytes(dtype);
    for (int64_t i = 0; i * width < static_cast<int64_t>(out.size()); ++i) {
      const int64_t distance = -(first + i);
      std::byte* element = out.data() + i * width;
      if (distance < 0) {
        StoreElement(0.0f, dtype, element);
      } else {
        StoreNear(
            function_->Near(head, distance), dtype,
            [&] { return function_->Exact(head, distance); }, element);
      }
    }
  }

  std::unique_ptr<const DistanceFunction> function_;
};

}  // namespace

absl::StatusOr<TableShape> ResolveDistanceBias(std::string matrix_name, int64_t num_heads,
                                               const v1::Selection& selection,
                                               v1::TensorFormat format) {
  TableShape shape;
  ASSIGN_OR_RETURN(Grid grid, ResolveGrid(selection));
  Tensor tensor{.name = std::move(matrix_name),
                .dtype = format.dtype(),
                .shape = {num_heads, grid.query_length, grid.key_length},
                .unit = 1};
  if (format.layout() == v1::LAYOUT_BIAS_VECTOR) {
    tensor.name = absl::StrCat(tensor.name, "_vector");
    tensor.shape = {num_heads, grid.vector_length()};
  }
  shape.tensors.push_back(std::move(tensor));
  shape.format = std::move(format);
  shape.selection = std::move(grid.selection);
  shape.coordinates_key = std::move(grid.coordinates_key);
  return shape;
}

std::shared_ptr<const Plan> MakeDistanceBiasPlan(std::unique_ptr<const DistanceFunction> function) {
  return std::make_shared<DistanceBiasPlan>(std::move(function));
}

}  // namespace posenc
