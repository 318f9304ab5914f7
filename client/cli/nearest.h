// The name that was meant.
#ifndef POSENC_CLIENT_CLI_NEAREST_H_
#define POSENC_CLIENT_CLI_NEAREST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace posenc::cli {

// The first of `names` that the fewest slips of a finger make of `word` (a letter more, less,
// another, or two exchanged); empty when that takes more than one in three letters.
std::string Nearest(absl::string_view word, const std::vector<std::string>& names);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_NEAREST_H_
