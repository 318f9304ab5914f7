#include "client/cli/nearest.h"

#include "lib/base/edit_distance.h"

namespace posenc::cli {
namespace {

constexpr size_t kMaxLength = 64;  // no flag is longer; a long word is not measured

}  // namespace

std::string Nearest(absl::string_view word, const std::vector<std::string>& names) {
  if (word.size() > kMaxLength) return "";
  std::string nearest;
  size_t least = word.size() / 3 + 1;
  for (const std::string& name : names) {
    const size_t distance = EditDistance(word, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace posenc::cli
