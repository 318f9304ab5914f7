// HSTU's relative bias: a learned number for how many places apart two interactions
// are, and one for how long apart.
//
//   TIME_BUCKETS  time_buckets [B, N, N], i32: of query i and key j,
//                 trunc(ln(max(|t_(i+1) - t_j|, 1)) / divisor), at most num_buckets
//   BIAS          attention_bias [B, N, N]: position_table[M - 1 + j - i] +
//                 time_table[bucket], M = (rows of position_table + 1) / 2
//
// A query row takes the next interaction's timestamp (what is to be predicted), the last
// its own. The divisor 0.301 is log10(2) while the logarithm is natural: bucket 1 is
// never used. Difference, logarithm, quotient and sum are rounded to float32 as there.
// The index alone: relative_index with key - query.
// Zhai et al., arXiv:2402.17152. reference/other-encodings.md, section 7.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/float_table.h"
#include "lib/families/layout_dtypes.h"
#include "lib/families/selection.h"
#include "lib/families/sequences.h"
#include "lib/families/store.h"
#include "lib/numeric/elementary.h"

namespace posenc {
namespace {

using v1::HstuTimeBiasSpec;

constexpr int64_t kMaxBuckets = int64_t{1} << 20;
constexpr int64_t kMaxTimestamp = int64_t{1} << 62;  // differences fit an int64

// Canonicalize -----------------------------------------------------------------

absl::Status CheckTables(HstuTimeBiasSpec* spec) {
  if (spec->has_position_table() != spec->has_time_table()) {
    return FieldError(
        spec->has_time_table() ? "hstu_time_bias.position_table" : "hstu_time_bias.time_table",
        "is required with the other table");
  }
  if (!spec->has_time_table()) return absl::OkStatus();
  RETURN_IF_ERROR(CanonicalizeFloatTable("hstu_time_bias.position_table", {kAnyLength},
                                         spec->mutable_position_table()));
  if (spec->position_table().shape(0) % 2 == 0) {
    return FieldError(
        "hstu_time_bias.position_table.shape",
        absl::StrCat("must be odd (2 length - 1), got ", spec->position_table().shape(0)));
  }
  return CanonicalizeFloatTable("hstu_time_bias.time_table", {spec->num_buckets() + 1},
                                spec->mutable_time_table());
}

absl::Status CanonicalizeHstu(HstuTimeBiasSpec* spec) {
  if (!spec->has_num_buckets()) spec->set_num_buckets(128);
  if (!spec->has_divisor()) spec->set_divisor(0.301);
  RETURN_IF_ERROR(CheckInRange("hstu_time_bias.num_buckets", spec->num_buckets(), 1, kMaxBuckets));
  RETURN_IF_ERROR(CheckInRange("hstu_time_bias.divisor", spec->divisor(), 1e-3, 1e3));
  return CheckTables(spec);
}

// Values -----------------------------------------------------------------------

class HstuTimeBiasPlan final : public Plan {
 public:
  explicit HstuTimeBiasPlan(const HstuTimeBiasSpec& spec)
      : num_buckets_(spec.num_buckets()),
        divisor_(static_cast<float>(spec.divisor())),
        position_table_(FloatsOf(spec.position_table())),
        time_table_(FloatsOf(spec.time_table())) {}

  size_t bytes() const override {
    return (position_table_.capacity() + time_table_.capacity()) * sizeof(float);
  }

  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::Sequences& sequences = shape.selection.sequences();
    const v1::DType dtype = shape.tensors[tensor].dtype;
    if (shape.format.layout() == v1::LAYOUT_BIAS) {
      return StoreBlocks(dtype, out, [&](int64_t index, std::span<float> block) {
        for (size_t i = 0; i < block.size(); ++i) {
          block[i] = BiasAt(sequences, begin + index + static_cast<int64_t>(i));
        }
      });
    }
    for (size_t i = 0; i < out.size() / sizeof(int32_t); ++i) {
      const auto bucket =
          static_cast<int32_t>(BucketAt(sequences, begin + static_cast<int64_t>(i)));
      std::memcpy(out.data() + i * sizeof(bucket), &bucket, sizeof(bucket));
    }
  }

