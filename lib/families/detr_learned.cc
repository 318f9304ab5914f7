// DETR's learned variant: a row of a table for each row of pixels, and one for
// each column, side by side. Unlike the sines, the columns (x) come first.
//
//   CHANNELS_FIRST  positional_encoding [2·num_position_features, H, W]
//   TABLE           positional_encoding [H·W, 2·num_position_features]
// The tables are in the spec. Reference: other-encodings 1.9.
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/grid_selection.h"
#include "lib/families/image_layouts.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"

namespace posenc {
namespace {

using Table = google::protobuf::RepeatedField<float>;

absl::Status CheckTable(absl::string_view field, const Table& table, int64_t features) {
  if (table.empty()) return FieldError(field, "is required");
  if (table.size() % features != 0) {
    return FieldError(field, absl::StrCat("must be a multiple of num_position_features (", features,
                                          ") in number, got ", table.size()));
  }
  for (int i = 0; i < table.size(); ++i) {
    if (!std::isfinite(table[i])) {
      return FieldError(absl::StrCat(field, "[", i, "]"),
                        absl::StrCat("must be finite, got ", table[i]));
    }
  }
  return absl::OkStatus();
}

absl::Status CanonicalizeLearned(const v1::DetrLearnedSpec& spec) {
  if (!spec.has_num_position_features()) {
    return FieldError("detr_learned.num_position_features", "is required");
  }
  RETURN_IF_ERROR(
      CheckInRange("detr_learned.num_position_features", spec.num_position_features(), 1, 32768));
  RETURN_IF_ERROR(CheckTable("detr_learned.row_embeddings", spec.row_embeddings(),
                             spec.num_position_features()));
  return CheckTable("detr_learned.column_embeddings", spec.column_embeddings(),
                    spec.num_position_features());
}

// A learned table ends: there is no position past its last row.
absl::Status CheckFits(absl::string_view side, absl::string_view table_name, int64_t length,
                       const Table& table, int64_t features) {
  const int64_t rows = table.size() / features;
  if (length <= rows) return absl::OkStatus();
  return FieldError(
      absl::StrCat("selection.patch_grid.", side),
      absl::StrCat("must be at most the rows of ", table_name, " (", rows, "), got ", length));
}

class LearnedPlan final : public Plan {
 public:
  explicit LearnedPlan(const v1::DetrLearnedSpec& spec) : spec_(spec) {}

  size_t bytes() const override { return sizeof(*this) + spec_.SpaceUsedLong(); }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const PatchGrid grid = PatchGridOf(shape.selection);
    const v1::DType dtype = shape.tensors[tensor].dtype;
    if (shape.format.layout() == v1::LAYOUT_CHANNELS_FIRST) {
      return FillChannelsFirst(grid.tokens(), dtype, begin, out,
                               [&](int64_t channel, int64_t pixel, std::byte* where) {
                                 StoreElement(Value(grid, channel, pixel), dtype, where);
                               });
    }
    const auto element = static_cast<size_t>(ElementBytes(dtype));
    FillPixelRows(2 * spec_.num_position_features(), dtype, begin, out,
                  [&](int64_t pixel, std::span<std::byte> row) {
                    for (size_t c = 0; c * element < row.size(); ++c) {
                      StoreElement(Value(grid, static_cast<int64_t>(c), pixel), dtype,
                                   row.data() + c * element);
                    }
                  });
  }

  void Describe(v1::DescribeTableResponse*) const override {}

 private:
  float Value(const PatchGrid& grid, int64_t channel, int64_t pixel) const {
    const int64_t n = spec_.num_position_features();
    return channel < n
               ? spec_.column_embeddings(static_cast<int>(pixel % grid.width * n + channel))
               : spec_.row_embeddings(static_cast<int>(pixel / grid.width * n + channel - n));
  }

  const v1::DetrLearnedSpec spec_;
};

class DetrLearnedFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "detr_learned"; }
  absl::string_view numerics_version() const override { return "detr_learned-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override { return ImageLayouts(); }
  std::vector<v1::DType> dtypes() const override { return FloatDTypes(); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeLearned(*spec->mutable_detr_learned());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& canonical, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    const v1::DetrLearnedSpec& spec = canonical.proto().detr_learned();
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    ASSIGN_OR_RETURN(ResolvedGrid resolved, ResolvePatchGrid(selection));
    const PatchGrid& grid = resolved.grid;
    RETURN_IF_ERROR(CheckOneFrame(grid));
    RETURN_IF_ERROR(CheckFits("height", "row_embeddings", grid.height, spec.row_embeddings(),
                              spec.num_position_features()));
    RETURN_IF_ERROR(CheckFits("width", "column_embeddings", grid.width, spec.column_embeddings(),
                              spec.num_position_features()));
    shape.selection = std::move(resolved.selection);
    shape.coordinates_key = std::move(resolved.coordinates_key);
    shape.tensors = {
        ImageTensor(shape.format, 2 * spec.num_position_features(), grid.height, grid.width)};
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<LearnedPlan>(spec.proto().detr_learned());
  }
};

}  // namespace

const Family& DetrLearnedFamily() {
  static const DetrLearnedFamilyImpl family;
  return family;
}

}  // namespace posenc
