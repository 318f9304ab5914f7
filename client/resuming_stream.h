// The bytes of one table in order, whatever happens to the streams that carry them.
//
//   open --> message, checked --> bytes        UNAVAILABLE: wait, open again there
//
// A byte is touched once: hashed, for its chunk's checksum and for the whole, and
// copied to the caller while it is in the cache. Only where a chunk does not fit is
// it hashed before any of it is handed out.
#ifndef POSENC_CLIENT_RESUMING_STREAM_H_
#define POSENC_CLIENT_RESUMING_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/hash_and_copy.h"
#include "client/retry.h"
#include "lib/hash/xxh3.h"
#include "posenc/connection.h"
#include "posenc/options.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Not thread-safe. REQUIRES: the options' clock is complete.
class ResumingStream {
 public:
  ResumingStream(std::shared_ptr<Connection> connection, const v1::GetTableRequest& request,
                 const ClientOptions& options);

  // Waits for the header. Once, before anything else.
  absl::Status Open();

  const v1::TableHeader& header() const { return header_; }

  // Writes the next bytes to the front of `out` and returns how many: verified, and
  // none only at the end, when the whole is verified, too. After an error, what is
  // in `out` is void. REQUIRES: `out` is not empty, unless all bytes were read.
  absl::StatusOr<size_t> Read(std::span<std::byte> out);

  // Goes on at `offset`, with a new stream. Gives up the content hash.
  // REQUIRES: offset <= header().total_bytes().
  void Seek(uint64_t offset);

  // Empty until the end was reached in order from byte 0.
  std::string content_hash() const { return content_hash_; }

 private:
  void Step();
  absl::Status Accept(const TableChunk& chunk);
  absl::Status AcceptHeader(const TableChunk& chunk);
  absl::Status Verify(CopyTarget target);
  bool ReadRest(std::span<std::byte> out);
  void KeepUnread(std::span<const std::byte> piece);
  size_t TakeUnread(std::span<std::byte> out);
  absl::Status CheckContentHash(absl::string_view from_server);
  void Note(absl::Status status);
  void Close();
  absl::Status EndedTooSoon() const;
  absl::Status Recover(const absl::Status& status);
  void OpenAttempt();

  const std::shared_ptr<Connection> connection_;
  const ClientOptions options_;
  v1::GetTableRequest request_;
  v1::TableHeader header_;
  bool opened_ = false;  // header_ has arrived

  // This attempt; null between attempts.
  std::unique_ptr<TableStream> stream_;
  bool first_message_ = true;
  bool hash_due_ = false;  // the attempt began at byte 0 and has sent no content hash yet

  // The last message, while none of its bytes is hashed yet, and of one that was but
  // did not fit what is left. Both lie in memory of stream_.
  std::optional<TableChunk> chunk_;
  std::queue<std::span<const std::byte>> unread_;

  uint64_t offset_;  // of the byte after those verified
  Xxh3 hash_;
  bool hashes_all_;  // hash_ is over all bytes before offset_
  std::string content_hash_;
  bool ended_ = false;
  absl::Status error_;  // sticky
  Backoff backoff_;
};

}  // namespace posenc

#endif  // POSENC_CLIENT_RESUMING_STREAM_H_
