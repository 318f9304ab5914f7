// Relative indexes: the row of a learned table that a (query, key) pair takes,
// from their distance alone.
//
// The distance is written as the scheme's own code writes it: key - query in Shaw
// et al., query - key in BERT and DeBERTa. Whoever mixes them up mirrors the table.
// reference/other-encodings.md, sections 4.1 to 4.4; the schemes: relative.proto.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/families/checks.h"
#include "lib/families/deberta_buckets.h"
#include "lib/families/families.h"
#include "lib/families/selection.h"
#include "lib/families/toeplitz.h"

namespace posenc {
namespace {

using v1::RelativeIndexSpec;

constexpr absl::string_view kSpec = "relative_index";

// Largest clip distance and table half: sums of two stay in int32.
constexpr int64_t kMaxDistance = int64_t{1} << 30;

// Bounds the table of thresholds: to distance 2^32 a bucket grows by at most 56 a
// position_bucket, since max_relative_positions is no smaller.
constexpr int64_t kMaxPositionBuckets = 1024;

std::string Field(absl::string_view name) { return absl::StrCat(kSpec, ".", name); }

// Canonicalize -----------------------------------------------------------------

absl::Status CanonicalizeClipped(v1::ClippedScheme* scheme) {
  if (!scheme->has_left()) return FieldError(Field("clipped.left"), "is required");
  if (!scheme->has_right()) scheme->set_right(scheme->left());
  RETURN_IF_ERROR(CheckInRange(Field("clipped.left"), scheme->left(), 0, kMaxDistance));
  RETURN_IF_ERROR(CheckEnum(Field("clipped.direction"),
                            v1::DistanceDirection_IsValid(scheme->direction()),
                            scheme->direction()));
  if (scheme->direction() == v1::DISTANCE_DIRECTION_KEY_MINUS_QUERY) scheme->clear_direction();
  return CheckInRange(Field("clipped.right"), scheme->right(), 0, kMaxDistance);
}

absl::Status CanonicalizeUnclipped(v1::UnclippedScheme* scheme) {
  const std::string length = Field("unclipped.max_position_embeddings");
  if (!scheme->has_max_position_embeddings()) return FieldError(length, "is required");
  RETURN_IF_ERROR(CheckInRange(length, scheme->max_position_embeddings(), 1, kMaxDistance));
  RETURN_IF_ERROR(CheckEnum(Field("unclipped.direction"),
                            v1::DistanceDirection_IsValid(scheme->direction()),
                            scheme->direction()));
  if (scheme->direction() == v1::DISTANCE_DIRECTION_UNSPECIFIED) {
    scheme->set_direction(v1::DISTANCE_DIRECTION_QUERY_MINUS_KEY);
  }
  return absl::OkStatus();
}

absl::Status CanonicalizeDeberta(v1::DebertaScheme* scheme) {
  if (!scheme->has_position_buckets()) scheme->set_position_buckets(256);
  if (!scheme->has_max_relative_positions()) scheme->set_max_relative_positions(512);
  RETURN_IF_ERROR(CheckEnum(Field("deberta.clamp"), v1::DebertaClamp_IsValid(scheme->clamp()),
                            scheme->clamp()));
  if (scheme->clamp() == v1::DEBERTA_CLAMP_UNSPECIFIED) {
    scheme->set_clamp(v1::DEBERTA_CLAMP_HUGGING_FACE);
  }
  const int64_t buckets = scheme->position_buckets();
  if (buckets == 1) {
    return FieldError(Field("deberta.position_buckets"), "must be 0 (none) or at least 2, got 1");
  }
  RETURN_IF_ERROR(CheckInRange(Field("deberta.position_buckets"), buckets, 0, kMaxPositionBuckets));
  // Fewer distances than buckets, or a logarithm of one to divide by, make no sense.
  const int64_t least = buckets == 0 ? 1 : std::max(buckets, buckets / 2 + 2);
  return CheckInRange(Field("deberta.max_relative_positions"), scheme->max_relative_positions(),
                      least, kMaxDistance);
}

absl::Status CanonicalizeDebertaV1(v1::DebertaV1Scheme* scheme) {
  if (!scheme->has_max_relative_positions()) scheme->set_max_relative_positions(512);
  return CheckInRange(Field("deberta_v1.max_relative_positions"), scheme->max_relative_positions(),
                      1, kMaxDistance);
}

absl::Status CanonicalizeScheme(RelativeIndexSpec* spec) {
  switch (spec->scheme_case()) {
    case RelativeIndexSpec::kClipped:
      return CanonicalizeClipped(spec->mutable_clipped());
    case RelativeIndexSpec::kUnclipped:
      return CanonicalizeUnclipped(spec->mutable_unclipped());
    case RelativeIndexSpec::kDeberta:
      return CanonicalizeDeberta(spec->mutable_deberta());
    case RelativeIndexSpec::kDebertaV1:
      return CanonicalizeDebertaV1(spec->mutable_deberta_v1());
    case RelativeIndexSpec::SCHEME_NOT_SET:
      break;
  }
  return FieldError(kSpec, "a scheme is required: clipped, unclipped, deberta or deberta_v1");
}

// Shapes -----------------------------------------------------------------------

bool IsVector(v1::Layout layout) {
  return layout == v1::LAYOUT_RELATIVE_INDEX_VECTOR || layout == v1::LAYOUT_BUCKET_VECTOR;
}

bool IsBucket(v1::Layout layout) {
  return layout == v1::LAYOUT_BUCKETS || layout == v1::LAYOUT_BUCKET_VECTOR;
}

const char* TensorName(v1::Layout layout) {
  if (IsBucket(layout)) {
    return IsVector(layout) ? "relative_position_bucket_vector" : "relative_position_bucket";
  }
  return IsVector(layout) ? "relative_position_index_vector" : "relative_position_index";
}

// Distances that an unclipped table has no row for would read past its ends.
absl::Status CheckReach(const v1::UnclippedScheme& scheme, const Grid& grid) {
  if (grid.vector_length() == 0) return absl::OkStatus();
  const int64_t first = grid.first_relative_position();
  const int64_t last = first + grid.vector_length() - 1;
  const int64_t reach = std::max(std::abs(first), std::abs(last));
  if (reach < scheme.max_position_embeddings()) return absl::OkStatus();
  return FieldError("selection.attention_grid",
                    absl::StrCat("distances must be below unclipped.max_position_embeddings (",
                                 scheme.max_position_embeddings(), "), got ", reach));
}

// Values -----------------------------------------------------------------------

// Index or bucket as a function of key - query, one run of it at a time.
template <typename Value>
void FillRun(int64_t first, std::span<std::byte> out, Value value) {
  for (size_t i = 0; i < out.size() / sizeof(int32_t); ++i) {
    const auto v = static_cast<int32_t>(value(first + static_cast<int64_t>(i)));
    std::memcpy(out.data() + i * sizeof(v), &v, sizeof(v));
  }
}

void FillDebertaV1(const v1::DebertaV1Scheme& scheme, const v1::AttentionGrid& grid, int64_t first,
                   std::span<std::byte> out) {
  const int64_t span =
      std::min(std::max(grid.query_length(), grid.key_length()), scheme.max_relative_positions());
  FillRun(first, out, [span](int64_t r) { return std::clamp(span - r, int64_t{0}, 2 * span - 1); });
}

void FillDeberta(const DebertaBuckets& buckets, bool as_bucket, int64_t first,
                 std::span<std::byte> out) {
  const int64_t span = buckets.span();
  if (as_bucket) return FillRun(first, out, [&](int64_t r) { return buckets.BucketOf(-r); });
  FillRun(first, out, [&](int64_t r) {
    return std::clamp(buckets.BucketOf(-r) + span, int64_t{0}, 2 * span - 1);
  });
}

class RelativeIndexPlan final : public Plan {
 public:
  explicit RelativeIndexPlan(RelativeIndexSpec spec)
      : spec_(std::move(spec)), deberta_(spec_.deberta()) {}

