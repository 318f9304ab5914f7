// Text of somebody else's, made fit to print.
#ifndef POSENC_CLIENT_CLI_PRINTABLE_H_
#define POSENC_CLIENT_CLI_PRINTABLE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace posenc::cli {

// With U+FFFD for each byte that is no part of a UTF-8 character.
std::string ValidUtf8(absl::string_view text);

// The same on one line: control characters, which a terminal or a CI system would obey, are \xNN.
std::string OneLine(absl::string_view text);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_PRINTABLE_H_
