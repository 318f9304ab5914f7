// Text that a caller sent, cut to what an error or a log line can carry.
#ifndef POSENC_LIB_BASE_SHORTEN_H_
#define POSENC_LIB_BASE_SHORTEN_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace posenc {

// At most max_bytes of `text`; "..." marks a cut, which never splits a UTF-8
// character. REQUIRES: max_bytes >= 3.
std::string Shorten(absl::string_view text, size_t max_bytes);

}  // namespace posenc

#endif  // POSENC_LIB_BASE_SHORTEN_H_
