// T5's relative position buckets: which learned bias a key and a query share.
//
// relative_position = key - query. Bidirectional (encoder): the buckets are split
// in halves, the upper one for keys to the right; causal (decoder): every key
// after the query falls into bucket 0.
//
//   BUCKETS            relative_position_bucket [Q, K]
//   BIAS               attention_bias [H, Q, K]: bias_table[bucket, h]
//   RELATIVE_POSITION  relative_position [Q, K]
//   BUCKET_VECTOR, BIAS_VECTOR  the same for the Q+K-1 relative positions; entry v
//                      belongs to relative position -(query_offset + Q - 1) + v
//
// position_ids stand for queries and keys at once, and so do points, whose relative_position is
// trunc((key - query) * coordinate_scale) in float32 (UDOP). With num_segments, tokens of
// different segments have a bucket of their pair of segments (CPM-Ant). With global_block_size,
// keys are LongT5's G = length / global_block_size blocks and a batch comes first:
//
//   [B, L, G], bias [B, H, L, G];  GLOBAL_BLOCK_IDS global_block_ids [B, L];
//   GLOBAL_SEGMENT_IDS global_segment_ids [B, G]: 1 where the block has tokens
//
// Raffel et al., arXiv:1910.10683; reference/other-encodings.md, section 3. The formula and its
// roundings: t5_buckets.h.
// Values: t5_plan.h.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/families.h"
#include "lib/families/float_table.h"
#include "lib/families/grid_selection.h"
#include "lib/families/layout_dtypes.h"
#include "lib/families/mask_tokens.h"
#include "lib/families/selection.h"
#include "lib/families/store.h"
#include "lib/families/t5_plan.h"

namespace posenc {
namespace {

// Far above any model (512); a plan of this many takes a fraction of a second.
constexpr int64_t kMaxNumBuckets = 4096;
constexpr int64_t kMaxNumSegments = 1024;
constexpr double kMaxBiasScale = 0x1p20;
constexpr double kMaxCoordinateScale = 0x1p20;

const LayoutDTypes kFormats[] = {{v1::LAYOUT_BUCKETS, {v1::DTYPE_I32}},
                                 {v1::LAYOUT_BUCKET_VECTOR, {v1::DTYPE_I32}},
                                 {v1::LAYOUT_BIAS, FloatDTypes()},
                                 {v1::LAYOUT_BIAS_VECTOR, FloatDTypes()},
                                 {v1::LAYOUT_RELATIVE_POSITION, {v1::DTYPE_I32}},
                                 {v1::LAYOUT_GLOBAL_BLOCK_IDS, {v1::DTYPE_I32}},
                                 {v1::LAYOUT_GLOBAL_SEGMENT_IDS, {v1::DTYPE_I32}}};

// Canonicalize -------------------------------------------------------------------

absl::Status CanonicalizeBuckets(v1::T5BiasSpec* t5) {
  if (!t5->has_num_buckets()) t5->set_num_buckets(32);
  if (!t5->has_max_distance()) t5->set_max_distance(128);
  if (!t5->has_bidirectional()) t5->set_bidirectional(true);
  const int64_t directions = t5->bidirectional() ? 2 : 1;

  // Two a direction: one exact, one logarithmic.
  RETURN_IF_ERROR(
      CheckInRange("t5.num_buckets", t5->num_buckets(), 2 * directions, kMaxNumBuckets));
  if (t5->num_buckets() % directions != 0) {
    return FieldError("t5.num_buckets",
                      absl::StrCat("must be even when bidirectional, got ", t5->num_buckets()));
  }
  RETURN_IF_ERROR(CheckInRange("t5.max_distance", t5->max_distance(), 1, kMaxPosition));
  const int64_t max_exact = t5->num_buckets() / directions / 2;
  if (t5->max_distance() <= max_exact) {
    return FieldError(
        "t5.max_distance",
        absl::StrCat("must be above the ", max_exact, " distances that have a bucket of their own",
                     " (num_buckets / ", 2 * directions, "), got ", t5->max_distance()));
  }
  RETURN_IF_ERROR(CheckEnum("t5.bucket_order", v1::BucketOrder_IsValid(t5->bucket_order()),
                            t5->bucket_order()));
  if (t5->bucket_order() == v1::BUCKET_ORDER_T5) t5->clear_bucket_order();
  return absl::OkStatus();
}

// [heads, buckets] to [buckets, heads]. REQUIRES: a canonical table.
void Transpose(v1::FloatTable* table) {
  const int64_t heads = table->shape(0);
  const int64_t buckets = table->shape(1);
  const std::vector<float> by_head = FloatsOf(*table);
  std::vector<float> by_bucket(by_head.size());
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t bucket = 0; bucket < buckets; ++bucket) {
      by_bucket[static_cast<size_t>(bucket * heads + head)] =
          by_head[static_cast<size_t>(head * buckets + bucket)];
    }
  }
  std::memcpy(table->mutable_f32()->data(), by_bucket.data(), table->f32().size());
  table->set_shape(0, buckets);
  table->set_shape(1, heads);
}

