// posenc check: the findings of many models, and of each against a base.
#ifndef POSENC_CLIENT_CLI_CHECK_H_
#define POSENC_CLIENT_CLI_CHECK_H_

#include "absl/status/status.h"
#include "client/cli/arguments.h"
#include "posenc/client.h"

namespace posenc::cli {

// Prints the report to stdout. Every model is checked, whatever became of the
// others; then the first of these that holds is returned: a file that could not
// be read (FileError), a server that was not reached, and INVALID_ARGUMENT when
// there are findings at the failing level. A config that is refused is a finding
// (config-refused, an error).
absl::Status RunCheck(const Arguments& arguments, const Client& client);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_CHECK_H_
