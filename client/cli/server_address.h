// The address of --server and POSENC_SERVER.
#ifndef POSENC_CLIENT_CLI_SERVER_ADDRESS_H_
#define POSENC_CLIENT_CLI_SERVER_ADDRESS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace posenc::cli {

// UsageError unless it is HOST:PORT (the host of IPv6 in brackets) or unix:PATH. gRPC takes any
// text: it wraps ports above 65535 round, adds port 443, and looks up what is no name.
absl::Status CheckServerAddress(absl::string_view address);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_SERVER_ADDRESS_H_
