// A learned position table at another resolution, as models resize it when they are
// given larger or smaller images.
//
//   TABLE  positional_encoding [R, d_model]: prefix rows, height x width patch rows,
//          suffix rows, and copies of the first patch row up to pad_to_rows
//
// Rows are resampled in double from the request's float32 table and rounded once; the
// references sum in float32, in an order of their own, and differ by some 1e-6.
// Whose rule is which: learned.proto. reference/other-encodings.md, sections 5.2, 5.3.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/float_table.h"
#include "lib/families/grid_selection.h"
#include "lib/families/image_layouts.h"
#include "lib/families/resample_taps.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"

namespace posenc {
namespace {

using v1::TableResampleSpec;

constexpr int64_t kMaxRows = int64_t{1} << 30;
constexpr double kMaxScaleOffset = 1;

// Canonicalize -----------------------------------------------------------------

// Both sides, one of them, or none: then the rows must make a square, since a grid of
// 16 x 32 has as many rows as no square has.
absl::Status CanonicalizeGrid(TableResampleSpec* spec) {
  const int64_t patches = spec->table().shape(0) - spec->prefix_rows() - spec->suffix_rows();
  if (patches < 1) {
    return FieldError(
        "table_resample.table.shape",
        absl::StrCat("must have more rows than prefix_rows and suffix_rows (",
                     spec->prefix_rows() + spec->suffix_rows(), "), got ", spec->table().shape(0)));
  }
  if (!spec->has_grid_height() && !spec->has_grid_width()) {
    auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(patches)));
    if (side * side != patches) {
      return FieldError("table_resample.grid_height",
                        absl::StrCat("is required: ", patches, " patch rows are no square"));
    }
    spec->set_grid_height(side);
    spec->set_grid_width(side);
  }
  if (!spec->has_grid_height() || !spec->has_grid_width()) {
    return FieldError(
        spec->has_grid_width() ? "table_resample.grid_height" : "table_resample.grid_width",
        "is required with the other side");
  }
  RETURN_IF_ERROR(CheckInRange("table_resample.grid_height", spec->grid_height(), 1, patches));
  RETURN_IF_ERROR(CheckInRange("table_resample.grid_width", spec->grid_width(), 1, patches));
  if (spec->grid_height() * spec->grid_width() != patches) {
    return FieldError("table_resample.grid_width",
                      absl::StrCat("grid_height * grid_width must be the ", patches,
                                   " patch rows of the table, got ", spec->grid_height(), " * ",
                                   spec->grid_width()));
  }
  return absl::OkStatus();
}

absl::Status CanonicalizeKernel(TableResampleSpec* spec) {
  RETURN_IF_ERROR(CheckEnum("table_resample.kernel", v1::ResampleKernel_IsValid(spec->kernel()),
                            spec->kernel()));
  if (spec->kernel() == v1::RESAMPLE_KERNEL_UNSPECIFIED) {
    spec->set_kernel(v1::RESAMPLE_KERNEL_BICUBIC);
  }
  if (spec->kernel() == v1::RESAMPLE_KERNEL_NEAREST) {
    return FieldError("table_resample.kernel", "must be bicubic or bilinear, got nearest");
  }
  if (!spec->has_antialias()) spec->set_antialias(false);
  if (!spec->has_align_corners()) spec->set_align_corners(false);
  if (!spec->has_scale_offset()) spec->set_scale_offset(0);
  if (!(spec->scale_offset() >= 0 && spec->scale_offset() <= kMaxScaleOffset)) {
    return FieldError("table_resample.scale_offset",
                      absl::StrCat("must be in [0, 1], got ", spec->scale_offset()));
  }
  if (spec->align_corners() && (spec->antialias() || spec->scale_offset() != 0)) {
    return FieldError("table_resample.align_corners",
                      "has no meaning with antialias or scale_offset");
  }
  return absl::OkStatus();
}

absl::Status CanonicalizeResample(TableResampleSpec* spec) {
  RETURN_IF_ERROR(CheckPresent("table_resample.table", spec->has_table()));
  RETURN_IF_ERROR(CanonicalizeFloatTable("table_resample.table", {kAnyLength, kAnyLength},
                                         spec->mutable_table()));
  if (!spec->has_prefix_rows()) spec->set_prefix_rows(0);
  if (!spec->has_suffix_rows()) spec->set_suffix_rows(0);
  if (!spec->has_pad_to_rows()) spec->set_pad_to_rows(0);
  RETURN_IF_ERROR(CheckInRange("table_resample.prefix_rows", spec->prefix_rows(), 0, kMaxRows));
  RETURN_IF_ERROR(CheckInRange("table_resample.suffix_rows", spec->suffix_rows(), 0, kMaxRows));
  RETURN_IF_ERROR(CheckInRange("table_resample.pad_to_rows", spec->pad_to_rows(), 0, kMaxRows));
  RETURN_IF_ERROR(CanonicalizeGrid(spec));
  return CanonicalizeKernel(spec);
}

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
      const int64_t source_patches = spec_.grid_height() * spec_.grid_width();
      return CopyRow(spec_.prefix_rows() + source_patches + suffix, scratch);
    }
    ResampleRow(grid, /*patch=*/0, scratch);  // padding
  }

  void CopyRow(int64_t row, Scratch* scratch) const {
    const auto first = table_.begin() + row * d_model_;
    scratch->row.assign(first, first + d_model_);
  }

  // Along x within the lines that y takes, then along y.
  void ResampleRow(const PatchGrid& grid, int64_t patch, Scratch* scratch) const {
    TapsOf(Axis(spec_.grid_height(), grid.height), patch / grid.width, &scratch->y_taps);
    TapsOf(Axis(spec_.grid_width(), grid.width), patch % grid.width, &scratch->x_taps);
    scratch->row.assign(static_cast<size_t>(d_model_), 0.0);
    for (const Tap& y : scratch->y_taps) {
      if (y.weight == 0) continue;  // so an unchanged resolution is unchanged bits
      scratch->line.assign(static_cast<size_t>(d_model_), 0.0);
      for (const Tap& x : scratch->x_taps) {
        if (x.weight == 0) continue;
        AddScaled(x.weight, SourceRow(y.index, x.index), scratch->line);
      }
      for (size_t i = 0; i < scratch->row.size(); ++i) {
        scratch->row[i] += y.weight * scratch->line[i];
      }
    }
  }

  static void AddScaled(double weight, const float* source, std::vector<double>& line) {
    for (size_t i = 0; i < line.size(); ++i) line[i] += weight * static_cast<double>(source[i]);
  }

  const float* SourceRow(int64_t y, int64_t x) const {
    return table_.data() + (spec_.prefix_rows() + y * spec_.grid_width() + x) * d_model_;
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
    return CanonicalizeResample(spec->mutable_table_resample());
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
