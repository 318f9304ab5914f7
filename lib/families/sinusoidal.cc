// Sinusoidal position encodings: a sine and a cosine a frequency.
//
// Row p holds, for n frequencies w (sinusoidal_frequencies.h) and x = p + position_offset,
//   INTERLEAVED   [sin(x w0) cos(x w0) sin(x w1) cos(x w1) ...]
//   HALF_SIN_COS  [sin(x w0) sin(x w1) ... | cos(x w0) cos(x w1) ...]
//   HALF_COS_SIN  the halves the other way round
//   SIN_ONLY, COS_ONLY  one column a frequency
// or zeros, where x is the padding_row: fairseq zeroes a row of its table, and x
// is what looks a row up, so the offset comes first.
//
//   TABLE  positional_encoding [R, d_model]
//
// Rows are those of a position_range, of position_ids, of points (real positions), or,
// in relative order, of an attention_grid's distances. Row addresses: p for ascending
// ranges, -p for the orders that descend.
//
// Vaswani et al., arXiv:1706.03762; reference/other-encodings.md, sections 1.1 to 1.7, 1.12,
// 1.13. Presets: sinusoidal_presets.h. Rules of the
// fields: sinusoidal_spec.h. Values: sinusoidal_plan.h.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/families.h"
#include "lib/families/grid_selection.h"
#include "lib/families/selection.h"
#include "lib/families/sinusoidal_frequencies.h"
#include "lib/families/sinusoidal_plan.h"
#include "lib/families/sinusoidal_spec.h"
#include "lib/families/store.h"
#include "lib/numeric/sin_cos.h"

namespace posenc {
namespace {

// The rows of a table before their x is checked.
struct Rows {
  v1::Selection selection;  // canonical
  std::string key;
  int64_t origin = 0;  // row address of the first one
  int64_t count = 0;
};

absl::StatusOr<Rows> ResolveAscending(const v1::Selection& selection) {
  if (selection.has_points()) {
    ASSIGN_OR_RETURN(ResolvedPoints points, ResolvePoints(selection, 1, 1));
    return Rows{std::move(points.selection), std::move(points.coordinates_key), 0, points.count};
  }
  ASSIGN_OR_RETURN(Positions positions, ResolvePositions(selection, -kMaxSinusoidalPosition));
  return Rows{std::move(positions.selection), std::move(positions.coordinates_key),
              positions.origin, positions.count};
}

absl::StatusOr<Rows> ResolveDescending(const v1::Selection& selection) {
  if (!selection.has_position_range()) {
    return WrongSelection(selection, "a position_range (its row_order is descending)");
  }
  ASSIGN_OR_RETURN(Positions positions, ResolvePositions(selection, -kMaxSinusoidalPosition));
  const int64_t last = positions.origin + positions.count - 1;
  return Rows{std::move(positions.selection), "", -last, positions.count};
}

// Distances query - key, from the last query's to the first key down.
absl::StatusOr<Rows> ResolveRelative(const v1::Selection& selection) {
  ASSIGN_OR_RETURN(Grid grid, ResolveGrid(selection));
  return Rows{std::move(grid.selection), "", grid.first_relative_position(), grid.vector_length()};
}

absl::StatusOr<Rows> ResolveRows(const v1::SinusoidalSpec& spec, const v1::Selection& selection) {
  switch (RowOrderOf(spec)) {
    case v1::ROW_ORDER_DESCENDING:
      return ResolveDescending(selection);
    case v1::ROW_ORDER_RELATIVE:
      return ResolveRelative(selection);
    default:
      return ResolveAscending(selection);
  }
}

// Every x stays where the argument reduction is proven, with its angle.
class PositionChecker {
 public:
  explicit PositionChecker(const v1::SinusoidalSpec& spec)
      : offset_(spec.position_offset()), turn_rate_(MaxFrequency(spec) * PositionScaleOf(spec)) {}