  size_t bytes() const override { return sizeof(*this); }

  void Fill(const TableShape& shape, size_t, int64_t begin,
            std::span<std::byte> out) const override {
    const v1::AttentionGrid& grid = shape.selection.attention_grid();
    const v1::Layout layout = shape.format.layout();
    const auto fill = [&](int64_t, int64_t first, std::span<std::byte> run) {
      FillRelativePositions(grid, IsBucket(layout), first, run);
    };
    if (IsVector(layout)) {
      FillToeplitzVectors(grid, sizeof(int32_t), begin, out, fill);
    } else {
      FillToeplitzMatrix(grid, sizeof(int32_t), begin, out, fill);
    }
  }

  void Describe(v1::DescribeTableResponse*) const override {}

 private:
  void FillRelativePositions(const v1::AttentionGrid& grid, bool as_bucket, int64_t first,
                             std::span<std::byte> out) const {
    switch (spec_.scheme_case()) {
      case RelativeIndexSpec::kClipped: {
        const int64_t left = spec_.clipped().left();
        const int64_t right = spec_.clipped().right();
        const bool mirrored = spec_.clipped().direction() == v1::DISTANCE_DIRECTION_QUERY_MINUS_KEY;
        return FillRun(first, out, [=](int64_t r) {
          return std::clamp(mirrored ? -r : r, -left, right) + left;
        });
      }
      case RelativeIndexSpec::kUnclipped: {
        const int64_t zero = spec_.unclipped().max_position_embeddings() - 1;
        const bool mirrored =
            spec_.unclipped().direction() == v1::DISTANCE_DIRECTION_QUERY_MINUS_KEY;
        return FillRun(first, out, [=](int64_t r) { return zero + (mirrored ? -r : r); });
      }
      case RelativeIndexSpec::kDeberta:
        return FillDeberta(deberta_, as_bucket, first, out);
      case RelativeIndexSpec::kDebertaV1:
        return FillDebertaV1(spec_.deberta_v1(), grid, first, out);
      case RelativeIndexSpec::SCHEME_NOT_SET:
        break;  // never canonical
    }
  }

