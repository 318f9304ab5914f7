// SAM's random Fourier features: [sin | cos] of 2π·(c_x·G[0] + c_y·G[1]), where
// c = 2·(x, y) - 1 and G is a matrix that the checkpoint holds.
//
// Of a patch_grid, x = (column + 0.5) / width and y likewise; of points,
// x = (coordinate + point_offset) / image_width.
//   CHANNELS_FIRST  positional_encoding [2F, H, W]   (a patch_grid only)
//   TABLE           positional_encoding [H·W or points, 2F]
// Kirillov et al., arXiv:2304.02643; Tancik et al., arXiv:2006.10739; reference:
// other-encodings 1.10. FLOAT32 rounds after every operation: the two products
// of the matrix multiplication are summed without fusing, x first.
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/grid_selection.h"
#include "lib/families/image_layouts.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"
#include "lib/numeric/angle.h"
#include "lib/numeric/wide_functions.h"

namespace posenc {
namespace {

constexpr double kMaxEntry = 0x1p20;
constexpr int kMaxFeatures = 32768;
constexpr float kTwoPi = 0x1.921fb6p2f;  // rounded to float32

absl::Status CanonicalizeFourier(v1::RandomFourierSpec* spec) {
  constexpr absl::string_view kMatrix = "random_fourier.gaussian_matrix";
  const auto& matrix = spec->gaussian_matrix();
  if (matrix.empty()) return FieldError(kMatrix, "is required");
  if (matrix.size() % 2 != 0 || matrix.size() > 2 * kMaxFeatures) {
    return FieldError(kMatrix, absl::StrCat("must have two rows of at most ", kMaxFeatures,
                                            " entries, got ", matrix.size(), " entries"));
  }
  for (int i = 0; i < matrix.size(); ++i) {
    RETURN_IF_ERROR(CheckInRange(absl::StrCat(kMatrix, "[", i, "]"), static_cast<double>(matrix[i]),
                                 -kMaxEntry, kMaxEntry));
  }
  if (!spec->has_image_height()) spec->set_image_height(1);
  if (!spec->has_image_width()) spec->set_image_width(1);
  if (!spec->has_point_offset()) spec->set_point_offset(0);
  if (spec->arithmetic() == 0) spec->set_arithmetic(v1::ARITHMETIC_FLOAT32);
  RETURN_IF_ERROR(CheckCoordinateScale("random_fourier.image_height", spec->image_height()));
  RETURN_IF_ERROR(CheckCoordinateScale("random_fourier.image_width", spec->image_width()));
  RETURN_IF_ERROR(
      CheckInRange("random_fourier.point_offset", spec->point_offset(), -0x1p20, 0x1p20));
  return CheckEnumUpTo("random_fourier.arithmetic", spec->arithmetic(), v1::ARITHMETIC_EXACT);
}

// A coordinate before it is divided by the size of its side.
struct Place {
  double at;
  double size;

  // 2·(at / size) - 1, rounded after each step.
  float Rounded() const { return 2 * (static_cast<float>(at) / static_cast<float>(size)) - 1; }
  WideFloat Exact() const {
    return WideFloat::From(at) / WideFloat::From(size) * WideFloat::From(2) - WideFloat::From(1);
  }
};

struct PixelPlace {
  Place x;
  Place y;
};

class FourierPlan final : public Plan {
 public:
  explicit FourierPlan(const v1::RandomFourierSpec& spec) : spec_(spec) {}

  size_t bytes() const override { return sizeof(*this) + spec_.SpaceUsedLong(); }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::Selection& selection = shape.selection;
    const v1::DType dtype = shape.tensors[tensor].dtype;
    const auto element = static_cast<size_t>(ElementBytes(dtype));
    if (shape.format.layout() == v1::LAYOUT_CHANNELS_FIRST) {
      return FillChannelsFirst(PatchGridOf(selection).tokens(), dtype, begin, out,
                               [&](int64_t channel, int64_t pixel, std::byte* where) {
                                 Put(At(selection, pixel), channel, dtype, where);
                               });
    }
    FillPixelRows(2 * features(), dtype, begin, out, [&](int64_t pixel, std::span<std::byte> row) {
      const PixelPlace place = At(selection, pixel);
      for (int64_t c = 0; c < 2 * features(); ++c) {
        Put(place, c, dtype, row.data() + static_cast<size_t>(c) * element);
      }
    });
  }

