// A gRPC status as an absl::Status: same code, same message, and the details as
// payloads under their type URLs.
#ifndef POSENC_CLIENT_STATUS_FROM_GRPC_H_
#define POSENC_CLIENT_STATUS_FROM_GRPC_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"
#include "posenc/v1/error_details.pb.h"

namespace posenc {

// Details that do not parse are left out: they only explain.
absl::Status StatusFromGrpc(const grpc::Status& status);

// The same of one that did not travel by gRPC.
absl::Status StatusFromRpc(const v1::RpcStatus& status);

}  // namespace posenc

#endif  // POSENC_CLIENT_STATUS_FROM_GRPC_H_
