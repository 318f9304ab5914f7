// The tool's names for the fields of a request.
#ifndef POSENC_CLIENT_CLI_FLAG_NAMES_H_
#define POSENC_CLIENT_CLI_FLAG_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace posenc::cli {

// What the library says in the words of the API, which people read who typed flags:
// " (flags: --query-length, --key-length)" for a message that names selection.attention_grid;
// empty where it names no field that a flag fills in.
std::string FlagsOf(absl::string_view message);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_FLAG_NAMES_H_