  void Describe(v1::DescribeTableResponse*) const override {}

 private:
  int64_t features() const { return spec_.gaussian_matrix_size() / 2; }

  PixelPlace At(const v1::Selection& selection, int64_t index) const {
    if (selection.has_points()) {
      const auto& points = selection.points().coordinates();
      const int i = static_cast<int>(2 * index);
      return {PointPlace(points[i], spec_.image_width()),
              PointPlace(points[i + 1], spec_.image_height())};
    }
    const PatchGrid grid = PatchGridOf(selection);
    return {{static_cast<double>(index % grid.width) + 0.5, static_cast<double>(grid.width)},
            {static_cast<double>(index / grid.width) + 0.5, static_cast<double>(grid.height)}};
  }

  Place PointPlace(double coordinate, double size) const {
    if (spec_.arithmetic() == v1::ARITHMETIC_EXACT) {
      return {coordinate + spec_.point_offset(), size};
    }
    const float moved = static_cast<float>(coordinate) + static_cast<float>(spec_.point_offset());
    return {static_cast<double>(moved), size};
  }

  void Put(const PixelPlace& place, int64_t channel, v1::DType dtype, std::byte* where) const {
    const auto feature = static_cast<int>(channel % features());
    const float gx = spec_.gaussian_matrix(feature);
    const float gy = spec_.gaussian_matrix(static_cast<int>(features()) + feature);
    const bool is_sine = channel < features();
    if (spec_.arithmetic() == v1::ARITHMETIC_EXACT) {
      const WideFloat turns = place.x.Exact() * WideFloat::From(static_cast<double>(gx)) +
                              place.y.Exact() * WideFloat::From(static_cast<double>(gy));
      const WideSinCos value = SinCosOfTurns(turns);
      return StoreElement(is_sine ? value.sin : value.cos, dtype, where);
    }
    const float turns = place.x.Rounded() * gx + place.y.Rounded() * gy;
    const FloatSinCos value = SinCosF(kTwoPi * turns);
    StoreElement(is_sine ? value.sin : value.cos, dtype, where);
  }

  const v1::RandomFourierSpec spec_;
};

class RandomFourierFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "random_fourier"; }
  absl::string_view numerics_version() const override { return "random_fourier-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override { return ImageLayouts(); }
  std::vector<v1::DType> dtypes() const override { return FloatDTypes(); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeFourier(spec->mutable_random_fourier());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    const int64_t channels = spec.proto().random_fourier().gaussian_matrix_size();
    TableShape shape;
    shape.format = format;
    if (selection.has_points() && format.layout() == v1::LAYOUT_UNSPECIFIED) {
      shape.format.set_layout(v1::LAYOUT_TABLE);
    }
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    if (selection.has_points()) return ResolveOfPoints(selection, channels, std::move(shape));
    if (!selection.has_patch_grid()) return WrongSelection(selection, "a patch_grid or points");
    ASSIGN_OR_RETURN(ResolvedGrid grid, ResolvePatchGrid(selection));
    RETURN_IF_ERROR(CheckOneFrame(grid.grid));
    shape.selection = std::move(grid.selection);
    shape.coordinates_key = std::move(grid.coordinates_key);
    shape.tensors = {ImageTensor(shape.format, channels, grid.grid.height, grid.grid.width)};
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<FourierPlan>(spec.proto().random_fourier());
  }

 private:
  static absl::StatusOr<TableShape> ResolveOfPoints(const v1::Selection& selection,
                                                    int64_t channels, TableShape shape) {
    if (shape.format.layout() != v1::LAYOUT_TABLE) {
      return FieldError("format.layout", "points have no channels_first, only table");
    }
    ASSIGN_OR_RETURN(ResolvedPoints points, ResolvePoints(selection, 2, 2));
    shape.selection = std::move(points.selection);
    shape.coordinates_key = std::move(points.coordinates_key);
    shape.tensors = {{.name = "positional_encoding",
                      .dtype = shape.format.dtype(),
                      .shape = {points.count, channels},
                      .unit = channels}};
    return shape;
  }
};

}  // namespace

const Family& RandomFourierFamily() {
  static const RandomFourierFamilyImpl family;
  return family;
}

}  // namespace posenc
