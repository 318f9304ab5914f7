// TiSASRec's time intervals: how far apart two interactions of a user are, in units of
// the user's own shortest gap.
//
//   TIME_INTERVALS  time_intervals [B, N, N], i32: min(|t_i - t_j|, time_span), the row of
//                   the interval table; 0 marks padding and is a time like any other
//   RELATIVE_TIMES  relative_times [B, N], i32: what the reference makes of raw
//                   timestamps first: round((t - first) / shortest gap) + 1
//
// Both read timestamps, one sequence a user. Halves round to even, as Python's do.
// Li et al., WSDM 2020. reference/other-encodings.md, section 7.
#include <algorithm>
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

namespace posenc {
namespace {

using v1::TimeIntervalsSpec;

constexpr int64_t kMaxSpan = int64_t{1} << 30;
// Differences stay below 2^51, where the reference's division in double decides every
// half as integers do.
constexpr int64_t kMaxTimestamp = int64_t{1} << 50;

absl::Status CanonicalizeIntervals(TimeIntervalsSpec* spec) {
  if (!spec->has_time_span()) spec->set_time_span(256);
  return CheckInRange("time_intervals.time_span", spec->time_span(), 1, kMaxSpan);
}

std::span<const int64_t> SequenceOf(const v1::Sequences& sequences, int64_t index) {
  return {sequences.values().data() + index * sequences.length(),
          static_cast<size_t>(sequences.length())};
}

// The unit of a user's times: the shortest gap that is not 0, or 1.
int64_t ShortestGap(std::span<const int64_t> times) {
  int64_t shortest = 0;
  for (size_t i = 1; i < times.size(); ++i) {
    const int64_t gap = times[i] - times[i - 1];
    if (gap > 0 && (shortest == 0 || gap < shortest)) shortest = gap;
  }
  return std::max<int64_t>(shortest, 1);
}

// REQUIRES: n >= 0, unit > 0.
int64_t DivideHalfToEven(int64_t n, int64_t unit) {
  const int64_t quotient = n / unit;
  const int64_t twice_rest = 2 * (n % unit);
  const bool up = twice_rest > unit || (twice_rest == unit && quotient % 2 == 1);
  return quotient + (up ? 1 : 0);
}

class TimeIntervalsPlan final : public Plan {
 public:
  explicit TimeIntervalsPlan(const TimeIntervalsSpec& spec) : time_span_(spec.time_span()) {}

  size_t bytes() const override { return sizeof(*this); }

  void Fill(const TableShape& shape, size_t, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::Sequences& sequences = shape.selection.sequences();
    const bool relative = shape.format.layout() == v1::LAYOUT_RELATIVE_TIMES;
    for (size_t i = 0; i < out.size() / sizeof(int32_t); ++i) {
      const int64_t element = begin + static_cast<int64_t>(i);
      const auto value = static_cast<int32_t>(relative ? RelativeTime(sequences, element)
                                                       : Interval(sequences, element));
      std::memcpy(out.data() + i * sizeof(value), &value, sizeof(value));
    }
  }

  void Describe(v1::DescribeTableResponse*) const override {}

 private:
  int64_t Interval(const v1::Sequences& sequences, int64_t element) const {
    const int64_t length = sequences.length();
    const std::span<const int64_t> times = SequenceOf(sequences, element / length / length);
    const int64_t a = times[static_cast<size_t>(element / length % length)];
    const int64_t b = times[static_cast<size_t>(element % length)];
    return std::min(std::abs(a - b), time_span_);
  }

  static int64_t RelativeTime(const v1::Sequences& sequences, int64_t element) {
    const std::span<const int64_t> times = SequenceOf(sequences, element / sequences.length());
    const int64_t time = times[static_cast<size_t>(element % sequences.length())];
    return DivideHalfToEven(time - times.front(), ShortestGap(times)) + 1;
  }

  int64_t time_span_;
};

absl::Status CheckTimes(const v1::Sequences& sequences, bool relative) {
  for (int i = 0; i < sequences.values_size(); ++i) {
    const std::string field = absl::StrCat("selection.sequences.values[", i, "]");
    RETURN_IF_ERROR(CheckInRange(field, sequences.values(i), -kMaxTimestamp, kMaxTimestamp));
    const bool follows = i % sequences.length() > 0;
    if (relative && follows && sequences.values(i) < sequences.values(i - 1)) {
      return FieldError(field, absl::StrCat("must not go down: got ", sequences.values(i),
                                            " after ", sequences.values(i - 1)));
    }
  }
  return absl::OkStatus();
}

// A user whose times are too fine for 32 bits.
absl::Status CheckRelativeTimes(const v1::Sequences& sequences) {
  for (int64_t b = 0; b < sequences.batch_size() && sequences.length() > 0; ++b) {
    const std::span<const int64_t> times = SequenceOf(sequences, b);
    const int64_t last = (times.back() - times.front()) / ShortestGap(times);
    if (last >= INT32_MAX - 1) {
      return FieldError(
          absl::StrCat("selection.sequences: sequence ", b),
          absl::StrCat("spans ", last, " of its shortest gaps, more than 32 bits hold"));
    }
  }
  return absl::OkStatus();
}

class TimeIntervalsFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "time_intervals"; }
  absl::string_view numerics_version() const override { return "time_intervals-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override {
    return {v1::LAYOUT_TIME_INTERVALS, v1::LAYOUT_RELATIVE_TIMES};
  }
  std::vector<v1::DType> dtypes() const override { return {v1::DTYPE_I32}; }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeIntervals(spec->mutable_time_intervals());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec&, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    ASSIGN_OR_RETURN(ResolvedSequences sequences, ResolveSequences(selection, {}));
    const bool relative = shape.format.layout() == v1::LAYOUT_RELATIVE_TIMES;
    RETURN_IF_ERROR(CheckTimes(sequences.selection.sequences(), relative));
    Tensor tensor{.name = "time_intervals",
                  .dtype = v1::DTYPE_I32,
                  .shape = {sequences.batch_size, sequences.length, sequences.length},
                  .unit = 1};
    if (relative) {
      RETURN_IF_ERROR(CheckRelativeTimes(sequences.selection.sequences()));
      tensor.name = "relative_times";
      tensor.shape.pop_back();
    }
    shape.tensors.push_back(std::move(tensor));
    shape.selection = std::move(sequences.selection);
    shape.coordinates_key = std::move(sequences.coordinates_key);
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<TimeIntervalsPlan>(spec.proto().time_intervals());
  }
};

}  // namespace

const Family& TimeIntervalsFamily() {
  static const TimeIntervalsFamilyImpl family;
  return family;
}

}  // namespace posenc
