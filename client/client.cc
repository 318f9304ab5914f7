#include "posenc/client.h"

#include <utility>

#include "client/retry.h"

namespace posenc {
namespace {

// Calls `attempt` (CallContext -> StatusOr) until it succeeds or the policy ends.
template <typename Attempt>
auto WithRetry(const ClientOptions& options, Attempt&& attempt)
    -> decltype(attempt(CallContext{})) {
  const absl::Time deadline = options.clock.now() + options.call_timeout;
  Backoff backoff(options.retry, options.clock);
  while (true) {
    auto result = attempt(CallContext{.deadline = deadline});
    if (result.ok()) return result;
    if (absl::Status wait = backoff.WaitAfter(result.status(), deadline); !wait.ok()) return wait;
  }
}

}  // namespace

Client::Client(std::shared_ptr<Connection> connection, ClientOptions options)
    : connection_(std::move(connection)), options_(std::move(options)) {
  options_.clock = CompleteClock(std::move(options_.clock));
}

absl::StatusOr<TableReader> Client::GetTable(const v1::GetTableRequest& request) const {
  return TableReader::Open(connection_, request, options_);
}

absl::StatusOr<v1::DescribeTableResponse> Client::DescribeTable(
    const v1::DescribeTableRequest& request) const {
  return WithRetry(options_, [&](const CallContext& context) {
    return connection_->DescribeTable(request, context);
  });
}

absl::StatusOr<v1::ResolveModelConfigResponse> Client::ResolveModelConfig(
    const v1::ResolveModelConfigRequest& request) const {
  return WithRetry(options_, [&](const CallContext& context) {
    return connection_->ResolveModelConfig(request, context);
  });
}

absl::StatusOr<v1::GetServerInfoResponse> Client::GetServerInfo() const {
  return WithRetry(options_, [&](const CallContext& context) {
    return connection_->GetServerInfo(v1::GetServerInfoRequest(), context);
  });
}

absl::Status Client::CheckHealth(const std::string& service) const {
  return connection_->CheckHealth(
      service, CallContext{.deadline = options_.clock.now() + options_.call_timeout});
}

}  // namespace posenc
