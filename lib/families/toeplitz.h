// Attention grids whose elements depend on the head and on relative_position =
// key position - query position alone: Toeplitz matrices.
//
//   vector   v(h, r)  for the r from first_relative_position on     [H, Q+K-1]
//   matrix   row i of head h is v(h, -(query_offset + i) ...)       [H, Q, K]
//
// so row i + 1 is row i shifted right by one, and a page of many rows costs one
// short run of values and then copies.
#ifndef POSENC_LIB_FAMILIES_TOEPLITZ_H_
#define POSENC_LIB_FAMILIES_TOEPLITZ_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Writes the values of `head` at relative positions first, first + 1, ... until
// `out` is full.
using FillRelative = absl::FunctionRef<void(int64_t head, int64_t first, std::span<std::byte> out)>;

// Writes elements [begin, begin + out.size() / element_bytes) of the flat matrix
// [heads, query_length, key_length]; any cut will do, mid-row too. O(out.size()).
// REQUIRES: the grid is canonical and not empty, the elements lie in the matrix.
void FillToeplitzMatrix(const v1::AttentionGrid& grid, int64_t element_bytes, int64_t begin,
                        std::span<std::byte> out, FillRelative fill);

// The same for the flat vectors [heads, query_length + key_length - 1].
void FillToeplitzVectors(const v1::AttentionGrid& grid, int64_t element_bytes, int64_t begin,
                         std::span<std::byte> out, FillRelative fill);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_TOEPLITZ_H_
