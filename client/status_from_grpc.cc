#include "client/status_from_grpc.h"

#include <utility>

#include "absl/strings/cord.h"

namespace posenc {

namespace {

absl::Status WithDetails(absl::Status status, const v1::RpcStatus& rich) {
  for (const google::protobuf::Any& detail : rich.details()) {
    status.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return status;
}

}  // namespace

absl::Status StatusFromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  v1::RpcStatus rich;  // the trailer grpc-status-details-bin
  if (!rich.ParseFromString(status.error_details())) return result;
  return WithDetails(std::move(result), rich);
}

absl::Status StatusFromRpc(const v1::RpcStatus& status) {
  return WithDetails(absl::Status(static_cast<absl::StatusCode>(status.code()), status.message()),
                     status);
}

}  // namespace posenc