absl::Status CanonicalizeTable(v1::T5BiasSpec* t5) {
  const bool heads_first = t5->table_heads_first();
  t5->clear_table_heads_first();
  if (!t5->has_bias_table()) return absl::OkStatus();
  v1::FloatTable* table = t5->mutable_bias_table();
  if (!heads_first) {
    return CanonicalizeFloatTable("t5.bias_table", {T5TableRows(*t5), kAnyLength}, table);
  }
  RETURN_IF_ERROR(CanonicalizeFloatTable("t5.bias_table", {kAnyLength, T5TableRows(*t5)}, table));
  Transpose(table);
  return absl::OkStatus();
}

absl::Status CanonicalizeSegments(const v1::T5BiasSpec& t5) {
  if (!t5.has_num_segments()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckInRange("t5.num_segments", t5.num_segments(), 1, kMaxNumSegments));
  if (!t5.has_global_block_size()) return absl::OkStatus();
  return FieldError("t5.num_segments", "has no meaning with global_block_size");
}

absl::Status CanonicalizeCoordinates(const v1::T5BiasSpec& t5) {
  constexpr absl::string_view kField = "t5.coordinate_scale";
  if (!t5.has_coordinate_scale()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckPositive(kField, t5.coordinate_scale(), kMaxCoordinateScale));
  if (t5.has_global_block_size()) {
    return FieldError(kField, "has no meaning with global_block_size");
  }
  if (t5.has_num_segments()) return FieldError(kField, "has no meaning with num_segments");
  return absl::OkStatus();
}

absl::Status CanonicalizeScale(v1::T5BiasSpec* t5) {
  if (!t5->has_bias_scale()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckPositive("t5.bias_scale", t5->bias_scale(), kMaxBiasScale));
  if (!t5->has_bias_table()) return FieldError("t5.bias_scale", "needs a bias_table");
  if (t5->bias_scale() == 1) t5->clear_bias_scale();
  return absl::OkStatus();
}

absl::Status CanonicalizeT5(v1::T5BiasSpec* t5) {
  RETURN_IF_ERROR(CanonicalizeBuckets(t5));
  RETURN_IF_ERROR(CanonicalizeSegments(*t5));
  RETURN_IF_ERROR(CanonicalizeCoordinates(*t5));
  RETURN_IF_ERROR(CanonicalizeScale(t5));
  RETURN_IF_ERROR(CanonicalizeTable(t5));
  if (!t5->has_global_block_size()) return absl::OkStatus();
  return CheckInRange("t5.global_block_size", t5->global_block_size(), 1, kMaxGridSide);
}

// Shapes -------------------------------------------------------------------------

bool IsGlobalLayout(v1::Layout layout) {
  return layout == v1::LAYOUT_GLOBAL_BLOCK_IDS || layout == v1::LAYOUT_GLOBAL_SEGMENT_IDS;
}

bool IsVector(v1::Layout layout) {
  return layout == v1::LAYOUT_BUCKET_VECTOR || layout == v1::LAYOUT_BIAS_VECTOR;
}

