// The values of ALiBi: slopes times distances.
#ifndef POSENC_LIB_FAMILIES_ALIBI_PLAN_H_
#define POSENC_LIB_FAMILIES_ALIBI_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/families/family.h"
#include "posenc/v1/encoding.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Whether the bias depends on relative_position alone, so that it has a vector.
bool IsRelative(v1::AlibiForm form);

class AlibiPlan final : public Plan {
 public:
  // REQUIRES: a canonical spec.
  explicit AlibiPlan(const v1::AlibiSpec& alibi);

  size_t bytes() const override;
  void Fill(const TableShape& shape, size_t tensor, int64_t begin,
            std::span<std::byte> out) const override;
  void FillCold(const TableShape& shape, std::span<const TensorPart> parts) const override;
  void Describe(v1::DescribeTableResponse* response) const override;

 private:
  // Turns distances, float32 and rounded once, into biases of a head, in place.
  void Scale(float slope, std::span<float> block) const;

  // Fills `out` with the biases of a head, where distances(index, block) writes the
  // distances of elements index, index + 1, ...
  template <typename Distances>
  void FillBias(int64_t head, v1::DType dtype, std::span<std::byte> out,
                const Distances& distances) const;

  void FillRelativeForm(const TableShape& shape, v1::DType dtype, int64_t begin,
                        std::span<std::byte> out, bool cold) const;
  void FillKeyForm(const v1::AttentionGrid& grid, v1::DType dtype, int64_t begin,
                   std::span<std::byte> out) const;
  void FillKeyMask(const v1::TokenMask& mask, v1::DType dtype, int64_t begin,
                   std::span<std::byte> out) const;
  void FillPatches(const v1::PatchGrid& grid, v1::DType dtype, int64_t begin,
                   std::span<std::byte> out) const;

  v1::AlibiForm form_;
  bool rounds_to_bf16_;        // after each operation (FALCON_BF16)
  float divisor_;              // sqrt(scale_head_dim), or 1
  std::vector<float> slopes_;  // [AlibiHeads]
};

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_ALIBI_PLAN_H_
