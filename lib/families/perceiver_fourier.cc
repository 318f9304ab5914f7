// Perceiver's Fourier features of a grid of 1 to 3 axes.
//
//   coordinate of index i of n    linspace(-1, 1, n)[i], a single one is -1
//   band k of an axis             linspace(1, max_resolution / 2, num_bands)[k]
//   row                           [coordinates | sin(π·coordinate·band), axis by axis | cos]
// with the coordinates unless concat_position is off, and no cosines if sine_only.
//   TABLE  positional_encoding [tokens, width], tokens row-major
// Jaegle et al., arXiv:2107.14795; reference: other-encodings 1.10.
#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/frequencies.h"
#include "lib/families/grid_selection.h"
#include "lib/families/image_layouts.h"
#include "lib/families/linspace.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"
#include "lib/families/token_order.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

constexpr int64_t kMaxBands = 4096;

// The axes of a grid of `count` axes: the last ones of (t, y, x).
constexpr v1::GridAxis kAxes[] = {v1::GRID_AXIS_T, v1::GRID_AXIS_Y, v1::GRID_AXIS_X};

v1::GridAxis AxisOf(int index, int count) { return kAxes[3 - count + index]; }

absl::Status CanonicalizePerceiver(v1::PerceiverFourierSpec* spec) {
  constexpr absl::string_view kResolution = "perceiver_fourier.max_resolution";
  if (!spec->has_num_bands()) return FieldError("perceiver_fourier.num_bands", "is required");
  RETURN_IF_ERROR(CheckInRange("perceiver_fourier.num_bands", spec->num_bands(), 1, kMaxBands));
  if (spec->max_resolution_size() < 1 || spec->max_resolution_size() > 3) {
    return FieldError(kResolution, absl::StrCat("must have 1 to 3 entries, one per axis, got ",
                                                spec->max_resolution_size()));
  }
  for (int i = 0; i < spec->max_resolution_size(); ++i) {
    RETURN_IF_ERROR(CheckInRange(absl::StrCat(kResolution, "[", i, "]"), spec->max_resolution(i), 1,
                                 kMaxGridSide));
  }
  if (!spec->has_concat_position()) spec->set_concat_position(true);
  if (!spec->has_sine_only()) spec->set_sine_only(false);
  if (spec->arithmetic() == 0) spec->set_arithmetic(v1::ARITHMETIC_FLOAT32);
  return CheckEnumUpTo("perceiver_fourier.arithmetic", spec->arithmetic(), v1::ARITHMETIC_EXACT);
}

// Bands of an axis, in half turns per unit of the coordinate.
Frequencies Bands(const v1::PerceiverFourierSpec& spec, int64_t max_resolution) {
  const int64_t count = spec.num_bands();
  std::vector<float> rounded;
  std::vector<WideFloat> exact;
  for (int64_t k = 0; k < count; ++k) {
    const WideFloat last = WideFloat::FromInt(max_resolution).TimesPowerOf2(-1);
    if (spec.arithmetic() == v1::ARITHMETIC_EXACT) {
      exact.push_back(kWidePi * ExactLinspace(WideFloat::FromInt(1), last, count, k));
    } else {
      rounded.push_back(Linspace(1, last.ToFloat(), count, k));
    }
  }
  if (!exact.empty()) return Frequencies(exact);
  return Frequencies(std::move(rounded), AngleRule::kProductTimesPi);
}

int64_t WidthOf(const v1::PerceiverFourierSpec& spec) {
  const int64_t axes = spec.max_resolution_size();
  return (spec.concat_position() ? axes : 0) + axes * spec.num_bands() * (spec.sine_only() ? 1 : 2);
}

class PerceiverPlan final : public Plan {
 public:
  explicit PerceiverPlan(const v1::PerceiverFourierSpec& spec) : spec_(spec) {
    for (const int64_t resolution : spec.max_resolution())
      bands_.push_back(Bands(spec, resolution));
  }

