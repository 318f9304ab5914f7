// Hashes as they are written everywhere: table ids, contents.
#ifndef POSENC_LIB_BASE_HASH_H_
#define POSENC_LIB_BASE_HASH_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace posenc {

// XXH3-128 as 32 lower-case hex digits, most significant first.
std::string Hash128(absl::string_view bytes);

// XXH3-64.
uint64_t Hash64(absl::string_view bytes);

}  // namespace posenc

#endif  // POSENC_LIB_BASE_HASH_H_
