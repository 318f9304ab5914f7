// A table on its way to one reader, whichever way the request came.
//
//   Answer ──> WriteNext ─────> gRPC writes ──> OnWriteDone ──> WriteNext ...
//                  └─> pool: Prepare ──> Deliver: next_ ──────────┘
//
// The wire pulls: while one chunk is written the next is prepared, and no more, so
// a stream holds two chunks at most, whatever the table's size, and a reader that
// stops or goes away costs nothing further.
#ifndef POSENC_SERVER_TABLE_SENDER_H_
#define POSENC_SERVER_TABLE_SENDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "lib/engine/table.h"
#include "server/call.h"
#include "server/chunk_writer.h"
#include "server/service.h"
#include "server/watched_reactor.h"

namespace posenc::server {

// Deletes itself when done. Until the answer begins one thread at a time has the
// turn: a pool job, or the reaction that follows a read. From then on a write
// and a job may be under way together; the job alone touches the table.
class TableSender : public WatchedReactor {
 protected:
  // OK: the turn has passed on, to gRPC; `this` may be gone. Else the call ends.
  using Step = std::function<absl::Status()>;

  TableSender(const ServiceParts& parts, std::unique_ptr<IncomingCall> call,
              absl::string_view method);
  ~TableSender() override = default;

  // Takes a place, first, and once: among the streams, unless all of the answer is
  // there already.
  absl::Status Enter(CallKind kind = CallKind::kStream);

  // Steps on the pool: the first one may find its queue full.
  void BeginOnPool(Step step);
  void ContinueOnPool(Step step);

  // A step: finds the table and sends its first message. An answer of one small
  // message is kept as `key`, if that is not empty.
  absl::Status Answer(v1::GetTableRequest request, const std::string& key = "");

  // Answers as before.
  void AnswerAgain(const SmallAnswer& known);

  void End(const absl::Status& status);

  // OK, or why nobody waits for the answer any more; then the end of a lost connection.
  absl::Status Stopped() const { return call_.Stopped(); }
  absl::Status LostConnection() const;

  void OnDone() override;

  const ServiceParts& parts_;

 private:
  // A message, ready to be written.
  struct Chunk {
    grpc::ByteBuffer frame;
    uint64_t bytes = 0;  // of the table
    bool is_last = false;
  };

  Slice NextSlice();
  absl::StatusOr<Chunk> Prepare();
  Chunk Frame(const Slice& slice);
  bool PrepareAtHand();
  void PrepareOnPool();
  void Deliver(absl::StatusOr<Chunk> chunk);
  void WriteNext();
  void Run(const Step& step);

  void OnWriteDone(bool ok) override;

  Call call_;
  std::optional<CallKind> entered_;

  // Of the step that answers, then of the job that prepares.
  std::unique_ptr<Table> table_;
  std::optional<ChunkWriter> chunks_;
  Slice rest_;            // of a page that is larger than a chunk
  bool at_hand_ = false;  // the last chunk was there already: so may be the next

  // While mutex_ is free: at most one write and one job are under way; next_ waits
  // for the write to end, a failure for both. Whoever finds neither under way writes
  // next_, or ends the call, after which nobody touches this object.
  std::mutex mutex_;
  bool writing_ = false;
  bool preparing_ = false;
  bool is_ahead_ = false;  // the job, or next_, has one of the server's places_ahead
  std::optional<Chunk> next_;
  absl::Status failure_;

  grpc::ByteBuffer written_;  // of the write under way
  uint64_t bytes_sent_ = 0;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_TABLE_SENDER_H_
