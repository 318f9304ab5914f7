#include "server/grpc_status.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "lib/base/shorten.h"
#include "server/text.h"

namespace posenc::server {
namespace {

grpc::StatusCode PublicCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnimplemented:
      return static_cast<grpc::StatusCode>(code);  // the numbers are the same
    default:
      return grpc::StatusCode::INTERNAL;
  }
}

std::string PublicMessage(absl::string_view message) {
  return Shorten(IsUtf8(message) ? std::string(message) : absl::CHexEscape(message),
                 kMaxErrorMessageBytes);
}

}  // namespace

v1::RpcStatus ToRpcStatus(const absl::Status& status) {
  v1::RpcStatus wire;
  if (status.ok()) return wire;
  wire.set_code(static_cast<int>(PublicCode(status.code())));
  wire.set_message(PublicMessage(status.message()));
  status.ForEachPayload([&](absl::string_view type_url, const absl::Cord& payload) {
    if (payload.size() > kMaxErrorDetailBytes) return;
    auto* detail = wire.add_details();
    detail->set_type_url(std::string(type_url));
    detail->set_value(std::string(payload));
  });
  return wire;
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  const v1::RpcStatus wire = ToRpcStatus(status);
  const auto code = static_cast<grpc::StatusCode>(wire.code());
  if (wire.details().empty()) return {code, wire.message()};
  return {code, wire.message(), wire.SerializeAsString()};
}

absl::Status BusyError(absl::string_view message, absl::Duration retry_delay) {
  absl::Status status = absl::UnavailableError(message);
  v1::RetryInfo detail;
  const int64_t nanos = absl::ToInt64Nanoseconds(retry_delay);
  detail.mutable_retry_delay()->set_seconds(nanos / 1'000'000'000);
  detail.mutable_retry_delay()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  status.SetPayload("type.googleapis.com/google.rpc.RetryInfo",
                    absl::Cord(detail.SerializeAsString()));
  return status;
}

absl::Status StoppedError(bool deadline_passed) {
  return deadline_passed ? absl::DeadlineExceededError("the call's deadline has passed")
                         : absl::CancelledError("the call was cancelled");
}

}  // namespace posenc::server
