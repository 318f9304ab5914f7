// The values of T5: buckets of relative positions, and the bias learned for them.
#ifndef POSENC_LIB_FAMILIES_T5_PLAN_H_
#define POSENC_LIB_FAMILIES_T5_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lib/families/family.h"
#include "posenc/v1/encoding.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Rows of the bias table: buckets, and a row each pair of segments.
inline int64_t T5TableRows(const v1::T5BiasSpec& t5) {
  return t5.num_buckets() + t5.num_segments() * t5.num_segments();
}

// relative_position of two coordinates, rounded step by step as float32 code does.
int64_t T5CoordinateDistance(double query, double key, double coordinate_scale);

class T5Plan final : public Plan {
 public:
  // REQUIRES: a canonical spec.
  explicit T5Plan(const v1::T5BiasSpec& t5);

  size_t bytes() const override;
  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override;
  void FillCold(const TableShape& shape, std::span<const TensorPart> parts) const override;
  void Describe(v1::DescribeTableResponse* response) const override;

 private:
  void FillGrid(const TableShape& shape, int64_t begin, std::span<std::byte> out, bool cold) const;
  // Rows [head, query] of `count` queries and as many keys, whose relative position is
  // distance(query, key); neighbours have nothing in common.
  template <typename Distance>
  void FillPairs(const TableShape& shape, int64_t count, int64_t begin, std::span<std::byte> out,
                 const Distance& distance) const;
  void FillGlobal(const TableShape& shape, int64_t begin, std::span<std::byte> out) const;
  void FillSegments(const TableShape& shape, int64_t begin, std::span<std::byte> out) const;

  float BiasOf(int64_t bucket, int64_t head) const {
    return bias_table_[static_cast<size_t>(bucket * heads_ + head)];
  }

  // The elements of `head` at consecutive relative positions from `first` on.
  void FillRun(const v1::TensorFormat& format, int64_t head, int64_t first,
               std::span<std::byte> out) const;

  // Calls fill(bucket, begin, end) for runs [begin, end) of one bucket, as indexes
  // from 0, that make up `count` relative positions from `first` on.
  template <typename FillBucket>
  void ForEachBucket(int64_t first, int64_t count, const FillBucket& fill) const;

  // The bucket of a relative position, and the next position of another one.
  std::pair<int64_t, int64_t> BucketAndNext(int64_t position) const;

  bool bidirectional_;
  int64_t global_block_size_;  // 0: none
  int64_t num_segments_;       // 0: none
  int64_t num_buckets_;
  double coordinate_scale_;              // 0: none
  std::vector<int64_t> first_distance_;  // [buckets of one direction], ascending
  std::vector<float> bias_table_;        // [T5TableRows(), heads_]; empty when there is none
  int64_t heads_;                        // 0 without a table
};

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_T5_PLAN_H_
