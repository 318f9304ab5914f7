#include "client/status_from_grpc.h"

#include "absl/strings/cord.h"
#include "posenc/v1/error_details.pb.h"

namespace posenc {

absl::Status StatusFromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  v1::RpcStatus rich;  // the trailer grpc-status-details-bin
  if (!rich.ParseFromString(status.error_details())) return result;
  for (const google::protobuf::Any& detail : rich.details()) {
    result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return result;
}

}  // namespace posenc
