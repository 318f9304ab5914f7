// HSTU's absolute positions, as its production code counts them: from the end of a
// user's history, with the candidates to be ranked sharing the last place, and the
// time since the last interaction in buckets.
//
//   POSITION_IDS  position_ids [B, N], i32: min(history + contextual_length - column,
//                 max_positions - 1), where the columns of the candidates count as the
//                 history's end; the first contextual_length columns are themselves
//   TIME_BUCKETS  time_buckets [B, N], i32: trunc(f(max(t_last - t, 1e-6) / increment) /
//                 divisor) in [0, num_time_buckets], f the square root or the logarithm
//
// history is a sequence's length without its candidates (twice as many columns where
// they are interleaved). Columns past a sequence's end may be negative: they are not
// used. Times are float32 from the difference on. reference/other-encodings.md, section 7.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/selection.h"
#include "lib/families/sequences.h"
#include "lib/numeric/elementary.h"

namespace posenc {
namespace {

using v1::HstuPositionsSpec;

constexpr int64_t kMaxRows = int64_t{1} << 30;
constexpr int64_t kMaxTimestamp = int64_t{1} << 62;
// What the reference raises a difference to, so that its logarithm is one.
constexpr float kLeastDifference = 1e-6f;

absl::Status CanonicalizeHstuPositions(HstuPositionsSpec* spec) {
  if (!spec->has_max_positions()) spec->set_max_positions(kMaxRows);
  if (!spec->has_contextual_length()) spec->set_contextual_length(0);
  if (!spec->has_interleave_targets()) spec->set_interleave_targets(false);
  if (!spec->has_num_time_buckets()) spec->set_num_time_buckets(2048);
  if (!spec->has_increment()) spec->set_increment(60);
  if (!spec->has_divisor()) spec->set_divisor(1);
  RETURN_IF_ERROR(CheckInRange("hstu_positions.max_positions", spec->max_positions(), 1, kMaxRows));
  RETURN_IF_ERROR(
      CheckInRange("hstu_positions.contextual_length", spec->contextual_length(), 0, kMaxRows));
  RETURN_IF_ERROR(
      CheckInRange("hstu_positions.num_time_buckets", spec->num_time_buckets(), 1, kMaxRows));
  RETURN_IF_ERROR(CheckInRange("hstu_positions.increment", spec->increment(), 1e-3, 1e9));
  RETURN_IF_ERROR(CheckInRange("hstu_positions.divisor", spec->divisor(), 1e-3, 1e9));
  RETURN_IF_ERROR(CheckEnum("hstu_positions.time_bucket_function",
                            v1::TimeBucketFunction_IsValid(spec->time_bucket_function()),
                            spec->time_bucket_function()));
  if (spec->time_bucket_function() == v1::TIME_BUCKET_FUNCTION_UNSPECIFIED) {
    spec->set_time_bucket_function(v1::TIME_BUCKET_FUNCTION_SQRT);
  }
  return absl::OkStatus();
}

class HstuPositionsPlan final : public Plan {
 public:
  explicit HstuPositionsPlan(HstuPositionsSpec spec) : spec_(std::move(spec)) {}

  size_t bytes() const override { return sizeof(*this); }

  void Fill(const TableShape& shape, size_t, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::Sequences& sequences = shape.selection.sequences();
    const bool times = shape.format.layout() == v1::LAYOUT_TIME_BUCKETS;
    for (size_t i = 0; i < out.size() / sizeof(int32_t); ++i) {
      const int64_t element = begin + static_cast<int64_t>(i);
      const int64_t sequence = element / sequences.length();
      const int64_t column = element % sequences.length();
      const auto value = static_cast<int32_t>(times ? TimeBucket(sequences, sequence, column)
                                                    : Position(sequences, sequence, column));
      std::memcpy(out.data() + i * sizeof(value), &value, sizeof(value));
    }
  }

  void Describe(v1::DescribeTableResponse*) const override {}