  void Describe(v1::DescribeTableResponse*) const override {}

 private:
  int64_t BucketOf(int64_t difference) const {
    const int64_t magnitude = std::max<int64_t>(std::abs(difference), 1);
    return std::min(static_cast<int64_t>(LogF(static_cast<float>(magnitude)) / divisor_),
                    num_buckets_);
  }

  int64_t BucketAt(const v1::Sequences& sequences, int64_t element) const {
    const int64_t length = sequences.length();
    const int64_t* times = sequences.values().data() + element / length / length * length;
    const int64_t next = std::min(element / length % length + 1, length - 1);
    return BucketOf(times[next] - times[element % length]);
  }

  float BiasAt(const v1::Sequences& sequences, int64_t element) const {
    const int64_t length = sequences.length();
    const int64_t zero = static_cast<int64_t>(position_table_.size()) / 2;
    const int64_t place = zero + element % length - element / length % length;
    return position_table_[static_cast<size_t>(place)] +
           time_table_[static_cast<size_t>(BucketAt(sequences, element))];
  }

  int64_t num_buckets_;
  float divisor_;
  std::vector<float> position_table_;  // [2 length - 1]; empty when there is none
  std::vector<float> time_table_;      // [num_buckets + 1]
};

// Shapes -----------------------------------------------------------------------

const LayoutDTypes kFormats[] = {{v1::LAYOUT_TIME_BUCKETS, {v1::DTYPE_I32}},
                                 {v1::LAYOUT_BIAS, FloatDTypes()}};

absl::Status CheckBiasLength(const HstuTimeBiasSpec& spec, int64_t length) {
  if (!spec.has_time_table()) {
    return FieldError("hstu_time_bias.time_table", "is required for a bias");
  }
  const int64_t longest = (spec.position_table().shape(0) + 1) / 2;
  if (length <= longest) return absl::OkStatus();
  return FieldError("selection.sequences.length",
                    absl::StrCat("position_table has rows for ", longest, " tokens, got ", length));
}

class HstuTimeBiasFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "hstu_time_bias"; }
  absl::string_view numerics_version() const override { return "hstu_time_bias-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override { return LayoutsOf(kFormats); }
  std::vector<v1::DType> dtypes() const override { return DTypesOf(kFormats); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeHstu(spec->mutable_hstu_time_bias());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, kFormats, &shape.format));
    ASSIGN_OR_RETURN(ResolvedSequences sequences, ResolveSequences(selection, {}));
    const v1::Sequences& times = sequences.selection.sequences();
    for (int i = 0; i < times.values_size(); ++i) {
      RETURN_IF_ERROR(CheckInRange(absl::StrCat("selection.sequences.values[", i, "]"),
                                   times.values(i), -kMaxTimestamp, kMaxTimestamp));
    }
    const bool bias = shape.format.layout() == v1::LAYOUT_BIAS;
    if (bias) {
      RETURN_IF_ERROR(CheckBiasLength(spec.proto().hstu_time_bias(), sequences.length));
    }
    shape.tensors = {{.name = bias ? "attention_bias" : "time_buckets",
                      .dtype = shape.format.dtype(),
                      .shape = {sequences.batch_size, sequences.length, sequences.length},
                      .unit = 1}};
    shape.selection = std::move(sequences.selection);
    shape.coordinates_key = std::move(sequences.coordinates_key);
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<HstuTimeBiasPlan>(spec.proto().hstu_time_bias());
  }
};

}  // namespace

const Family& HstuTimeBiasFamily() {
  static const HstuTimeBiasFamilyImpl family;
  return family;
}

}  // namespace posenc
