// The bytes of one table in order, whatever happens to the streams that carry them.
//
//   open --> message, checked --> bytes        UNAVAILABLE: wait, open again at offset()
//
// Everything that TableReader promises but the copying.
#ifndef POSENC_CLIENT_RESUMING_STREAM_H_
#define POSENC_CLIENT_RESUMING_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/content_hash.h"
#include "client/retry.h"
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

  // Of the byte after those handed out.
  uint64_t offset() const { return offset_; }

  // The next bytes, verified; they stay until the next call. Empty at the end,
  // and then the whole is verified.
  absl::StatusOr<std::span<const std::byte>> Next();

  // Goes on at `offset`, with a new stream. Gives up the content hash.
  // REQUIRES: offset <= header().total_bytes().
  void Seek(uint64_t offset);

  // Empty until the end was reached in order from byte 0.
  std::string content_hash() const { return content_hash_; }

 private:
  absl::StatusOr<std::span<const std::byte>> Step();
  absl::Status Accept(const TableChunk& chunk);
  absl::Status AcceptHeader(const TableChunk& chunk);
  absl::Status AcceptContentHash(absl::string_view from_server);
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

  std::span<const std::byte> first_bytes_;  // of the message that Open read, for Next
  uint64_t offset_;
  ContentHash hash_;
  bool hashes_all_;  // hash_ is over all bytes before offset_
  std::string content_hash_;
  bool ended_ = false;
  absl::Status error_;  // sticky
  Backoff backoff_;
};

}  // namespace posenc

#endif  // POSENC_CLIENT_RESUMING_STREAM_H_
