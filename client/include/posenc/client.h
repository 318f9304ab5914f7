// The client of posenc: tables and facts about positional encodings.
//
//   posenc::Client client(posenc::MakeConnection("127.0.0.1:50051"));
//   posenc::v1::GetTableRequest request;
//   request.mutable_spec()->mutable_rope()->set_head_dim(128);
//   request.mutable_selection()->mutable_position_range()->set_end(4096);
//   absl::StatusOr<posenc::TableReader> table = client.GetTable(request);
//   if (!table.ok()) return table.status();
//   std::vector<std::byte> bytes(table->header().total_bytes());
//   absl::Status status = table->ReadAll(bytes);
//
// Layers: Client (retries, deadlines) and TableReader (resumes, verifies) over a
// Connection (one attempt a call).
#ifndef POSENC_CLIENT_H_
#define POSENC_CLIENT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "posenc/connection.h"
#include "posenc/options.h"
#include "posenc/table_reader.h"
#include "posenc/v1/service.pb.h"

namespace posenc {

// Calls block. What the server answers is passed on as a Status with the
// server's code, message and details (connection.h); UNAVAILABLE and
// DEADLINE_EXCEEDED also stand for a server that was not reached in time.
//
// Thread-safe and cheap to copy: copies share the connection.
class Client {
 public:
  // REQUIRES: connection is not null.
  explicit Client(std::shared_ptr<Connection> connection, ClientOptions options = {});

  // A table whose header has arrived, at request.read_offset(). The reader keeps
  // the connection alive and does not need the client. A request whose tables of
  // numbers make it larger than a message is uploaded in pieces, again by each attempt.
  absl::StatusOr<TableReader> GetTable(const v1::GetTableRequest& request) const;

  absl::StatusOr<v1::DescribeTableResponse> DescribeTable(
      const v1::DescribeTableRequest& request) const;

  absl::StatusOr<v1::ResolveModelConfigResponse> ResolveModelConfig(
      const v1::ResolveModelConfigRequest& request) const;

  absl::StatusOr<v1::GetServerInfoResponse> GetServerInfo() const;

  // OK when the server answers that it is serving. Asks once: a probe wants to
  // know how things are now.
  absl::Status CheckHealth(const std::string& service = "") const;

 private:
  std::shared_ptr<Connection> connection_;
  ClientOptions options_;
};

}  // namespace posenc

#endif  // POSENC_CLIENT_H_
