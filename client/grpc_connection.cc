// The Connection over a gRPC channel.

#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/grpc_table_stream.h"
#include "client/hand_over.h"
#include "client/status_from_grpc.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "posenc/connection.h"
#include "posenc/v1/service.grpc.pb.h"

namespace posenc {
namespace {

using Stub = v1::PositionalEncodingService::Stub;

// A table's header may echo a million position ids; its chunks are about 1 MiB.
constexpr int kMaxMessageBytes = 16 << 20;

// Whether `target` names this machine's loopback interface.
bool IsLoopback(absl::string_view target) {
  for (const absl::string_view scheme : {"dns:///", "dns:", "ipv4:", "ipv6:"}) {
    if (absl::ConsumePrefix(&target, scheme)) break;
  }
  return absl::StartsWith(target, "127.") || absl::StartsWith(target, "[::1]") ||
         target == "localhost" || absl::StartsWith(target, "localhost:");
}

class GrpcConnection final : public Connection {
 public:
  // `hand_over` may be null.
  GrpcConnection(const std::shared_ptr<grpc::Channel>& channel, std::unique_ptr<HandOver> hand_over)
      : tables_(channel),
        stub_(v1::PositionalEncodingService::NewStub(channel)),
        health_(grpc::health::v1::Health::NewStub(channel)),
        hand_over_(std::move(hand_over)) {}

  std::unique_ptr<TableStream> GetTable(const v1::GetTableRequest& request,
                                        const CallContext& context) override {
    return tables_.Open(request, context);
  }

  absl::StatusOr<SharedTable> ShareTable(const v1::GetTableRequest& request,
                                         const CallContext& context) override {
    if (hand_over_ == nullptr) return Connection::ShareTable(request, context);
    return hand_over_->Get(request, context);
  }

  absl::StatusOr<v1::DescribeTableResponse> DescribeTable(const v1::DescribeTableRequest& request,
                                                          const CallContext& context) override {
    return Call(*stub_, &Stub::DescribeTable, request, context);
  }

  absl::StatusOr<v1::ResolveModelConfigResponse> ResolveModelConfig(
      const v1::ResolveModelConfigRequest& request, const CallContext& context) override {
    return Call(*stub_, &Stub::ResolveModelConfig, request, context);
  }

  absl::StatusOr<v1::GetServerInfoResponse> GetServerInfo(const v1::GetServerInfoRequest& request,
                                                          const CallContext& context) override {
    return Call(*stub_, &Stub::GetServerInfo, request, context);
  }

  absl::Status CheckHealth(const std::string& service, const CallContext& context) override {
    using HealthCheckResponse = grpc::health::v1::HealthCheckResponse;
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    const absl::StatusOr<HealthCheckResponse> response =
        Call(*health_, &grpc::health::v1::Health::Stub::Check, request, context);
    if (!response.ok()) return response.status();
    if (response->status() == HealthCheckResponse::SERVING) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "the server says ", HealthCheckResponse::ServingStatus_Name(response->status())));
  }

 private:
  template <typename ServiceStub, typename Request, typename Response>
  static absl::StatusOr<Response> Call(ServiceStub& stub,
                                       grpc::Status (ServiceStub::*method)(grpc::ClientContext*,
                                                                           const Request&,
                                                                           Response*),
                                       const Request& request, const CallContext& context) {
    grpc::ClientContext client_context;
    client_context.set_deadline(absl::ToChronoTime(context.deadline));
    Response response;
    const absl::Status status = StatusFromGrpc((stub.*method)(&client_context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  const RawTableStub tables_;
  const std::unique_ptr<Stub> stub_;
  const std::unique_ptr<grpc::health::v1::Health::Stub> health_;
  const std::unique_ptr<HandOver> hand_over_;
};

// Null unless the options ask for one and `target` is unix:PATH or unix:///PATH.
std::unique_ptr<HandOver> MakeHandOver(absl::string_view target, const ClientOptions& options) {
  if (!options.share_memory || !absl::ConsumePrefix(&target, "unix:")) return nullptr;
  absl::ConsumePrefix(&target, "//");
  return std::make_unique<HandOver>(std::string(target));
}

}  // namespace

std::shared_ptr<Connection> MakeConnection(const std::string& target,
                                           const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetUserAgentPrefix("posenc-client/" POSENC_VERSION);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  // A proxy of the environment (http_proxy) does not lead back to this machine.
  if (IsLoopback(target)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // gRPC waits 1 s before it tries to connect again, and fails calls meanwhile:
  // our four attempts would all fall into that wait.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return std::make_shared<GrpcConnection>(
      grpc::CreateCustomChannel(
          target, options.credentials ? options.credentials : grpc::InsecureChannelCredentials(),
          arguments),
      MakeHandOver(target, options));
}

std::shared_ptr<Connection> MakeConnection(std::shared_ptr<grpc::Channel> channel) {
  return std::make_shared<GrpcConnection>(channel, nullptr);
}

}  // namespace posenc
