// How a request enters: raw bytes, so that what is too large or does not parse
// gets an error of ours that says so.
#ifndef POSENC_SERVER_REQUEST_H_
#define POSENC_SERVER_REQUEST_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"
#include "lib/base/status.h"

namespace posenc::server {

// RESOURCE_EXHAUSTED when `raw` is larger than max_request_bytes.
absl::Status CheckRequestSize(const grpc::ByteBuffer& raw, uint64_t max_request_bytes);

// Reads `message` from `raw`, which it empties. INVALID_ARGUMENT if it does not
// parse: bad wire format, nested too deep, text that is not UTF-8.
absl::Status ParseRequest(grpc::ByteBuffer* raw, google::protobuf::Message* message);

// Runs `work` on a thread that must not see an exception: one that runs out of
// memory is UNAVAILABLE, any other is INTERNAL.
absl::Status Guarded(absl::FunctionRef<absl::Status()> work);

}  // namespace posenc::server

#endif  // POSENC_SERVER_REQUEST_H_
