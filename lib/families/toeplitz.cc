#include "lib/families/toeplitz.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "lib/memory/stream_copy.h"

namespace posenc {
namespace {

std::span<std::byte> Elements(std::span<std::byte> out, int64_t count, int64_t element_bytes) {
  return out.first(static_cast<size_t>(count * element_bytes));
}

// Rows of one head: so many that their values as one run stay in the second-level cache.
constexpr int64_t kMaxRunBytes = 256 << 10;

// Whole rows of one head, from the query at `position` on: all their values as
// one run, from the last row's first to the first row's last, then each row
// copied from its place in it.
void FillShiftedRows(int64_t head, int64_t position, int64_t rows, int64_t row_bytes,
                     int64_t element_bytes, std::byte* out, FillRelative fill, bool cold) {
  const auto run_bytes = static_cast<size_t>(row_bytes + (rows - 1) * element_bytes);
  const auto run = std::make_unique_for_overwrite<std::byte[]>(run_bytes);
  fill(head, -(position + rows - 1), {run.get(), run_bytes});
  for (int64_t row = 0; row < rows; ++row) {
    const std::byte* from = run.get() + (rows - 1 - row) * element_bytes;
    std::byte* to = out + row * row_bytes;
    if (cold) {
      StreamCopy({from, static_cast<size_t>(row_bytes)}, to);
    } else {
      std::memcpy(to, from, static_cast<size_t>(row_bytes));
    }
  }
  if (cold) FinishStreams();
}

void FillMatrix(const v1::AttentionGrid& grid, int64_t element_bytes, int64_t begin,
                std::span<std::byte> out, FillRelative fill, bool cold) {
  const int64_t keys = grid.key_length();
  const int64_t max_rows = std::max<int64_t>(kMaxRunBytes / element_bytes - keys, 64);
  while (!out.empty()) {
    const int64_t key = begin % keys;
    const int64_t query = begin / keys % grid.query_length();
    const int64_t head = begin / keys / grid.query_length();
    const int64_t position = grid.query_offset() + query;
    const int64_t left = static_cast<int64_t>(out.size()) / element_bytes;
    const int64_t whole = key == 0 ? std::min(left / keys, grid.query_length() - query) : 0;
    const int64_t rows = std::min(whole, max_rows);
    int64_t count = rows * keys;
    if (rows > 1) {
      FillShiftedRows(head, position, rows, keys * element_bytes, element_bytes, out.data(), fill,
                      cold);
    } else {
      // One row, or the part of one that a cut leaves: no copy would be saved.
      count = std::min(left, keys - key);
      fill(head, key - position, Elements(out, count, element_bytes));
    }
    begin += count;
    out = out.subspan(static_cast<size_t>(count * element_bytes));
  }
}

}  // namespace

void FillByRows(int64_t row_length, int64_t element_bytes, int64_t begin, std::span<std::byte> out,
                FillRow fill) {
  while (!out.empty()) {
    const int64_t first = begin % row_length;
    const int64_t left = static_cast<int64_t>(out.size()) / element_bytes;
    const int64_t count = std::min(left, row_length - first);
    fill(begin / row_length, first, Elements(out, count, element_bytes));
    begin += count;
    out = out.subspan(static_cast<size_t>(count * element_bytes));
  }
}

void FillToeplitzMatrix(const v1::AttentionGrid& grid, int64_t element_bytes, int64_t begin,
                        std::span<std::byte> out, FillRelative fill) {
  FillMatrix(grid, element_bytes, begin, out, fill, /*cold=*/false);
}

void FillColdToeplitzMatrix(const v1::AttentionGrid& grid, int64_t element_bytes, int64_t begin,
                            std::span<std::byte> out, FillRelative fill) {
  FillMatrix(grid, element_bytes, begin, out, fill, /*cold=*/true);
}

void FillToeplitzVectors(const v1::AttentionGrid& grid, int64_t element_bytes, int64_t begin,
                         std::span<std::byte> out, FillRelative fill) {
  const int64_t first_relative_position = -(grid.query_offset() + grid.query_length() - 1);
  FillByRows(grid.query_length() + grid.key_length() - 1, element_bytes, begin, out,
             [&](int64_t head, int64_t first, std::span<std::byte> part) {
               fill(head, first_relative_position + first, part);
             });
}

}  // namespace posenc
