// Tensors of attention, [..., rows, keys], whose rows follow from one another.
//
// Where elements depend on the head and on relative_position = key position - query
// position alone, a matrix is Toeplitz: row i + 1 is row i shifted right by one, and
// a page of many rows costs one short run of values and then copies.
//
//   vector   v(h, r)  for the r from first_relative_position on     [H, Q+K-1]
//   matrix   row i of head h is v(h, -(query_offset + i) ...)       [H, Q, K]
#ifndef POSENC_LIB_FAMILIES_TOEPLITZ_H_
#define POSENC_LIB_FAMILIES_TOEPLITZ_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Writes elements first, first + 1, ... of `row` until `out` is full.
using FillRow = absl::FunctionRef<void(int64_t row, int64_t first, std::span<std::byte> out)>;

// Writes elements [begin, begin + out.size() / element_bytes) of the flat matrix
// [rows, row_length] row by row; any cut will do, mid-row too.
// REQUIRES: row_length > 0, the elements lie in the matrix.
void FillByRows(int64_t row_length, int64_t element_bytes, int64_t begin, std::span<std::byte> out,
                FillRow fill);

// Writes the values of `head` at relative positions first, first + 1, ... until
// `out` is full.
using FillRelative = absl::FunctionRef<void(int64_t head, int64_t first, std::span<std::byte> out)>;

// Writes elements [begin, begin + out.size() / element_bytes) of the flat matrix
// [heads, query_length, key_length]; any cut will do. O(out.size()).
// REQUIRES: the grid is canonical and not empty, the elements lie in the matrix.
void FillToeplitzMatrix(const v1::AttentionGrid& grid, int64_t element_bytes, int64_t begin,
                        std::span<std::byte> out, FillRelative fill);

// The same into cold memory (Plan::FillCold).
void FillColdToeplitzMatrix(const v1::AttentionGrid& grid, int64_t element_bytes, int64_t begin,
                            std::span<std::byte> out, FillRelative fill);

// The same for the flat vectors [heads, query_length + key_length - 1].
void FillToeplitzVectors(const v1::AttentionGrid& grid, int64_t element_bytes, int64_t begin,
                         std::span<std::byte> out, FillRelative fill);

}  // namespace posenc

#endif  // POSENC_LIB_FAMILIES_TOEPLITZ_H_
