#include "server/service.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "posenc/v1/service.grpc.pb.h"
#include "server/grpc_status.h"
#include "server/table_stream.h"
#include "server/table_upload.h"
#include "server/unary_call.h"

namespace posenc::server {

absl::Status QueueFullError(const ServiceParts& parts) {
  return BusyError(
      absl::StrCat("max_queue (", parts.limits.max_queue(), ") requests wait for a thread"),
      absl::Milliseconds(100));
}

// GetServerInfo is answered on the queue's thread: a few counters, which an operator
// wants most when the pool is full.
void Service::AddTo(Router* router) const {
  const std::string name = v1::PositionalEncodingService::service_full_name();
  router->Add(name, "GetTable", [this](auto call) { new TableStream(parts_, std::move(call)); });
  router->Add(name, "GetTableFromUpload",
              [this](auto call) { new TableUpload(parts_, std::move(call)); });
  router->Add(name, "DescribeTable", [this](auto call) {
    new UnaryCall<v1::DescribeTableRequest, v1::DescribeTableResponse>(
        parts_, std::move(call), "DescribeTable", Where::kPool,
        [this](const auto& request) { return parts_.engine->DescribeTable(request); });
  });
  router->Add(name, "ResolveModelConfig", [this](auto call) {
    new UnaryCall<v1::ResolveModelConfigRequest, v1::ResolveModelConfigResponse>(
        parts_, std::move(call), "ResolveModelConfig", Where::kPool,
        [this](const auto& request) { return parts_.engine->ResolveModelConfig(request); });
  });
  router->Add(name, "GetServerInfo", [this](auto call) {
    new UnaryCall<v1::GetServerInfoRequest, v1::GetServerInfoResponse>(
        parts_, std::move(call), "GetServerInfo", Where::kHere,
        [this](const auto&) { return ServerInfo(); });
  });
}

v1::GetServerInfoResponse Service::ServerInfo() const {
  v1::GetServerInfoResponse info = parts_.engine->GetServerInfo();
  *info.mutable_limits() = parts_.limits;
  info.set_active_streams(parts_.admission->active_streams());
  if (parts_.shared_tables != nullptr)
    *info.mutable_shared_tables() = parts_.shared_tables->stats();
  return info;
}

}  // namespace posenc::server
