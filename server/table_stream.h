// GetTable: one request, and its table on the way to the reader.
#ifndef POSENC_SERVER_TABLE_STREAM_H_
#define POSENC_SERVER_TABLE_STREAM_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/reactor.h"
#include "server/service.h"
#include "server/table_sender.h"

namespace posenc::server {

// Deletes itself when done.
class TableStream final : public TableSender {
 public:
  // Waits for the request.
  TableStream(const ServiceParts& parts, std::unique_ptr<IncomingCall> call);

 private:
  void OnReadDone(bool ok) override;
  absl::Status Begin();

  grpc::ByteBuffer request_;
  std::string key_;  // of the answer, in small_answers
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_TABLE_STREAM_H_