  const RelativeIndexSpec spec_;
  const DebertaBuckets deberta_;
};

class RelativeIndexFamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return kSpec; }
  absl::string_view numerics_version() const override { return "relative_index-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override {
    return {v1::LAYOUT_RELATIVE_INDEX, v1::LAYOUT_RELATIVE_INDEX_VECTOR, v1::LAYOUT_BUCKETS,
            v1::LAYOUT_BUCKET_VECTOR};
  }
  std::vector<v1::DType> dtypes() const override { return {v1::DTYPE_I32}; }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeScheme(spec->mutable_relative_index());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, &shape.format));
    const v1::Layout layout = shape.format.layout();
    const RelativeIndexSpec& scheme = spec.proto().relative_index();
    if (IsBucket(layout) && !scheme.has_deberta()) {
      return FieldError("format.layout", "only the deberta scheme has buckets");
    }
    ASSIGN_OR_RETURN(Grid grid, ResolveGrid(selection));
    if (scheme.has_unclipped()) RETURN_IF_ERROR(CheckReach(scheme.unclipped(), grid));
    shape.selection = std::move(grid.selection);
    shape.coordinates_key = std::move(grid.coordinates_key);
    const std::vector<int64_t> dims =
        IsVector(layout) ? std::vector<int64_t>{grid.vector_length()}
                         : std::vector<int64_t>{grid.query_length, grid.key_length};
    shape.tensors.push_back(Tensor{TensorName(layout), v1::DTYPE_I32, dims, /*unit=*/1});
    return shape;
  }

  std::shared_ptr<const Plan> MakePlan(const CanonicalSpec& spec) const override {
    return std::make_shared<RelativeIndexPlan>(spec.proto().relative_index());
  }
};

}  // namespace

const Family& RelativeIndexFamily() {
  static const RelativeIndexFamilyImpl family;
  return family;
}

}  // namespace posenc
