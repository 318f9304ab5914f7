// What each subcommand does.
#ifndef POSENC_CLIENT_CLI_COMMANDS_H_
#define POSENC_CLIENT_CLI_COMMANDS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/arguments.h"
#include "posenc/client.h"

namespace posenc::cli {

// A client of arguments.server, or of the library embedded here. UsageError for an address that
// is none.
absl::StatusOr<Client> MakeClient(const Arguments& arguments);

// Results go to stdout, progress, findings and remarks to stderr. The status says
// how it ended; ExitCodeOf(status) is what the process returns.
absl::Status Run(const Arguments& arguments, const Client& client);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_COMMANDS_H_