  absl::Status Check(const std::string& field, int64_t position) const {
    if (std::abs(position + offset_) > kMaxSinusoidalPosition) {
      return FieldError(field, absl::StrCat("with position_offset ", offset_, " must stay in [",
                                            -kMaxSinusoidalPosition, ", ", kMaxSinusoidalPosition,
                                            "], got ", position));
    }
    return CheckAngle(field, static_cast<double>(position + offset_));
  }

  absl::Status CheckAngle(const std::string& field, double x) const {
    const double angle = std::abs(x) * turn_rate_;
    if (angle <= kMaxAngle) return absl::OkStatus();
    return FieldError(field, absl::StrCat("angles must stay within ", kMaxAngle, " radians, got ",
                                          angle, " at ", x));
  }

 private:
  static double MaxFrequency(const v1::SinusoidalSpec& spec) {
    if (spec.frequency_rule() != v1::FREQUENCY_RULE_GIVEN) {
      return SinusoidalFrequencyRange(spec).max;
    }
    double max = 0;
    for (const double frequency : spec.frequencies()) max = std::max(max, std::abs(frequency));
    return max;
  }

  int64_t offset_;
  double turn_rate_;  // the most radians a position
};

absl::Status CheckRows(const v1::SinusoidalSpec& spec, const Rows& rows) {
  if (rows.count == 0) return absl::OkStatus();
  const PositionChecker checker(spec);
  const v1::Selection& selection = rows.selection;
  if (selection.has_points()) {
    if (spec.position_offset() != 0) {
      return FieldError("sinusoidal.position_offset",
                        absl::StrCat("must be 0 with points, which are real positions, got ",
                                     spec.position_offset()));
    }
    for (const double x : selection.points().coordinates()) {
      RETURN_IF_ERROR(checker.CheckAngle("selection.points.coordinates", x));
    }
    return absl::OkStatus();
  }
  if (selection.has_position_ids()) {
    const auto& ids = selection.position_ids().ids();
    for (int i = 0; i < ids.size(); ++i) {
      RETURN_IF_ERROR(checker.Check(absl::StrCat("selection.position_ids.ids[", i, "]"), ids[i]));
    }
    return absl::OkStatus();
  }
  const int64_t first = rows.origin;
  const int64_t last = rows.origin + rows.count - 1;
  if (selection.has_attention_grid()) {
    RETURN_IF_ERROR(checker.Check("selection.attention_grid", -first));
    return checker.Check("selection.attention_grid", -last);
  }
  RETURN_IF_ERROR(
      checker.Check("selection.position_range.begin", selection.position_range().begin()));
  return checker.Check("selection.position_range.end", selection.position_range().end() - 1);
}

class SinusoidalFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "sinusoidal"; }
  absl::string_view numerics_version() const override { return "sinusoidal-1"; }
  bool rows_are_positions() const override { return true; }
  std::vector<v1::Layout> layouts() const override { return {v1::LAYOUT_TABLE}; }
  std::vector<v1::DType> dtypes() const override { return FloatDTypes(); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeSinusoidal(spec->mutable_sinusoidal());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    const v1::SinusoidalSpec& sinusoidal = spec.proto().sinusoidal();
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    ASSIGN_OR_RETURN(Rows rows, ResolveRows(sinusoidal, selection));
    RETURN_IF_ERROR(CheckRows(sinusoidal, rows));
    shape.tensors = {{.name = "positional_encoding",
                      .dtype = shape.format.dtype(),
                      .shape = {rows.count, sinusoidal.d_model()},
                      .unit = sinusoidal.d_model(),
                      .origin = rows.origin * sinusoidal.d_model()}};
    shape.selection = std::move(rows.selection);
    shape.coordinates_key = std::move(rows.key);
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<SinusoidalPlan>(spec.proto().sinusoidal());
  }
};

}  // namespace

const Family& SinusoidalFamily() {
  static const SinusoidalFamilyImpl family;
  return family;
}

}  // namespace posenc
