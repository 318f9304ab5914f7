// Text that others wrote, made fit for a log line or a status message.
#ifndef POSENC_SERVER_TEXT_H_
#define POSENC_SERVER_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace posenc::server {

bool IsUtf8(absl::string_view text);

// At most max_bytes of `text`; "..." marks a cut, which never splits a character.
// REQUIRES: max_bytes >= 3.
std::string Shorten(std::string text, size_t max_bytes);

// `text` as a JSON string with its quotes, in ASCII.
std::string JsonString(absl::string_view text);

}  // namespace posenc::server

#endif  // POSENC_SERVER_TEXT_H_
