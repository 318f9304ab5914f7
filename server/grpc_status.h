// What an error looks like on the wire: the only place that knows.
//
// | status                                | when                                    | retry |
// | INVALID_ARGUMENT + BadRequest         | refused spec, selection, format, config;| no    |
// |                                       | a message that does not parse           |       |
// | RESOURCE_EXHAUSTED + QuotaFailure     | table or request larger than allowed    | no    |
// | UNAVAILABLE + RetryInfo               | queue or streams full, draining         | yes   |
// | OUT_OF_RANGE, FAILED_PRECONDITION     | read_offset past the end, if_table_id   | no    |
// | DEADLINE_EXCEEDED, CANCELLED          | as they say                             | no    |
// | INTERNAL                              | everything else: a bug of ours          | no    |
//
// Details travel as a google.rpc.Status in `grpc-status-details-bin`.
#ifndef POSENC_SERVER_GRPC_STATUS_H_
#define POSENC_SERVER_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/support/status.h"
#include "posenc/v1/error_details.pb.h"

namespace posenc::server {

// Everything of an error (message, details) fits into a client's 8 KiB of
// metadata: over that, gRPC would replace our status by one of its own. So
// messages are cut at kMaxErrorMessageBytes, and details that are larger than
// kMaxErrorDetailBytes are left out.
inline constexpr size_t kMaxErrorMessageBytes = 1024;
inline constexpr size_t kMaxErrorDetailBytes = 3072;

// With the payloads of `status` as details. A message that is not UTF-8 is escaped.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The same where there is no gRPC: code 0 when OK.
v1::RpcStatus ToRpcStatus(const absl::Status& status);

// UNAVAILABLE with a RetryInfo detail: the only error to retry.
absl::Status BusyError(absl::string_view message, absl::Duration retry_delay);

// What becomes of a call that ended before its answer: DEADLINE_EXCEEDED when
// its time is up, else CANCELLED.
absl::Status StoppedError(bool deadline_passed);

}  // namespace posenc::server

#endif  // POSENC_SERVER_GRPC_STATUS_H_
