// What a Client talks through: one attempt a call, no retries.
//
// There are three: a gRPC channel (MakeConnection), the library in this process
// (embedded_connection.h), and a mock for tests (mock_connection.h).
//
// Errors carry the google.rpc details of the server as payloads, under their
// type URLs: `type.googleapis.com/google.rpc.BadRequest` and so on, serialized.
// posenc/v1/error_details.proto has messages that read them.
#ifndef POSENC_CONNECTION_H_
#define POSENC_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "posenc/options.h"
#include "posenc/v1/model_config.pb.h"
#include "posenc/v1/service.pb.h"
#include "posenc/v1/table.pb.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace posenc {

struct CallContext {
  absl::Time deadline = absl::InfiniteFuture();
  // Of a stream: DEADLINE_EXCEEDED when the next message takes longer.
  absl::Duration progress_timeout = absl::InfiniteDuration();
};

// A message of GetTable, as a view of memory that its stream owns.
struct TableChunk {
  const v1::TableHeader* header = nullptr;  // first message only
  uint64_t offset = 0;                      // of data in the table
  // XXH3-64 of data. Unset, as is content_hash, where the bytes never left this process.
  std::optional<uint64_t> checksum;
  absl::string_view content_hash;  // last message of a read from 0
  std::span<const std::byte> data;
  // What follows `data`, where a message lies in several pieces of memory.
  std::span<const std::span<const std::byte>> more_data;
};

// The stream of one attempt, as the peer sends it: nothing is checked here.
// Destroying it cancels what is left. Not thread-safe.
class TableStream {
 public:
  virtual ~TableStream() = default;

  // The next message, valid until the next call; nullopt after the last; or the
  // status that the stream ended with. Not called again after an end.
  virtual absl::StatusOr<std::optional<TableChunk>> Read() = 0;

  // All bytes after those of the last message, straight into `out`, which has their
  // size: where they are made in this process, and in one go. False where they are
  // not; then nothing has changed. REQUIRES: as for Read, which has given the header.
  virtual bool ReadRest(std::span<std::byte> /*out*/) { return false; }
};

// A table in memory that the server made and sealed: nobody can change it.
struct SharedTable {
  v1::TableHeader header;
  std::string content_hash;           // as the server says
  std::span<const std::byte> bytes;   // [header.total_bytes]
  std::shared_ptr<const void> owner;  // keeps them mapped
};

// Thread-safe.
class Connection {
 public:
  virtual ~Connection() = default;

  // Never null; errors come from its first Read.
  virtual std::unique_ptr<TableStream> GetTable(const v1::GetTableRequest& request,
                                                const CallContext& context) = 0;
  // The whole table, whatever read_offset says, as shared memory, where both sides
  // allow it. INVALID_ARGUMENT, OUT_OF_RANGE and FAILED_PRECONDITION are about the
  // request; any other error says why GetTable is the way to it.
  virtual absl::StatusOr<SharedTable> ShareTable(const v1::GetTableRequest& /*request*/,
                                                 const CallContext& /*context*/) {
    return absl::UnimplementedError("this connection does not share memory");
  }
  virtual absl::StatusOr<v1::DescribeTableResponse> DescribeTable(
      const v1::DescribeTableRequest& request, const CallContext& context) = 0;
  virtual absl::StatusOr<v1::ResolveModelConfigResponse> ResolveModelConfig(
      const v1::ResolveModelConfigRequest& request, const CallContext& context) = 0;
  virtual absl::StatusOr<v1::GetServerInfoResponse> GetServerInfo(
      const v1::GetServerInfoRequest& request, const CallContext& context) = 0;
  // grpc.health.v1: OK when `service` ("" is the server) is SERVING, else UNAVAILABLE.
  virtual absl::Status CheckHealth(const std::string& service, const CallContext& context) = 0;
};

// A gRPC channel to `target`, as gRPC names them: "127.0.0.1:50051",
// "unix:/run/posenc.sock", "dns:///posenc:50051". Connects when first used;
// never null. Of the options only credentials and share_memory are used.
std::shared_ptr<Connection> MakeConnection(const std::string& target,
                                           const ClientOptions& options = {});

// The same over a channel that the caller made: one in this process, or one with
// arguments of its own. Let it receive messages of 4 MiB (gRPC's default) or more.
std::shared_ptr<Connection> MakeConnection(std::shared_ptr<grpc::Channel> channel);

}  // namespace posenc

#endif  // POSENC_CONNECTION_H_
