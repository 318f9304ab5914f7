#include "lib/families/t5_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "lib/families/float_table.h"
#include "lib/families/longt5_blocks.h"
#include "lib/families/store.h"
#include "lib/families/t5_buckets.h"
#include "lib/families/toeplitz.h"

namespace posenc {
namespace {

std::span<int32_t> AsIntegers(std::span<std::byte> out) {
  return {reinterpret_cast<int32_t*>(out.data()), out.size() / sizeof(int32_t)};
}

absl::string_view SequenceOf(const v1::TokenMask& mask, int64_t batch) {
  return absl::string_view(mask.valid())
      .substr(static_cast<size_t>(batch * mask.width()), static_cast<size_t>(mask.width()));
}

std::vector<int64_t> FirstDistances(const v1::T5BiasSpec& t5) {
  return T5BucketFirstDistances(
      {.num_buckets = t5.bidirectional() ? t5.num_buckets() / 2 : t5.num_buckets(),
       .max_distance = t5.max_distance(),
       .order = t5.bucket_order()});
}

}  // namespace

// Beyond 2^32 every distance is in the last bucket, whose runs are counted in 33 bits.
int64_t T5CoordinateDistance(double query, double key, double coordinate_scale) {
  constexpr float kFarthest = 0x1p32f;
  const float distance =
      (static_cast<float>(key) - static_cast<float>(query)) * static_cast<float>(coordinate_scale);
  return static_cast<int64_t>(std::clamp(distance, -kFarthest, kFarthest));
}

T5Plan::T5Plan(const v1::T5BiasSpec& t5)
    : bidirectional_(t5.bidirectional()),
      global_block_size_(t5.global_block_size()),
      num_segments_(t5.num_segments()),
      num_buckets_(t5.num_buckets()),
      coordinate_scale_(t5.coordinate_scale()),
      first_distance_(FirstDistances(t5)),
      bias_table_(FloatsOf(t5.bias_table())),
      heads_(static_cast<int64_t>(bias_table_.size()) / T5TableRows(t5)) {
  if (!t5.has_bias_scale()) return;
  for (float& bias : bias_table_) bias *= static_cast<float>(t5.bias_scale());
}

size_t T5Plan::bytes() const {
  return first_distance_.capacity() * sizeof(int64_t) + bias_table_.capacity() * sizeof(float);
}

void T5Plan::Describe(v1::DescribeTableResponse* response) const {
  response->mutable_bucket_first_distance()->Add(first_distance_.begin(), first_distance_.end());
}

void T5Plan::Fill(const TableShape& shape, size_t /*tensor*/, int64_t begin,
                  std::span<std::byte> out) const {
  if (shape.selection.has_token_mask()) return FillGlobal(shape, begin, out);
  if (shape.selection.has_token_grid()) return FillSegments(shape, begin, out);
  if (shape.selection.has_position_ids()) {
    const auto& ids = shape.selection.position_ids().ids();
    return FillPairs(shape, ids.size(), begin, out,
                     [&](int query, int key) { return ids[key] - ids[query]; });
  }
  if (shape.selection.has_points()) {
    const auto& points = shape.selection.points().coordinates();
    return FillPairs(shape, points.size(), begin, out, [&](int query, int key) {
      return T5CoordinateDistance(points[query], points[key], coordinate_scale_);
    });
  }
  FillGrid(shape, begin, out, /*cold=*/false);
}

void T5Plan::FillCold(const TableShape& shape, std::span<const TensorPart> parts) const {
  if (!shape.selection.has_attention_grid()) return Plan::FillCold(shape, parts);
  for (const TensorPart& part : parts) FillGrid(shape, part.begin, part.out, /*cold=*/true);
}

void T5Plan::FillGrid(const TableShape& shape, int64_t begin, std::span<std::byte> out,
                      bool cold) const {
  const v1::AttentionGrid& grid = shape.selection.attention_grid();
  const int64_t element_bytes = ElementBytes(shape.format.dtype());
  const auto fill = [&](int64_t head, int64_t first, std::span<std::byte> run) {
    FillRun(shape.format, head, first, run);
  };
  if (shape.format.layout() == v1::LAYOUT_BUCKET_VECTOR ||
      shape.format.layout() == v1::LAYOUT_BIAS_VECTOR) {
    FillToeplitzVectors(grid, element_bytes, begin, out, fill);
  } else {
    const auto fill_matrix = cold ? FillColdToeplitzMatrix : FillToeplitzMatrix;
    fill_matrix(grid, element_bytes, begin, out, fill);
  }
}

template <typename Distance>
void T5Plan::FillPairs(const TableShape& shape, int64_t count, int64_t begin,
                       std::span<std::byte> out, const Distance& distance) const {
  const auto element_bytes = static_cast<size_t>(ElementBytes(shape.format.dtype()));
  FillByRows(count, static_cast<int64_t>(element_bytes), begin, out,
             [&](int64_t row, int64_t first, std::span<std::byte> part) {
               const int query = static_cast<int>(row % count);
               for (int key = static_cast<int>(first); !part.empty(); ++key) {
                 FillRun(shape.format, row / count, distance(query, key),
                         part.first(element_bytes));
                 part = part.subspan(element_bytes);
               }
             });
}

// Rows [head, query]. Keys of the query's own segment have the bucket of their distance.
void T5Plan::FillSegments(const TableShape& shape, int64_t begin, std::span<std::byte> out) const {
  const v1::TokenGrid& tokens = shape.selection.token_grid();
  const v1::AttentionGrid& grid = tokens.attention_grid();
  const auto segment = [&](int64_t token) { return tokens.sequence_ids(static_cast<int>(token)); };
  const v1::DType dtype = shape.format.dtype();
  const bool is_bias = shape.format.layout() == v1::LAYOUT_BIAS;
  const auto element_bytes = static_cast<size_t>(ElementBytes(dtype));
  FillByRows(grid.key_length(), ElementBytes(dtype), begin, out,
             [&](int64_t row, int64_t first, std::span<std::byte> part) {
               const int64_t query = grid.query_offset() + row % grid.query_length();
               for (int64_t key = first; !part.empty(); ++key) {
                 const std::span<std::byte> element = part.first(element_bytes);
                 part = part.subspan(element_bytes);
                 const bool same = segment(key) == segment(query);
                 if (same || shape.format.layout() == v1::LAYOUT_RELATIVE_POSITION) {
                   FillRun(shape.format, row / grid.query_length(), key - query, element);
                   continue;
                 }
                 const int64_t bucket =
                     num_buckets_ + segment(query) * num_segments_ + segment(key);
                 if (is_bias) {
                   StoreElement(BiasOf(bucket, row / grid.query_length()), dtype, element.data());
                 } else {
                   AsIntegers(element).front() = static_cast<int32_t>(bucket);
                 }
               }
             });
}

// Rows [batch, head, query] of global blocks, or of the blocks' own tensors.
void T5Plan::FillGlobal(const TableShape& shape, int64_t begin, std::span<std::byte> out) const {
  const v1::TokenMask& mask = shape.selection.token_mask();
  const v1::Layout layout = shape.format.layout();
  const int64_t length = mask.width();
  const int64_t heads = layout == v1::LAYOUT_BIAS ? heads_ : 1;
  int64_t batch = -1;
  std::vector<int32_t> block_ids;  // of the tokens of `batch`
  const auto use_batch = [&](int64_t wanted) {
    if (wanted == batch) return;
    batch = wanted;
    block_ids = LongT5BlockIds(SequenceOf(mask, batch), global_block_size_);
  };
  const auto element_bytes = ElementBytes(shape.format.dtype());
  if (layout == v1::LAYOUT_GLOBAL_BLOCK_IDS) {
    FillByRows(length, element_bytes, begin, out,
               [&](int64_t row, int64_t first, std::span<std::byte> part) {
                 use_batch(row);
                 const std::span<int32_t> ids = AsIntegers(part);
                 std::copy_n(block_ids.begin() + first, ids.size(), ids.begin());
               });
    return;
  }
  FillByRows(length / global_block_size_, element_bytes, begin, out,
             [&](int64_t row, int64_t first, std::span<std::byte> part) {
               if (layout == v1::LAYOUT_GLOBAL_SEGMENT_IDS) {
                 use_batch(row);
                 const int32_t last = *std::max_element(block_ids.begin(), block_ids.end());
                 for (int32_t& exists : AsIntegers(part)) exists = first++ <= last;
                 return;
               }
               use_batch(row / (heads * length));
               const int32_t own = block_ids[static_cast<size_t>(row % length)];
               FillRun(shape.format, row / length % heads, first - own, part);
             });
}

void T5Plan::FillRun(const v1::TensorFormat& format, int64_t head, int64_t first,
                     std::span<std::byte> out) const {
  if (format.layout() == v1::LAYOUT_RELATIVE_POSITION) {
    const std::span<int32_t> positions = AsIntegers(out);
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(first));
  } else if (format.dtype() == v1::DTYPE_I32) {
    const std::span<int32_t> buckets = AsIntegers(out);
    ForEachBucket(first, static_cast<int64_t>(buckets.size()),
                  [&](int64_t bucket, int64_t begin, int64_t end) {
                    std::fill(buckets.begin() + begin, buckets.begin() + end,
                              static_cast<int32_t>(bucket));
                  });
  } else {
    StoreBlocks(format.dtype(), out, [&](int64_t index, std::span<float> block) {
      ForEachBucket(first + index, static_cast<int64_t>(block.size()),
                    [&](int64_t bucket, int64_t begin, int64_t end) {
                      std::fill(block.begin() + begin, block.begin() + end, BiasOf(bucket, head));
                    });
    });
  }
}

template <typename FillBucket>
void T5Plan::ForEachBucket(int64_t first, int64_t count, const FillBucket& fill) const {
  for (int64_t index = 0; index < count;) {
    const auto [bucket, next] = BucketAndNext(first + index);
    const int64_t end = next - first < count ? next - first : count;
    fill(bucket, index, end);
    index = end;
  }
}

std::pair<int64_t, int64_t> T5Plan::BucketAndNext(int64_t position) const {
  constexpr int64_t kNever = std::numeric_limits<int32_t>::max() * int64_t{4};
  if (position > 0 && !bidirectional_) return {0, kNever};
  const int64_t distance = std::abs(position);
  const auto next = std::upper_bound(first_distance_.begin(), first_distance_.end(), distance);
  const int64_t bucket = next - first_distance_.begin() - 1;
  // Towards the query distances fall, so a bucket ends past its first distance.
  if (position <= 0) return {bucket, 1 - *(next - 1)};
  return {static_cast<int64_t>(first_distance_.size()) + bucket,
          next == first_distance_.end() ? kNever : *next};
}

}  // namespace posenc