absl::string_view TensorName(v1::Layout layout) {
  switch (layout) {
    case v1::LAYOUT_BUCKET_VECTOR:
      return "relative_position_bucket_vector";
    case v1::LAYOUT_BIAS:
      return "attention_bias";
    case v1::LAYOUT_BIAS_VECTOR:
      return "attention_bias_vector";
    case v1::LAYOUT_RELATIVE_POSITION:
      return "relative_position";
    case v1::LAYOUT_GLOBAL_BLOCK_IDS:
      return "global_block_ids";
    case v1::LAYOUT_GLOBAL_SEGMENT_IDS:
      return "global_segment_ids";
    default:
      return "relative_position_bucket";
  }
}

absl::Status CheckLayout(const v1::T5BiasSpec& t5, const v1::Selection& selection,
                         v1::Layout layout) {
  if ((layout == v1::LAYOUT_BIAS || layout == v1::LAYOUT_BIAS_VECTOR) && !t5.has_bias_table()) {
    return FieldError("t5.bias_table", "is required for a bias");
  }
  if (IsGlobalLayout(layout) && !t5.has_global_block_size()) {
    return FieldError("t5.global_block_size", "is required for global blocks");
  }
  if (selection.has_points() && !t5.has_coordinate_scale()) {
    return FieldError("t5.coordinate_scale", "is required for points");
  }
  if (IsVector(layout) && (t5.has_global_block_size() || !selection.has_attention_grid())) {
    return FieldError("format.layout",
                      "a vector is of the relative positions of an attention_grid");
  }
  return absl::OkStatus();
}

// An i32 holds relative positions up to here; buckets of farther ones are fine.
absl::Status CheckFits(absl::string_view field, int64_t farthest) {
  if (farthest <= INT32_MAX) return absl::OkStatus();
  return FieldError(field, absl::StrCat("relative positions must fit an i32, got ", farthest));
}

// Dimensions of a tensor without heads; `heads_at` is where those go in a bias.
struct Dimensions {
  std::vector<int64_t> shape;
  size_t heads_at = 0;
};

absl::StatusOr<Dimensions> ResolveGlobal(int64_t block_size, const v1::Selection& selection,
                                         TableShape* shape) {
  ASSIGN_OR_RETURN(ResolvedMask mask, ResolveMask(selection));
  shape->selection = std::move(mask.selection);
  shape->coordinates_key = std::move(mask.coordinates_key);
  const int64_t blocks = mask.width / block_size;
  switch (shape->format.layout()) {
    case v1::LAYOUT_GLOBAL_BLOCK_IDS:
      return Dimensions{{mask.height, mask.width}};
    case v1::LAYOUT_GLOBAL_SEGMENT_IDS:
      return Dimensions{{mask.height, blocks}};
    default:
      return Dimensions{{mask.height, mask.width, blocks}, 1};
  }
}

absl::StatusOr<Dimensions> ResolveIds(const v1::Selection& selection, TableShape* shape) {
  ASSIGN_OR_RETURN(Positions positions, ResolvePositions(selection, 1 - kMaxPosition));
  if (shape->format.layout() == v1::LAYOUT_RELATIVE_POSITION && positions.count > 0) {
    const auto& ids = positions.selection.position_ids().ids();
    const auto [min, max] = std::minmax_element(ids.begin(), ids.end());
    RETURN_IF_ERROR(CheckFits("selection.position_ids.ids", *max - *min));
  }
  shape->selection = std::move(positions.selection);
  shape->coordinates_key = std::move(positions.coordinates_key);
  return Dimensions{{positions.count, positions.count}};
}

absl::StatusOr<Dimensions> ResolveCoordinates(double coordinate_scale,
                                              const v1::Selection& selection, TableShape* shape) {
  ASSIGN_OR_RETURN(ResolvedPoints points, ResolvePoints(selection, 1, 1));
  if (shape->format.layout() == v1::LAYOUT_RELATIVE_POSITION && points.count > 0) {
    const auto& coordinates = points.selection.points().coordinates();
    const auto [min, max] = std::minmax_element(coordinates.begin(), coordinates.end());
    RETURN_IF_ERROR(CheckFits("selection.points.coordinates",
                              T5CoordinateDistance(*min, *max, coordinate_scale)));
  }
  shape->selection = std::move(points.selection);
  shape->coordinates_key = std::move(points.coordinates_key);
  return Dimensions{{points.count, points.count}};
}

