#include "client/cli/nearest.h"

#include <algorithm>

namespace posenc::cli {
namespace {

constexpr size_t kMaxLength = 64;  // no flag is longer; a long word is not measured

// Optimal string alignment distance, by its table's last three rows.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before, above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::move(above);
    above = std::move(row);
    row.assign(b.size() + 1, i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t other = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, other});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row.back();
}

}  // namespace

std::string Nearest(absl::string_view word, const std::vector<std::string>& names) {
  if (word.size() > kMaxLength) return "";
  std::string nearest;
  size_t least = word.size() / 3 + 1;
  for (const std::string& name : names) {
    const size_t distance = Distance(word, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace posenc::cli