 private:
  int64_t Position(const v1::Sequences& sequences, int64_t sequence, int64_t column) const {
    if (column < spec_.contextual_length()) return column;
    int64_t history = sequences.lengths(static_cast<int>(sequence));
    if (sequences.num_targets_size() > 0) {
      history -=
          sequences.num_targets(static_cast<int>(sequence)) * (spec_.interleave_targets() ? 2 : 1);
      column = std::min(column, history);
    }
    return std::min(history - column + spec_.contextual_length(), spec_.max_positions() - 1);
  }

  int64_t TimeBucket(const v1::Sequences& sequences, int64_t sequence, int64_t column) const {
    const int64_t* times = sequences.values().data() + sequence * sequences.length();
    const int64_t length = sequences.lengths(static_cast<int>(sequence));
    // An empty sequence has no last interaction; the reference reads its first column.
    const int64_t last = times[std::max<int64_t>(length - 1, 0)];
    const float difference = std::max(static_cast<float>(last - times[column]), kLeastDifference);
    const float units = difference / static_cast<float>(spec_.increment());
    const float f = spec_.time_bucket_function() == v1::TIME_BUCKET_FUNCTION_LOG ? LogF(units)
                                                                                 : std::sqrt(units);
    const float bucket = std::max(f / static_cast<float>(spec_.divisor()), 0.0f);
    const auto most = static_cast<float>(spec_.num_time_buckets());
    return bucket < most ? static_cast<int64_t>(bucket) : spec_.num_time_buckets();
  }

  const HstuPositionsSpec spec_;
};

// Shapes -----------------------------------------------------------------------

// What comes after the history must be in the sequence, and the history not negative.
absl::Status CheckTargets(const HstuPositionsSpec& spec, const v1::Sequences& sequences) {
  const int64_t columns = spec.interleave_targets() ? 2 : 1;
  for (int i = 0; i < sequences.num_targets_size(); ++i) {
    if (columns * sequences.num_targets(i) <= sequences.lengths(i)) continue;
    return FieldError(absl::StrCat("selection.sequences.num_targets[", i, "]"),
                      absl::StrCat("targets take ", columns * sequences.num_targets(i),
                                   " columns of a sequence of ", sequences.lengths(i)));
  }
  return absl::OkStatus();
}

class HstuPositionsFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "hstu_positions"; }
  absl::string_view numerics_version() const override { return "hstu_positions-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override {
    return {v1::LAYOUT_POSITION_IDS, v1::LAYOUT_TIME_BUCKETS};
  }
  std::vector<v1::DType> dtypes() const override { return {v1::DTYPE_I32}; }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeHstuPositions(spec->mutable_hstu_positions());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    const bool times = shape.format.layout() == v1::LAYOUT_TIME_BUCKETS;
    ASSIGN_OR_RETURN(
        ResolvedSequences resolved,
        ResolveSequences(selection, {.values = times, .lengths = true, .num_targets = !times}));
    const v1::Sequences& sequences = resolved.selection.sequences();
    RETURN_IF_ERROR(CheckTargets(spec.proto().hstu_positions(), sequences));
    for (int i = 0; i < sequences.values_size(); ++i) {
      RETURN_IF_ERROR(CheckInRange(absl::StrCat("selection.sequences.values[", i, "]"),
                                   sequences.values(i), -kMaxTimestamp, kMaxTimestamp));
    }
    shape.tensors = {{.name = times ? "time_buckets" : "position_ids",
                      .dtype = v1::DTYPE_I32,
                      .shape = {resolved.batch_size, resolved.length},
                      .unit = 1}};
    shape.selection = std::move(resolved.selection);
    shape.coordinates_key = std::move(resolved.coordinates_key);
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<HstuPositionsPlan>(spec.proto().hstu_positions());
  }
};

}  // namespace

const Family& HstuPositionsFamily() {
  static const HstuPositionsFamilyImpl family;
  return family;
}

}  // namespace posenc
