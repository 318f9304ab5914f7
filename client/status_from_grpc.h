// A gRPC status as an absl::Status: same code, same message, and the details as
// payloads under their type URLs.
#ifndef POSENC_CLIENT_STATUS_FROM_GRPC_H_
#define POSENC_CLIENT_STATUS_FROM_GRPC_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace posenc {

// Details that do not parse are left out: they only explain.
absl::Status StatusFromGrpc(const grpc::Status& status);

}  // namespace posenc

#endif  // POSENC_CLIENT_STATUS_FROM_GRPC_H_