// A segment a key, and no other list.
absl::StatusOr<Dimensions> ResolveSegments(int64_t num_segments, const v1::Selection& selection,
                                           TableShape* shape) {
  if (!selection.has_token_grid()) return WrongSelection(selection, "a token_grid");
  ASSIGN_OR_RETURN(Grid grid,
                   ResolveTokens({.sequence_ids = true, .queries_are_tokens = true}, selection));
  const auto& segments = grid.selection.token_grid().sequence_ids();
  for (int i = 0; i < segments.size(); ++i) {
    RETURN_IF_ERROR(CheckInRange(absl::StrCat("selection.token_grid.sequence_ids[", i, "]"),
                                 segments[i], 0, num_segments - 1));
  }
  shape->selection = std::move(grid.selection);
  shape->coordinates_key = std::move(grid.coordinates_key);
  return Dimensions{{grid.query_length, grid.key_length}};
}

absl::StatusOr<Dimensions> ResolveAttention(const v1::Selection& selection, TableShape* shape) {
  ASSIGN_OR_RETURN(Grid grid, ResolveGrid(selection));
  if (shape->format.layout() == v1::LAYOUT_RELATIVE_POSITION) {
    RETURN_IF_ERROR(CheckFits("selection.attention_grid",
                              -std::min<int64_t>(grid.first_relative_position(), 0)));
  }
  Dimensions dimensions{{grid.query_length, grid.key_length}};
  if (IsVector(shape->format.layout())) dimensions.shape = {grid.vector_length()};
  shape->selection = std::move(grid.selection);
  shape->coordinates_key = std::move(grid.coordinates_key);
  return dimensions;
}

// Family -------------------------------------------------------------------------

class T5FamilyImpl final : public Family {
 public:
  absl::string_view name() const override { return "t5"; }
  absl::string_view numerics_version() const override { return "t5-1"; }
  bool rows_are_positions() const override { return false; }
  std::vector<v1::Layout> layouts() const override { return LayoutsOf(kFormats); }
  std::vector<v1::DType> dtypes() const override { return DTypesOf(kFormats); }

  absl::Status Canonicalize(v1::EncodingSpec* spec) const override {
    return CanonicalizeT5(spec->mutable_t5());
  }

  absl::StatusOr<TableShape> Resolve(const CanonicalSpec& spec, const v1::Selection& selection,
                                     const v1::TensorFormat& format) const override {
    const v1::T5BiasSpec& t5 = spec.proto().t5();
    TableShape shape;
    shape.format = format;
    RETURN_IF_ERROR(ResolveFormat(*this, kFormats, &shape.format));
    const v1::Layout layout = shape.format.layout();
    RETURN_IF_ERROR(CheckLayout(t5, selection, layout));
    ASSIGN_OR_RETURN(
        Dimensions dimensions,
        t5.has_global_block_size()  ? ResolveGlobal(t5.global_block_size(), selection, &shape)
        : t5.has_num_segments()     ? ResolveSegments(t5.num_segments(), selection, &shape)
        : t5.has_coordinate_scale() ? ResolveCoordinates(t5.coordinate_scale(), selection, &shape)
        : selection.has_position_ids() ? ResolveIds(selection, &shape)
                                       : ResolveAttention(selection, &shape));
    if (layout == v1::LAYOUT_BIAS || layout == v1::LAYOUT_BIAS_VECTOR) {
      dimensions.shape.insert(
          dimensions.shape.begin() + static_cast<ptrdiff_t>(dimensions.heads_at),
          t5.bias_table().shape(1));
    }
    shape.tensors = {{.name = std::string(TensorName(layout)),
                      .dtype = shape.format.dtype(),
                      .shape = std::move(dimensions.shape),
                      .unit = 1}};
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
