// Rows of a square table that the patches of an image use, whatever its shape.
//
//   POSITION_IDS        position_ids [N], i32: the nearest row, by integers
//   INTERPOLATION_TAPS  interpolation_indices [N, taps], i32, and interpolation_weights
//                       [N, taps]: rows to sum with these weights, y outer, x inner
//
// The nearest row of patch y is floor(y * side / height); models that make the fraction
// y / height in 16 bits put 6 of 27 patches into another row, which pixel_dtype does too.
// reference/other-encodings.md, section 5.3.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/grid_selection.h"
#include "lib/families/layout_dtypes.h"
#include "lib/families/resample_taps.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"
#include "lib/families/token_order.h"
#include "lib/numeric/dtype.h"

namespace posenc {
namespace {

using v1::PatchPositionsSpec;

constexpr int64_t kMaxSide = 4096;  // row numbers fit an int32

// Canonicalize -----------------------------------------------------------------

bool IsNearest(const PatchPositionsSpec& spec) {
  return spec.kernel() == v1::RESAMPLE_KERNEL_NEAREST;
}

absl::Status CanonicalizePatchPositions(PatchPositionsSpec* spec) {
  RETURN_IF_ERROR(CheckPresent("patch_positions.patches_per_side", spec->has_patches_per_side()));
  RETURN_IF_ERROR(
      CheckInRange("patch_positions.patches_per_side", spec->patches_per_side(), 1, kMaxSide));
  RETURN_IF_ERROR(CheckEnum("patch_positions.kernel", v1::ResampleKernel_IsValid(spec->kernel()),
                            spec->kernel()));
  if (spec->kernel() == v1::RESAMPLE_KERNEL_UNSPECIFIED) {
    spec->set_kernel(v1::RESAMPLE_KERNEL_NEAREST);
  }
  if (spec->kernel() == v1::RESAMPLE_KERNEL_CUBIC_SPLINE) {
    return FieldError("patch_positions.kernel",
                      "must be nearest, bilinear or bicubic, got cubic_spline");
  }
  if (!spec->has_align_corners()) {
    spec->set_align_corners(spec->kernel() == v1::RESAMPLE_KERNEL_BILINEAR);
  }
  if (IsNearest(*spec) && spec->align_corners()) {
    return FieldError("patch_positions.align_corners", "the nearest row has none");
  }
  if (!spec->has_spatial_merge_size()) spec->set_spatial_merge_size(1);
  RETURN_IF_ERROR(CheckInRange("patch_positions.spatial_merge_size", spec->spatial_merge_size(), 1,
                               kMaxGridSide));
  RETURN_IF_ERROR(CheckEnum("patch_positions.pixel_dtype",
                            v1::PixelDType_IsValid(spec->pixel_dtype()), spec->pixel_dtype()));
  if (spec->pixel_dtype() == v1::PIXEL_DTYPE_UNSPECIFIED) {
    spec->set_pixel_dtype(v1::PIXEL_DTYPE_NONE);
  }
  if (!IsNearest(*spec) && spec->pixel_dtype() != v1::PIXEL_DTYPE_NONE) {
    return FieldError("patch_positions.pixel_dtype", "only the nearest row has one");
  }
  return absl::OkStatus();
}

TokenOrder OrderOf(const PatchPositionsSpec& spec) {
  if (spec.spatial_merge_size() == 1) return {};
  return {.order = v1::GRID_TOKEN_ORDER_MERGE_BLOCKS, .merge_size = spec.spatial_merge_size()};
}

// Values -----------------------------------------------------------------------

float RoundToPixels(v1::PixelDType dtype, float value) {
  return dtype == v1::PIXEL_DTYPE_BF16 ? Bf16ToFloat(RoundToBf16(value))
                                       : F16ToFloat(RoundToF16(value));
}

// How many of the boundaries 1/side, 2/side, ... are at most patch / size, where that
// is made in 16 bits (and kept below 1 in them, which leaves it 1).
int64_t NearestInPixels(v1::PixelDType dtype, int64_t side, int64_t patch, int64_t size) {
  const float fraction = RoundToPixels(dtype, RoundToPixels(dtype, static_cast<float>(patch)) /
                                                  RoundToPixels(dtype, static_cast<float>(size)));
  int64_t row = std::min(patch * side / size, side - 1);
  const auto boundary = [side](int64_t k) {
    return static_cast<float>(static_cast<double>(k) / static_cast<double>(side));
  };
  while (row + 1 < side && boundary(row + 1) <= fraction) ++row;
  while (row > 0 && boundary(row) > fraction) --row;
  return row;
}

class PatchPositionsPlan final : public Plan {
 public:
  explicit PatchPositionsPlan(PatchPositionsSpec spec) : spec_(std::move(spec)) {}

  size_t bytes() const override { return sizeof(*this); }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const PatchGrid grid = PatchGridOf(shape.selection);
    if (IsNearest(spec_)) return FillNearest(grid, begin, out);
    const Tensor& filled = shape.tensors[tensor];
    const auto row_bytes = static_cast<size_t>(filled.unit * ElementBytes(filled.dtype));
    std::vector<Tap> taps;
    for (int64_t token = begin / filled.unit; !out.empty(); ++token) {
      TapsOfToken(grid, token, &taps);
      StoreTaps(taps, filled.dtype, out.first(row_bytes));
      out = out.subspan(row_bytes);
    }
  }

