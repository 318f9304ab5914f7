// From the command line to the requests of the API.
#ifndef POSENC_CLIENT_CLI_REQUEST_H_
#define POSENC_CLIENT_CLI_REQUEST_H_

#include "absl/status/statusor.h"
#include "client/cli/arguments.h"
#include "posenc/v1/service.pb.h"

namespace posenc::cli {

// Read the files that the arguments name. UsageError for a flag that is missing
// or malformed, FileError for a file, INVALID_ARGUMENT for a spec that is no
// EncodingSpec; the rest is for the server to judge.
absl::StatusOr<v1::GetTableRequest> TableRequest(const Arguments& arguments);
absl::StatusOr<v1::DescribeTableRequest> DescribeRequest(const Arguments& arguments);
absl::StatusOr<v1::ResolveModelConfigRequest> ResolveRequest(const Arguments& arguments);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_REQUEST_H_
