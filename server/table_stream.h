// A table on its way to one reader.
//
//   Start ──> pool: Begin ──> Send ──> gRPC writes ──> OnWriteDone ──> pool: Send ...
//
// The wire pulls: a slice is computed when the one before has left, so a stream
// holds one chunk, whatever the table's size, and a reader that stops or goes
// away costs nothing more.
#ifndef POSENC_SERVER_TABLE_STREAM_H_
#define POSENC_SERVER_TABLE_STREAM_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "lib/engine/table.h"
#include "server/call.h"
#include "server/chunk_writer.h"
#include "server/service.h"
#include "server/stall_watchdog.h"

namespace posenc::server {

// Deletes itself when done. One thread at a time has the turn: a pool job, or
// the gRPC reaction that follows a write. Only what is atomic, and gRPC's
// context, is touched out of turn.
class TableStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer>, public Stallable {
 public:
  TableStream(const ServiceParts& parts, grpc::CallbackServerContext* context,
              const grpc::ByteBuffer& request);

  // Gives the turn to the pool, or ends the call.
  void Start();

 private:
  absl::Status Enter();
  absl::Status Begin();
  absl::Status Send();
  Slice NextSlice();

  // Runs Begin or Send on the pool, and ends the call if it fails.
  void RunOnPool(absl::Status (TableStream::*step)());
  void End(const absl::Status& status);

  void OnWriteDone(bool ok) override;
  void OnDone() override;

  std::chrono::steady_clock::time_point write_began() const override;
  void EndStalled() override;

  const ServiceParts& parts_;
  grpc::CallbackServerContext* const context_;
  Call call_;
  grpc::ByteBuffer request_;
  bool entered_ = false;

  std::unique_ptr<Table> table_;
  std::optional<ChunkWriter> chunks_;
  Slice rest_;              // of a page that is larger than a chunk
  grpc::ByteBuffer chunk_;  // being written
  uint64_t bytes_sent_ = 0;
  std::atomic<std::chrono::steady_clock::time_point> write_began_{
      std::chrono::steady_clock::time_point::max()};
  std::atomic<bool> stalled_{false};
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_TABLE_STREAM_H_
