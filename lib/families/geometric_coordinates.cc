// Where BEiT's fine-tuning puts the offsets of a bias table before it is stretched:
// dense in the middle, sparse at the ends.
//
//   SOURCE_COORDINATES  source_coordinates [source_size]: -(1 + q + ...), ..., -1, 0, 1,
//                       1 + q, 1 + q + q^2, ...
//
// q makes source_size / 2 steps reach target_size / 2, as bisection from [1.01, 1.5] to
// a width of 1e-6 has it: its bounds are part of the values. A spline through these
// points is then read at the integers from -target_size / 2 to target_size / 2.
// reference/other-encodings.md, section 4.5.
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"
#include "lib/numeric/elementary.h"

namespace posenc {
namespace {

using v1::GeometricCoordinatesSpec;

constexpr int64_t kMaxSize = 8191;  // of a window of 4096

absl::Status CheckOdd(absl::string_view field, int64_t size) {
  if (size % 2 == 1) return absl::OkStatus();
  return FieldError(field, absl::StrCat("must be odd (2 window - 1), got ", size));
}

absl::Status CanonicalizeGeometric(GeometricCoordinatesSpec* spec) {
  constexpr absl::string_view kSource = "geometric_coordinates.source_size";
  constexpr absl::string_view kTarget = "geometric_coordinates.target_size";
  RETURN_IF_ERROR(CheckPresent(kSource, spec->has_source_size()));
  RETURN_IF_ERROR(CheckPresent(kTarget, spec->has_target_size()));
  RETURN_IF_ERROR(CheckInRange(kSource, spec->source_size(), 3, kMaxSize));
  RETURN_IF_ERROR(CheckOdd(kSource, spec->source_size()));
  RETURN_IF_ERROR(CheckInRange(kTarget, spec->target_size(), spec->source_size() + 2, kMaxSize));
  return CheckOdd(kTarget, spec->target_size());
}

double PartialSum(double q, int64_t terms) {
  return (1.0 - Pow(q, static_cast<double>(terms))) / (1.0 - q);
}

double RatioOf(const GeometricCoordinatesSpec& spec) {
  const int64_t terms = spec.source_size() / 2;
  const auto reach = static_cast<double>(spec.target_size() / 2);
  double low = 1.01;
  double high = 1.5;
  double q = low;
  while (high - low > 1e-6) {
    q = (low + high) / 2;
    (PartialSum(q, terms) > reach ? high : low) = q;
  }
  return q;
}

std::vector<double> Coordinates(const GeometricCoordinatesSpec& spec) {
  const double q = RatioOf(spec);
  std::vector<double> right;
  double coordinate = 1;
  for (int64_t i = 0; i < spec.source_size() / 2; ++i) {
    right.push_back(coordinate);
    coordinate += Pow(q, static_cast<double>(i + 1));
  }
  std::vector<double> all;
  for (auto it = right.rbegin(); it != right.rend(); ++it) all.push_back(-*it);
  all.push_back(0);
  all.insert(all.end(), right.begin(), right.end());
  return all;
}

class GeometricCoordinatesPlan final : public Plan {
 public:
  explicit GeometricCoordinatesPlan(const GeometricCoordinatesSpec& spec)
      : coordinates_(Coordinates(spec)) {}

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
