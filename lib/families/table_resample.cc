// A learned position table at another resolution, as models resize it when they are
// given larger or smaller images.
//
//   TABLE  positional_encoding [R, d_model]: prefix rows, height x width patch rows,
//          suffix rows, and copies of the first patch row up to pad_to_rows
//
// Rows are resampled in double from the request's float32 table and rounded once; the
// references sum in float32, in an order of their own, and differ by some 1e-6. Bias tables
// of geometric spacing are geometric_stretch.h's.
// Whose rule is which: learned.proto. reference/other-encodings.md, sections 4.5, 5.2, 5.3.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/families/add_scaled.h"
#include "lib/families/families.h"
#include "lib/families/float_table.h"
#include "lib/families/geometric_spacing.h"
#include "lib/families/geometric_stretch.h"
#include "lib/families/grid_selection.h"
#include "lib/families/image_layouts.h"
#include "lib/families/resample_taps.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"
#include "lib/families/table_resample_spec.h"

namespace posenc {
namespace {

using v1::TableResampleSpec;

// Values -----------------------------------------------------------------------

class TableResamplePlan final : public Plan {
 public:
  explicit TableResamplePlan(const TableResampleSpec& spec)
      : spec_(WithoutTable(spec)),
        d_model_(spec.table().shape(1)),
        table_(FloatsOf(spec.table())) {}

  size_t bytes() const override { return table_.capacity() * sizeof(float); }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::DType dtype = shape.tensors[tensor].dtype;
    const PatchGrid grid = PatchGridOf(shape.selection);
    const auto row_bytes = static_cast<size_t>(d_model_ * ElementBytes(dtype));
    Scratch scratch;
    if (IsGeometric(spec_) && !IsOwnGrid(grid)) {
      scratch.stretch.emplace(PatchRows(), OwnGrid(), grid, spec_.kernel());
    }
    for (int64_t row = begin / d_model_; !out.empty(); ++row) {
      FillRow(grid, row, &scratch);
      StoreDoubles(scratch.row, dtype, out.first(row_bytes));
      out = out.subspan(row_bytes);
    }
  }

  void Describe(v1::DescribeTableResponse*) const override {}

 private:
  struct Scratch {
    std::vector<Tap> y_taps;
    std::vector<Tap> x_taps;
    std::vector<double> line;  // [d_model]: one source line at the output's x
    std::vector<double> row;   // [d_model]
    std::optional<GeometricStretch> stretch;
  };

  // The plan keeps the numbers themselves.
  static TableResampleSpec WithoutTable(TableResampleSpec spec) {
    spec.clear_table();
    return spec;
  }

  void FillRow(const PatchGrid& grid, int64_t row, Scratch* scratch) const {
    const int64_t patches = grid.tokens();
    if (row < spec_.prefix_rows()) return CopyRow(row, scratch);
    const int64_t patch = row - spec_.prefix_rows();
    if (patch < patches) return ResampleRow(grid, patch, scratch);
    if (const int64_t suffix = patch - patches; suffix < spec_.suffix_rows()) {
      return CopyRow(spec_.prefix_rows() + OwnGrid().tokens() + suffix, scratch);
    }
    ResampleRow(grid, /*patch=*/0, scratch);  // padding
  }

  void CopyRow(int64_t row, Scratch* scratch) const {
    const auto first = table_.begin() + row * d_model_;
    scratch->row.assign(first, first + d_model_);
  }

  void ResampleRow(const PatchGrid& grid, int64_t patch, Scratch* scratch) const {
    if (!IsGeometric(spec_)) return SumTaps(grid, patch, scratch);
    if (!scratch->stretch.has_value()) return CopyRow(spec_.prefix_rows() + patch, scratch);
    scratch->row.resize(static_cast<size_t>(d_model_));
    scratch->stretch->FillPatch(patch, scratch->row);
  }

  // Along x within the lines that y takes, then along y.
  void SumTaps(const PatchGrid& grid, int64_t patch, Scratch* scratch) const {
    TapsOf(Axis(spec_.grid_height(), grid.height), patch / grid.width, &scratch->y_taps);
    TapsOf(Axis(spec_.grid_width(), grid.width), patch % grid.width, &scratch->x_taps);
    scratch->row.assign(static_cast<size_t>(d_model_), 0.0);
    for (const Tap& y : scratch->y_taps) {
      if (y.weight == 0) continue;  // so an unchanged resolution is unchanged bits
      scratch->line.assign(static_cast<size_t>(d_model_), 0.0);
      for (const Tap& x : scratch->x_taps) {
        if (x.weight == 0) continue;
        AddScaled(x.weight, SourceRow(y.index, x.index), std::span(scratch->line));
      }
      AddScaled(y.weight, std::span<const double>(scratch->line), std::span(scratch->row));
    }
  }

  PatchGrid OwnGrid() const { return {.height = spec_.grid_height(), .width = spec_.grid_width()}; }

  bool IsOwnGrid(const PatchGrid& grid) const {
    return grid.height == spec_.grid_height() && grid.width == spec_.grid_width();
  }

  std::span<const float> PatchRows() const {
    return std::span(table_).subspan(static_cast<size_t>(spec_.prefix_rows() * d_model_),
                                     static_cast<size_t>(OwnGrid().tokens() * d_model_));
  }

  std::span<const float> SourceRow(int64_t y, int64_t x) const {
    return PatchRows().subspan(static_cast<size_t>((y * spec_.grid_width() + x) * d_model_),
                               static_cast<size_t>(d_model_));
  }

  ResampleAxis Axis(int64_t size, int64_t new_size) const {
    return {.size = size,
            .new_size = new_size,
            .kernel = spec_.kernel(),
            .antialias = spec_.antialias(),
            .align_corners = spec_.align_corners(),
            .scale_offset = spec_.scale_offset()};
  }

  const TableResampleSpec spec_;
  int64_t d_model_;
  std::vector<float> table_;  // [rows, d_model]
};

class TableResampleFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "table_resample"; }
  absl::string_view numerics_version() const override { return "table_resample-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override { return {v1::LAYOUT_TABLE}; }
  std::vector<v1::DType> dtypes() const override { return FloatDTypes(); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeTableResample(spec->mutable_table_resample());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    const TableResampleSpec& resample = spec.proto().table_resample();
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    ASSIGN_OR_RETURN(ResolvedGrid grid, ResolvePatchGrid(selection));
    RETURN_IF_ERROR(CheckOneFrame(grid.grid));
    if (grid.grid.tokens() == 0) {
      return FieldError("selection.patch_grid", "must have at least one patch");
    }
    if (IsGeometric(resample)) {
      RETURN_IF_ERROR(CheckOffsets("selection.patch_grid.height", grid.grid.height, 1));
      RETURN_IF_ERROR(CheckOffsets("selection.patch_grid.width", grid.grid.width, 1));
    }
    const int64_t rows =
        std::max(resample.prefix_rows() + grid.grid.tokens() + resample.suffix_rows(),
                 resample.pad_to_rows());
    shape.tensors = {RowsTensor(shape.format, rows, resample.table().shape(1))};
    shape.selection = std::move(grid.selection);
    shape.coordinates_key = std::move(grid.coordinates_key);
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<TableResamplePlan>(spec.proto().table_resample());
  }
};

}  // namespace

const Family& TableResampleFamily() {
  static const TableResampleFamilyImpl family;
  return family;
}

}  // namespace posenc
