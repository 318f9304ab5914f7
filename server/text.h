// Text that others wrote, made fit for a log line or a status message.
#ifndef POSENC_SERVER_TEXT_H_
#define POSENC_SERVER_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace posenc::server {

bool IsUtf8(absl::string_view text);

// `text` as a JSON string with its quotes, in ASCII.
std::string JsonString(absl::string_view text);

}  // namespace posenc::server

#endif  // POSENC_SERVER_TEXT_H_
