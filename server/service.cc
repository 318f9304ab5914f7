#include "server/service.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
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

grpc::ServerWriteReactor<grpc::ByteBuffer>* Service::GetTable(grpc::CallbackServerContext* context,
                                                              const grpc::ByteBuffer* request) {
  auto* stream = new TableStream(parts_, context, *request);
  stream->Start();
  return stream;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Service::GetTableFromUpload(
    grpc::CallbackServerContext* context) {
  auto* upload = new TableUpload(parts_, context);
  upload->Start();
  return upload;
}

grpc::ServerUnaryReactor* Service::DescribeTable(grpc::CallbackServerContext* context,
                                                 const grpc::ByteBuffer* request,
                                                 grpc::ByteBuffer* response) {
  auto* call = new UnaryCall<v1::DescribeTableRequest, v1::DescribeTableResponse>(
      parts_, context, "DescribeTable", *request, response,
      [this](const v1::DescribeTableRequest& parsed) {
        return parts_.engine->DescribeTable(parsed);
      });
  call->Start();
  return call;
}

grpc::ServerUnaryReactor* Service::ResolveModelConfig(grpc::CallbackServerContext* context,
                                                      const grpc::ByteBuffer* request,
                                                      grpc::ByteBuffer* response) {
  auto* call = new UnaryCall<v1::ResolveModelConfigRequest, v1::ResolveModelConfigResponse>(
      parts_, context, "ResolveModelConfig", *request, response,
      [this](const v1::ResolveModelConfigRequest& parsed) {
        return parts_.engine->ResolveModelConfig(parsed);
      });
  call->Start();
  return call;
}

// Answered on gRPC's thread: a few counters, which an operator wants most when
// the pool is full.
grpc::ServerUnaryReactor* Service::GetServerInfo(grpc::CallbackServerContext* context,
                                                 const grpc::ByteBuffer* request,
                                                 grpc::ByteBuffer* response) {
  auto* call = new UnaryCall<v1::GetServerInfoRequest, v1::GetServerInfoResponse>(
      parts_, context, "GetServerInfo", *request, response,
      [this](const v1::GetServerInfoRequest&) { return ServerInfo(); });
  call->AnswerHere();
  return call;
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
