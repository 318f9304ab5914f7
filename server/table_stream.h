// GetTable: one request, and its table on the way to the reader.
#ifndef POSENC_SERVER_TABLE_STREAM_H_
#define POSENC_SERVER_TABLE_STREAM_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/service.h"
#include "server/table_sender.h"

namespace posenc::server {

// Deletes itself when done.
class TableStream final : public WriteOnlySender {
 public:
  TableStream(const ServiceParts& parts, grpc::CallbackServerContext* context,
              const grpc::ByteBuffer& request)
      : WriteOnlySender(parts, context, "GetTable"), request_(request) {}

  // Gives the turn to the pool, or ends the call: also with what the same request got
  // before.
  void Start();

 private:
  absl::Status Begin();

  grpc::ByteBuffer request_;
  std::string key_;  // of the answer, in small_answers
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_TABLE_STREAM_H_