  size_t bytes() const override {
    size_t bytes = sizeof(*this);
    for (const Frequencies& bands : bands_) bytes += bands.bytes();
    return bytes;
  }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const PatchGrid grid = PatchGridOf(shape.selection);
    const v1::DType dtype = shape.tensors[tensor].dtype;
    std::vector<SinCosRows> rows;
    for (const Frequencies& bands : bands_) rows.emplace_back(bands, dtype);
    const int64_t width = WidthOf(spec_);
    const auto row_bytes = static_cast<size_t>(width * ElementBytes(dtype));
    for (int64_t token = begin / width; !out.empty(); ++token) {
      FillRow(grid, TokenOrder{}.At(grid, token), dtype, rows, out.first(row_bytes));
      out = out.subspan(row_bytes);
    }
  }

  void Describe(v1::DescribeTableResponse* response) const override {
    for (const Frequencies& bands : bands_) {
      for (size_t k = 0; k < bands.size(); ++k) response->add_inv_freq(bands.at(k));
    }
  }

 private:
  WideFloat Coordinate(int64_t index, int64_t length) const {
    if (spec_.arithmetic() == v1::ARITHMETIC_EXACT) {
      return ExactLinspace(WideFloat::FromInt(-1), WideFloat::FromInt(1), length, index);
    }
    return WideFloat::From(static_cast<double>(Linspace(-1, 1, length, index)));
  }

  void FillRow(const PatchGrid& grid, const GridPoint& point, v1::DType dtype,
               std::vector<SinCosRows>& rows, std::span<std::byte> row) const {
    const auto element = static_cast<size_t>(ElementBytes(dtype));
    const auto axes = static_cast<int>(bands_.size());
    const size_t block = static_cast<size_t>(spec_.num_bands()) * element;
    std::byte* sin = row.data() + (spec_.concat_position() ? bands_.size() * element : 0);
    for (int i = 0; i < axes; ++i) {
      const v1::GridAxis axis = AxisOf(i, axes);
      const WideFloat coordinate = Coordinate(point.on(axis), LengthOn(axis, grid));
      const size_t at = static_cast<size_t>(i);
      if (spec_.concat_position()) StoreElement(coordinate, dtype, row.data() + at * element);
      const SinCosRows::Row values = rows[at].At(point.on(axis), coordinate);
      std::copy(values.sin.begin(), values.sin.end(), sin + at * block);
      if (spec_.sine_only()) continue;
      std::copy(values.cos.begin(), values.cos.end(), sin + (bands_.size() + at) * block);
    }
  }

  const v1::PerceiverFourierSpec spec_;
  std::vector<Frequencies> bands_;  // of each axis
};

class PerceiverFourierFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "perceiver_fourier"; }
  absl::string_view numerics_version() const override { return "perceiver_fourier-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override { return {v1::LAYOUT_TABLE}; }
  std::vector<v1::DType> dtypes() const override { return FloatDTypes(); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizePerceiver(spec->mutable_perceiver_fourier());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& canonical, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    const v1::PerceiverFourierSpec& spec = canonical.proto().perceiver_fourier();
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    ASSIGN_OR_RETURN(ResolvedGrid resolved, ResolvePatchGrid(selection));
    RETURN_IF_ERROR(CheckAxes(spec, resolved.grid));
    shape.selection = std::move(resolved.selection);
    shape.coordinates_key = std::move(resolved.coordinates_key);
    shape.tensors = {RowsTensor(shape.format, resolved.grid.tokens(), WidthOf(spec))};
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<PerceiverPlan>(spec.proto().perceiver_fourier());
  }

 private:
  // A grid has length 1 along the axes that the encoding does not have.
  static absl::Status CheckAxes(const v1::PerceiverFourierSpec& spec, const PatchGrid& grid) {
    if (spec.max_resolution_size() < 3) RETURN_IF_ERROR(CheckOneFrame(grid));
    if (spec.max_resolution_size() >= 2 || grid.height == 1) return absl::OkStatus();
    return FieldError("selection.patch_grid.height",
                      absl::StrCat("must be 1 for one axis, got ", grid.height));
  }
};

}  // namespace

const Family& PerceiverFourierFamily() {
  static const PerceiverFourierFamilyImpl family;
  return family;
}

}  // namespace posenc
