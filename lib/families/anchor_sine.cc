// Sines of boxes: the queries of DAB-DETR, Conditional DETR and DINO, and the
// proposals of Deformable DETR.
//
// A point (x, y) or a box (x, y, w, h) in [0, 1] is a row with
// num_position_features columns a coordinate, column c of which is
//   sin (c even) or cos (c odd) of coordinate · scale / temperature^(2⌊c/2⌋/num_position_features)
// DAB-DETR puts y before x.   TABLE  positional_encoding [N, dimensions·num_position_features]
// Liu et al., arXiv:2201.12329; reference: other-encodings 1.9.
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/frequencies.h"
#include "lib/families/grid_selection.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"

namespace posenc {
namespace {

constexpr double kTwoPi = 0x1.921fb54442d18p2;

absl::Status CanonicalizeAnchor(v1::AnchorSineSpec* spec) {
  if (spec->preset() == 0) spec->set_preset(v1::ANCHOR_PRESET_DAB_DETR);
  if (!spec->has_num_position_features()) spec->set_num_position_features(128);
  if (!spec->has_temperature()) spec->set_temperature(10000);
  if (!spec->has_scale()) spec->set_scale(kTwoPi);
  if (spec->arithmetic() == 0) spec->set_arithmetic(v1::ARITHMETIC_FLOAT32);
  RETURN_IF_ERROR(
      CheckEnumUpTo("anchor_sine.preset", spec->preset(), v1::ANCHOR_PRESET_DEFORMABLE));
  RETURN_IF_ERROR(CheckPositionFeatures("anchor_sine.num_position_features", true,
                                        spec->num_position_features()));
  RETURN_IF_ERROR(CheckFrequencyBase("anchor_sine.temperature", spec->temperature()));
  RETURN_IF_ERROR(CheckInRange("anchor_sine.scale", spec->scale(), -0x1p20, 0x1p20));
  return CheckEnumUpTo("anchor_sine.arithmetic", spec->arithmetic(), v1::ARITHMETIC_EXACT);
}

class AnchorPlan final : public Plan {
 public:
  explicit AnchorPlan(const v1::AnchorSineSpec& spec)
      : spec_(spec),
        frequencies_(PowerPeriods(spec.temperature(), spec.num_position_features() / 2,
                                  spec.num_position_features() / 2, spec.arithmetic())) {}

  size_t bytes() const override { return sizeof(*this) + frequencies_.bytes(); }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::Points& points = shape.selection.points();
    const v1::DType dtype = shape.tensors[tensor].dtype;
    const auto block = static_cast<size_t>(spec_.num_position_features() * ElementBytes(dtype));
    std::vector<std::byte> values(block);
    const std::span<const std::byte> sin(values.data(), block / 2);
    const std::span<const std::byte> cos(values.data() + block / 2, block / 2);
    for (int64_t at = begin / spec_.num_position_features(); !out.empty(); ++at) {
      const int64_t point = at / points.dimensions();
      const int64_t from =
          point * points.dimensions() + CoordinateOfBlock(at % points.dimensions());
      frequencies_.SinCos(Coordinate(points.coordinates(static_cast<int>(from))), dtype,
                          values.data(), values.data() + block / 2);
      WriteInterleaved({sin, cos}, dtype, out.first(block));
      out = out.subspan(block);
    }
  }

  void Describe(v1::DescribeTableResponse* response) const override {
    for (size_t k = 0; k < frequencies_.size(); ++k) response->add_inv_freq(frequencies_.at(k));
  }

 private:
  int64_t CoordinateOfBlock(int64_t block) const {
    const bool swaps = spec_.preset() == v1::ANCHOR_PRESET_DAB_DETR && block < 2;
    return swaps ? 1 - block : block;
  }

  WideFloat Coordinate(double value) const {
    if (spec_.arithmetic() == v1::ARITHMETIC_EXACT) {
      return WideFloat::From(value) * WideFloat::From(spec_.scale());
    }
    const float scaled = static_cast<float>(value) * static_cast<float>(spec_.scale());
    return WideFloat::From(static_cast<double>(scaled));
  }

  const v1::AnchorSineSpec spec_;
  const Frequencies frequencies_;  // of a pair of columns
};

class AnchorSineFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "anchor_sine"; }
  absl::string_view numerics_version() const override { return "anchor_sine-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override { return {v1::LAYOUT_TABLE}; }
  std::vector<v1::DType> dtypes() const override { return FloatDTypes(); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeAnchor(spec->mutable_anchor_sine());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    ASSIGN_OR_RETURN(ResolvedPoints points, ResolvePoints(selection, 2, 4));
    if (points.dimensions == 3) {
      return FieldError("selection.points.dimensions", "must be 2 (x, y) or 4 (x, y, w, h), got 3");
    }
    const int64_t width = points.dimensions * spec.proto().anchor_sine().num_position_features();
    shape.selection = std::move(points.selection);
    shape.coordinates_key = std::move(points.coordinates_key);
    shape.tensors = {{.name = "positional_encoding",
                      .dtype = shape.format.dtype(),
                      .shape = {points.count, width},
                      .unit = width}};
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<AnchorPlan>(spec.proto().anchor_sine());
  }
};

}  // namespace

const Family& AnchorSineFamily() {
  static const AnchorSineFamilyImpl family;
  return family;
}

}  // namespace posenc
