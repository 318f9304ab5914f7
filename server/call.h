// What the server knows of one call besides its request: who asked, under which
// id, and how it ended. One log line a call.
#ifndef POSENC_SERVER_CALL_H_
#define POSENC_SERVER_CALL_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"

namespace posenc::server {

// Not thread-safe; Stopped() may be called at any time.
class Call {
 public:
  // The id is the caller's `x-request-id` if that is 1 to 64 characters of
  // [A-Za-z0-9._-], else a new one. It travels back in the trailing metadata:
  // initial metadata of an error would switch off the client's retries.
  Call(grpc::ServerContext* context, absl::string_view method);

  // The status to finish with, which the log line will show.
  grpc::Status End(const absl::Status& status);

  // Writes the log line.
  void Log(uint64_t bytes_sent) const;

  // OK, or why nobody waits for the answer any more.
  absl::Status Stopped() const;

 private:
  bool DeadlinePassed() const;

  grpc::ServerContext* const context_;
  const absl::string_view method_;
  const std::string request_id_;
  const std::string peer_;  // unknown to gRPC once the connection is lost
  const std::chrono::steady_clock::time_point begin_;
  grpc::Status status_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_CALL_H_
