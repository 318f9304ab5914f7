// The coordinates alone at which the offsets of a bias table stand before it is stretched
// (geometric_spacing.h), for code that interpolates itself.
//
//   SOURCE_COORDINATES  source_coordinates [source_size]
//
// reference/other-encodings.md, section 4.5.
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/geometric_spacing.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"

namespace posenc {
namespace {

using v1::GeometricCoordinatesSpec;

absl::Status CanonicalizeGeometric(GeometricCoordinatesSpec* spec) {
  constexpr absl::string_view kSource = "geometric_coordinates.source_size";
  constexpr absl::string_view kTarget = "geometric_coordinates.target_size";
  RETURN_IF_ERROR(CheckPresent(kSource, spec->has_source_size()));
  RETURN_IF_ERROR(CheckPresent(kTarget, spec->has_target_size()));
  RETURN_IF_ERROR(CheckOffsets(kSource, spec->source_size(), 3));
  return CheckOffsets(kTarget, spec->target_size(), 1);
}

class GeometricCoordinatesPlan final : public Plan {
 public:
  explicit GeometricCoordinatesPlan(const GeometricCoordinatesSpec& spec)
      : coordinates_(GeometricCoordinates(spec.source_size(), spec.target_size())) {}

  size_t bytes() const override { return coordinates_.capacity() * sizeof(double); }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::DType dtype = shape.tensors[tensor].dtype;
    const size_t count = out.size() / static_cast<size_t>(ElementBytes(dtype));
    StoreDoubles(std::span(coordinates_).subspan(static_cast<size_t>(begin), count), dtype, out);
  }

  void Describe(v1::DescribeTableResponse*) const override {}

 private:
  std::vector<double> coordinates_;  // [source_size]
};

class GeometricCoordinatesFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "geometric_coordinates"; }
  absl::string_view numerics_version() const override { return "geometric_coordinates-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override { return {v1::LAYOUT_SOURCE_COORDINATES}; }
  std::vector<v1::DType> dtypes() const override { return {v1::DTYPE_F64, v1::DTYPE_F32}; }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeGeometric(spec->mutable_geometric_coordinates());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    RETURN_IF_ERROR(ResolveNoSelection(selection));
    shape.tensors = {{.name = "source_coordinates",
                      .dtype = shape.format.dtype(),
                      .shape = {spec.proto().geometric_coordinates().source_size()},
                      .unit = 1}};
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<GeometricCoordinatesPlan>(spec.proto().geometric_coordinates());
  }
};

}  // namespace

const Family& GeometricCoordinatesFamily() {
  static const GeometricCoordinatesFamilyImpl family;
  return family;
}

}  // namespace posenc
