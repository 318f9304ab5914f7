#include "lib/families/alibi_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "lib/families/alibi_slopes.h"
#include "lib/families/store.h"
#include "lib/families/toeplitz.h"
#include "lib/numeric/dtype.h"

namespace posenc {
namespace {

void RoundToBf16(std::span<float> block) {
  for (float& value : block) value = Bf16ToFloat(posenc::RoundToBf16(value));
}

// Distances of consecutive relative positions. Integers up to the last step, so that
// no zero is negative; 32 bits where they suffice, since those fit vector registers.
template <typename Int>
void RelativeDistances(v1::AlibiForm form, Int first, std::span<float> block) {
  const auto fill = [&](const auto& distance) {
    for (size_t i = 0; i < block.size(); ++i) {
      block[i] = static_cast<float>(distance(first + static_cast<Int>(i)));
    }
  };
  switch (form) {
    case v1::ALIBI_FORM_SYMMETRIC:
      return fill([](Int position) { return -std::abs(position); });
    case v1::ALIBI_FORM_SQRT:
      return fill([](Int position) {
        return 0.0f - std::sqrt(static_cast<float>(std::max<Int>(-position, 0)));
      });
    default:  // RELATIVE_CAUSAL
      return fill([](Int position) { return std::min<Int>(position, 0); });
  }
}

// Of two patches of an image, as data2vec 2.0 computes it: the Euclidean one in
// Python's double, then float32.
float PatchDistance(v1::AlibiForm form, int64_t width, int64_t query, int64_t key) {
  const int64_t y = std::abs(query / width - key / width);
  const int64_t x = std::abs(query % width - key % width);
  if (form == v1::ALIBI_FORM_MANHATTAN) return static_cast<float>(-(y + x));
  return 0.0f - static_cast<float>(std::sqrt(static_cast<double>(y * y + x * x)));
}

}  // namespace

bool IsRelative(v1::AlibiForm form) {
  return form == v1::ALIBI_FORM_RELATIVE_CAUSAL || form == v1::ALIBI_FORM_SYMMETRIC ||
         form == v1::ALIBI_FORM_SQRT;
}

AlibiPlan::AlibiPlan(const v1::AlibiSpec& alibi)
    : form_(alibi.form()),
      rounds_to_bf16_(alibi.slope_rounding() == v1::SLOPE_ROUNDING_FALCON_BF16),
      divisor_(alibi.has_scale_head_dim()
                   ? static_cast<float>(std::sqrt(static_cast<double>(alibi.scale_head_dim())))
                   : 1.0f),
      slopes_(AlibiSlopes(alibi)) {}

size_t AlibiPlan::bytes() const { return slopes_.capacity() * sizeof(float); }

void AlibiPlan::Describe(v1::DescribeTableResponse* response) const {
  response->mutable_slopes()->Add(slopes_.begin(), slopes_.end());
}

void AlibiPlan::Fill(const TableShape& shape, size_t tensor, int64_t begin,
                     std::span<std::byte> out) const {
  const v1::DType dtype = shape.tensors[tensor].dtype;
  if (shape.format.layout() == v1::LAYOUT_SLOPES) {
    const size_t count = out.size() / static_cast<size_t>(ElementBytes(dtype));
    StoreFloats(std::span(slopes_).subspan(static_cast<size_t>(begin), count), dtype, out);
  } else if (IsRelative(form_)) {
    FillRelativeForm(shape, dtype, begin, out, /*cold=*/false);
  } else if (form_ == v1::ALIBI_FORM_KEY_MASK) {
    FillKeyMask(shape.selection.token_mask(), dtype, begin, out);
  } else if (form_ == v1::ALIBI_FORM_MANHATTAN || form_ == v1::ALIBI_FORM_EUCLIDEAN) {
    FillPatches(shape.selection.patch_grid(), dtype, begin, out);
  } else {
    FillKeyForm(shape.selection.attention_grid(), dtype, begin, out);
  }
}

void AlibiPlan::FillCold(const TableShape& shape, std::span<const TensorPart> parts) const {
  if (shape.format.layout() == v1::LAYOUT_SLOPES || !IsRelative(form_)) {
    return Plan::FillCold(shape, parts);
  }
  for (const TensorPart& part : parts) {
    FillRelativeForm(shape, shape.format.dtype(), part.begin, part.out, /*cold=*/true);
  }
}

void AlibiPlan::Scale(float slope, std::span<float> block) const {
  if (slope == 0) {  // a head without a bias: +0, whatever the sign of the distance
    std::fill(block.begin(), block.end(), 0.0f);
    return;
  }
  if (rounds_to_bf16_) RoundToBf16(block);
  for (float& value : block) value *= slope;
  if (rounds_to_bf16_) RoundToBf16(block);
  if (divisor_ == 1.0f) return;
  for (float& value : block) value /= divisor_;
  if (rounds_to_bf16_) RoundToBf16(block);
}

template <typename Distances>
void AlibiPlan::FillBias(int64_t head, v1::DType dtype, std::span<std::byte> out,
                         const Distances& distances) const {
  const float slope = slopes_[static_cast<size_t>(head)];
  StoreBlocks(dtype, out, [&](int64_t index, std::span<float> block) {
    distances(index, block);
    Scale(slope, block);
  });
}

void AlibiPlan::FillRelativeForm(const TableShape& shape, v1::DType dtype, int64_t begin,
                                 std::span<std::byte> out, bool cold) const {
  const auto fill = [&](int64_t head, int64_t first, std::span<std::byte> run) {
    FillBias(head, dtype, run, [&](int64_t index, std::span<float> block) {
      const int64_t position = first + index;
      const int64_t last = position + static_cast<int64_t>(block.size()) - 1;
      if (position > INT32_MIN && last <= INT32_MAX) {
        RelativeDistances(form_, static_cast<int32_t>(position), block);
      } else {
        RelativeDistances(form_, position, block);
      }
    });
  };
  const v1::AttentionGrid& grid = shape.selection.attention_grid();
  if (shape.format.layout() == v1::LAYOUT_BIAS) {
    const auto fill_matrix = cold ? FillColdToeplitzMatrix : FillToeplitzMatrix;
    fill_matrix(grid, ElementBytes(dtype), begin, out, fill);
  } else {
    FillToeplitzVectors(grid, ElementBytes(dtype), begin, out, fill);
  }
}

// Rows [head, query] that do not depend on the query.
void AlibiPlan::FillKeyForm(const v1::AttentionGrid& grid, v1::DType dtype, int64_t begin,
                            std::span<std::byte> out) const {
  const int64_t zero_key = form_ == v1::ALIBI_FORM_LAST_ROW ? grid.key_length() - 1 : 0;
  FillByRows(grid.key_length(), ElementBytes(dtype), begin, out,
             [&](int64_t row, int64_t first, std::span<std::byte> part) {
               FillBias(row / grid.query_length(), dtype, part,
                        [&](int64_t index, std::span<float> block) {
                          // Fits: a grid has at most 2^31 keys.
                          const auto distance = static_cast<int32_t>(first + index - zero_key);
                          for (size_t i = 0; i < block.size(); ++i) {
                            block[i] = static_cast<float>(distance + static_cast<int32_t>(i));
                          }
                        });
             });
}

// Rows [sequence, head]. A key's distance is its rank among the attended ones, as
// (cumsum(mask) - 1) * mask gives it.
void AlibiPlan::FillKeyMask(const v1::TokenMask& mask, v1::DType dtype, int64_t begin,
                            std::span<std::byte> out) const {
  const auto heads = static_cast<int64_t>(slopes_.size());
  FillByRows(mask.width(), ElementBytes(dtype), begin, out,
             [&](int64_t row, int64_t first, std::span<std::byte> part) {
               const char* attended = mask.valid().data() + row / heads * mask.width();
               int64_t rank = std::count(attended, attended + first, '\1');
               FillBias(row % heads, dtype, part, [&](int64_t index, std::span<float> block) {
                 const char* key = attended + first + index;
                 for (float& value : block) {
                   value = *key != 0 ? static_cast<float>(rank++) : 0.0f;
                   ++key;
                 }
               });
             });
}

// Rows [head, query patch].
void AlibiPlan::FillPatches(const v1::PatchGrid& grid, v1::DType dtype, int64_t begin,
                            std::span<std::byte> out) const {
  const int64_t patches = grid.height() * grid.width();
  FillByRows(patches, ElementBytes(dtype), begin, out,
             [&](int64_t row, int64_t first, std::span<std::byte> part) {
               FillBias(row / patches, dtype, part, [&](int64_t index, std::span<float> block) {
                 int64_t key = first + index;
                 for (float& value : block) {
                   value = PatchDistance(form_, grid.width(), row % patches, key++);
                 }
               });
             });
}

}  // namespace posenc
