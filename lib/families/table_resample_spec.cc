#include "lib/families/table_resample_spec.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/float_table.h"
#include "lib/families/geometric_spacing.h"
#include "lib/families/geometric_stretch.h"

namespace posenc {
namespace {

using v1::TableResampleSpec;

constexpr int64_t kMaxRows = int64_t{1} << 30;
constexpr double kMaxScaleOffset = 1;

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

bool IsAllowed(v1::ResampleKernel kernel, bool geometric) {
  return kernel == v1::RESAMPLE_KERNEL_BILINEAR ||
         kernel == (geometric ? v1::RESAMPLE_KERNEL_CUBIC_SPLINE : v1::RESAMPLE_KERNEL_BICUBIC);
}

absl::Status CanonicalizeKernel(TableResampleSpec* spec) {
  constexpr absl::string_view kField = "table_resample.kernel";
  RETURN_IF_ERROR(CheckEnum(kField, v1::ResampleKernel_IsValid(spec->kernel()), spec->kernel()));
  const bool geometric = IsGeometric(*spec);
  if (spec->kernel() == v1::RESAMPLE_KERNEL_UNSPECIFIED) {
    spec->set_kernel(geometric ? v1::RESAMPLE_KERNEL_CUBIC_SPLINE : v1::RESAMPLE_KERNEL_BICUBIC);
  }
  if (!IsAllowed(spec->kernel(), geometric)) {
    return FieldError(
        kField, absl::StrCat("must be ",
                             geometric ? "cubic_spline or bilinear with geometric"
                                       : "bicubic or bilinear with uniform",
                             " spacing, got ",
                             absl::AsciiStrToLower(absl::StripPrefix(
                                 v1::ResampleKernel_Name(spec->kernel()), "RESAMPLE_KERNEL_"))));
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

// What a table of geometric spacing cannot have besides. UNIFORM stays out of the
// canonical form: it came later, and the ids of tables stay.
absl::Status CanonicalizeSpacing(TableResampleSpec* spec) {
  constexpr absl::string_view kField = "table_resample.source_spacing";
  RETURN_IF_ERROR(CheckEnum(kField, v1::ResampleSpacing_IsValid(spec->source_spacing()),
                            spec->source_spacing()));
  if (!IsGeometric(*spec)) {
    spec->clear_source_spacing();
    return absl::OkStatus();
  }
  if (spec->antialias() || spec->align_corners() || spec->scale_offset() != 0) {
    return FieldError(kField, "geometric has no antialias, align_corners or scale_offset");
  }
  const int64_t min = MinOffsets(spec->kernel());
  RETURN_IF_ERROR(CheckOffsets("table_resample.grid_height", spec->grid_height(), min));
  return CheckOffsets("table_resample.grid_width", spec->grid_width(), min);
}

}  // namespace

absl::Status CanonicalizeTableResample(TableResampleSpec* spec) {
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
  RETURN_IF_ERROR(CanonicalizeKernel(spec));
  return CanonicalizeSpacing(spec);
}

}  // namespace posenc
