// T5's relative position buckets: which learned bias a key and a query share.
//
// relative_position = key - query. Bidirectional (encoder): the buckets are split
// in halves, the upper one for keys to the right; causal (decoder): every key
// after the query falls into bucket 0.
//
//   BUCKETS        relative_position_bucket [Q, K]
//   BUCKET_VECTOR  relative_position_bucket_vector [Q+K-1]; entry v belongs to
//                  relative position -(query_offset + Q - 1) + v
//
// Raffel et al., arXiv:1910.10683. The formula and its roundings: t5_buckets.h.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/selection.h"
#include "lib/families/t5_buckets.h"
#include "lib/families/toeplitz.h"

namespace posenc {
namespace {

// Far above any model (512); a plan of this many takes a fraction of a second.
constexpr int64_t kMaxNumBuckets = 4096;
constexpr int64_t kElementBytes = 4;  // of an i32

// Buckets of one direction.
int64_t DirectionBuckets(const v1::T5BiasSpec& t5) {
  return t5.bidirectional() ? t5.num_buckets() / 2 : t5.num_buckets();
}

absl::Status CanonicalizeT5(v1::T5BiasSpec* t5) {
  if (!t5->has_num_buckets()) t5->set_num_buckets(32);
  if (!t5->has_max_distance()) t5->set_max_distance(128);
  if (!t5->has_bidirectional()) t5->set_bidirectional(true);

  // Two a direction: one exact, one logarithmic.
  RETURN_IF_ERROR(CheckInRange("t5.num_buckets", t5->num_buckets(), t5->bidirectional() ? 4 : 2,
                               kMaxNumBuckets));
  if (t5->bidirectional() && t5->num_buckets() % 2 != 0) {
    return FieldError("t5.num_buckets",
                      absl::StrCat("must be even when bidirectional, got ", t5->num_buckets()));
  }
  RETURN_IF_ERROR(CheckInRange("t5.max_distance", t5->max_distance(), 1, kMaxPosition));
  const int64_t max_exact = DirectionBuckets(*t5) / 2;
  if (t5->max_distance() <= max_exact) {
    return FieldError("t5.max_distance",
                      absl::StrCat("must be above the ", max_exact,
                                   " distances that have a bucket of their own", " (num_buckets / ",
                                   t5->bidirectional() ? 4 : 2, "), got ", t5->max_distance()));
  }
  return absl::OkStatus();
}

class T5Plan final : public Plan {
 public:
  explicit T5Plan(const v1::T5BiasSpec& t5)
      : bidirectional_(t5.bidirectional()),
        first_distance_(T5BucketFirstDistances(DirectionBuckets(t5), t5.max_distance())) {}

  size_t bytes() const override { return first_distance_.capacity() * sizeof(int64_t); }

  void Fill(const TableShape& shape, size_t /*tensor*/, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::AttentionGrid& grid = shape.selection.attention_grid();
    const auto fill = [this](int64_t /*head*/, int64_t first, std::span<std::byte> run) {
      FillRun(first, {reinterpret_cast<int32_t*>(run.data()), run.size() / kElementBytes});
    };
    if (shape.format.layout() == v1::LAYOUT_BUCKETS) {
      FillToeplitzMatrix(grid, kElementBytes, begin, out, fill);
    } else {
      FillToeplitzVectors(grid, kElementBytes, begin, out, fill);
    }
  }

  void Describe(v1::DescribeTableResponse* response) const override {
    response->mutable_bucket_first_distance()->Add(first_distance_.begin(), first_distance_.end());
  }

 private:
  // Bucket of a distance in its direction.
  int64_t BucketOf(int64_t distance) const {
    return std::upper_bound(first_distance_.begin(), first_distance_.end(), distance) -
           first_distance_.begin() - 1;
  }

  // Buckets of the consecutive relative positions from `first` on. A bucket covers
  // many of them, so they are written a bucket at a time.
  void FillRun(int64_t first, std::span<int32_t> out) const {
    const int64_t end = first + static_cast<int64_t>(out.size());
    for (int64_t position = first; position < end;) {
      const auto [bucket, next] = BucketAndNext(position, end);
      std::fill(out.begin() + (position - first), out.begin() + (next - first),
                static_cast<int32_t>(bucket));
      position = next;
    }
  }

  // The bucket of a relative position, and the next position of another bucket
  // (at most `end`).
  std::pair<int64_t, int64_t> BucketAndNext(int64_t position, int64_t end) const {
    if (position > 0 && !bidirectional_) return {0, end};
    const int64_t direction_buckets = static_cast<int64_t>(first_distance_.size());
    if (position <= 0) {
      const int64_t bucket = BucketOf(-position);
      return {bucket, std::min(1 - first_distance_[static_cast<size_t>(bucket)], end)};
    }
    const int64_t bucket = BucketOf(position);
    const int64_t next =
        bucket + 1 < direction_buckets ? first_distance_[static_cast<size_t>(bucket) + 1] : end;
    return {direction_buckets + bucket, std::min(next, end)};
  }

  bool bidirectional_;
  std::vector<int64_t> first_distance_;  // [buckets of one direction], ascending
};

class T5FamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "t5"; }
  absl::string_view numerics_version() const override { return "t5-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override {
    return {v1::LAYOUT_BUCKETS, v1::LAYOUT_BUCKET_VECTOR};
  }
  std::vector<v1::DType> dtypes() const override { return {v1::DTYPE_I32}; }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeT5(spec->mutable_t5());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& /*spec*/, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    ASSIGN_OR_RETURN(Grid grid, ResolveGrid(selection));
    if (shape.format.layout() == v1::LAYOUT_BUCKETS) {
      shape.tensors = {{.name = "relative_position_bucket",
                        .dtype = v1::DTYPE_I32,
                        .shape = {grid.query_length, grid.key_length},
                        .unit = 1}};
    } else {
      shape.tensors = {{.name = "relative_position_bucket_vector",
                        .dtype = v1::DTYPE_I32,
                        .shape = {grid.vector_length()},
                        .unit = 1}};
    }
    shape.selection = std::move(grid.selection);
    shape.coordinates_key = std::move(grid.coordinates_key);
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<T5Plan>(spec.proto().t5());
  }
};

}  // namespace

const Family& T5Family() {
  static const T5FamilyImpl family;
  return family;
}

}  // namespace posenc