  void Describe(v1::DescribeTableResponse*) const override {}

 private:
  void FillNearest(const PatchGrid& grid, int64_t begin, std::span<std::byte> out) const {
    for (size_t i = 0; i < out.size() / sizeof(int32_t); ++i) {
      const GridPoint patch = OrderOf(spec_).At(grid, begin + static_cast<int64_t>(i));
      const auto id = static_cast<int32_t>(
          Nearest(patch.y, grid.height) * spec_.patches_per_side() + Nearest(patch.x, grid.width));
      std::memcpy(out.data() + i * sizeof(id), &id, sizeof(id));
    }
  }

  int64_t Nearest(int64_t patch, int64_t size) const {
    const int64_t side = spec_.patches_per_side();
    return spec_.pixel_dtype() == v1::PIXEL_DTYPE_NONE
               ? patch * side / size
               : NearestInPixels(spec_.pixel_dtype(), side, patch, size);
  }

  // The row's number and the product of the weights, for all pairs of y and x.
  void TapsOfToken(const PatchGrid& grid, int64_t token, std::vector<Tap>* taps) const {
    const GridPoint patch = OrderOf(spec_).At(grid, token);
    std::vector<Tap> y_taps;
    std::vector<Tap> x_taps;
    TapsOf(Axis(grid.height), patch.y, &y_taps);
    TapsOf(Axis(grid.width), patch.x, &x_taps);
    taps->clear();
    for (const Tap& y : y_taps) {
      for (const Tap& x : x_taps) {
        taps->push_back({y.index * spec_.patches_per_side() + x.index, y.weight * x.weight});
      }
    }
  }

  ResampleAxis Axis(int64_t new_size) const {
    return {.size = spec_.patches_per_side(),
            .new_size = new_size,
            .kernel = spec_.kernel(),
            .align_corners = spec_.align_corners()};
  }

  static void StoreTaps(const std::vector<Tap>& taps, v1::DType dtype, std::span<std::byte> out) {
    if (dtype == v1::DTYPE_I32) {
      for (size_t i = 0; i < taps.size(); ++i) {
        const auto index = static_cast<int32_t>(taps[i].index);
        std::memcpy(out.data() + i * sizeof(index), &index, sizeof(index));
      }
      return;
    }
    std::vector<double> weights;
    for (const Tap& tap : taps) weights.push_back(tap.weight);
    StoreDoubles(weights, dtype, out);
  }

  const PatchPositionsSpec spec_;
};

// Shapes -----------------------------------------------------------------------

const LayoutDTypes kFormats[] = {{v1::LAYOUT_POSITION_IDS, {v1::DTYPE_I32}},
                                 {v1::LAYOUT_INTERPOLATION_TAPS, FloatDTypes()}};

// The layout that goes with the kernel is the default, and the only one.
absl::Status ResolveLayout(const PatchPositionsSpec& spec, v1::TensorFormat* format) {
  const v1::Layout layout =
      IsNearest(spec) ? v1::LAYOUT_POSITION_IDS : v1::LAYOUT_INTERPOLATION_TAPS;
  if (format->layout() == v1::LAYOUT_UNSPECIFIED) format->set_layout(layout);
  RETURN_IF_ERROR(ResolveFormat(PatchPositionsFamily(), kFormats, format));
  if (format->layout() == layout) return absl::OkStatus();
  return FieldError("format.layout", IsNearest(spec) ? "the nearest rows are position_ids"
                                                     : "interpolated rows are interpolation_taps");
}

class PatchPositionsFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "patch_positions"; }
  absl::string_view numerics_version() const override { return "patch_positions-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override { return LayoutsOf(kFormats); }
  std::vector<v1::DType> dtypes() const override { return DTypesOf(kFormats); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizePatchPositions(spec->mutable_patch_positions());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    const PatchPositionsSpec& patches = spec.proto().patch_positions();
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveLayout(patches, &shape.format));
    ASSIGN_OR_RETURN(ResolvedGrid grid, ResolvePatchGrid(selection));
    RETURN_IF_ERROR(OrderOf(patches).Check(grid.grid));
    const int64_t tokens = grid.grid.tokens();
    if (IsNearest(patches)) {
      shape.tensors = {
          {.name = "position_ids", .dtype = v1::DTYPE_I32, .shape = {tokens}, .unit = 1}};
    } else {
      const int64_t taps = patches.kernel() == v1::RESAMPLE_KERNEL_BICUBIC ? 16 : 4;
      shape.tensors = {{.name = "interpolation_indices",
                        .dtype = v1::DTYPE_I32,
                        .shape = {tokens, taps},
                        .unit = taps},
                       {.name = "interpolation_weights",
                        .dtype = shape.format.dtype(),
                        .shape = {tokens, taps},
                        .unit = taps}};
    }
    shape.selection = std::move(grid.selection);
    shape.coordinates_key = std::move(grid.coordinates_key);
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<PatchPositionsPlan>(spec.proto().patch_positions());
  }
};

}  // namespace

const Family& PatchPositionsFamily() {
  static const PatchPositionsFamilyImpl family;
  return family;
}

}  // namespace posenc
