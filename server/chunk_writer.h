// Frames a table as GetTableResponse messages: the only file that knows framing.
//
//   [1 header] [2 offset] [3 checksum] [4 content_hash] | [15 data]
//   first only                          last only         a slice of the page
//
// `data` has the highest field number, so the message is a small head followed
// by bytes that are the page's own: nothing is copied, and any generated client
// parses it as an ordinary message.
#ifndef POSENC_SERVER_CHUNK_WRITER_H_
#define POSENC_SERVER_CHUNK_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "grpcpp/support/byte_buffer.h"
#include "lib/engine/table.h"
#include "lib/hash/xxh3.h"
#include "posenc/v1/table.pb.h"
#include "server/content_hashes.h"

namespace posenc::server {

// Not thread-safe: one stream.
class ChunkWriter {
 public:
  // A header larger than this (it echoes explicit position ids) travels without
  // data, so that no message passes the 4 MiB that an unconfigured client takes.
  static constexpr size_t kMaxHeaderBesideData = size_t{64} << 10;

  // For a read that begins at `offset`. `content_hashes`, which may be null, saves
  // hashing a table that was sent before.
  ChunkWriter(const v1::TableHeader& header, uint64_t offset,
              ContentHashes* content_hashes = nullptr);

  // Whether the next message is the header alone: then it takes an empty slice.
  bool header_goes_alone() const { return header_.size() > kMaxHeaderBesideData && !done(); }

  // The next message, with the next bytes of the table; they stay pinned until
  // gRPC has sent it. An empty slice is for a header alone or an empty table.
  // REQUIRES: before the first message, or not done().
  grpc::ByteBuffer Frame(const Slice& slice);

  // Whether Frame would read none of the slice: nothing of it is unknown.
  bool knows(const Slice& slice) const {
    return !hashing_.has_value() && ChecksumOf(slice).has_value();
  }

  // Whether all bytes were framed.
  bool done() const { return offset_ == total_bytes_; }

 private:
  static std::optional<uint64_t> ChecksumOf(const Slice& slice);
  uint64_t HashData(const Slice& slice);
  std::string ContentHash();

  std::string header_;  // serialized; empty once it was sent
  uint64_t offset_;
  const uint64_t total_bytes_;
  ContentHashes* const content_hashes_;
  // At most one is set, neither unless the read begins at 0: what the content hash
  // is, or the state of it over the bytes so far.
  std::optional<std::string> content_hash_;
  std::optional<Xxh3> hashing_;
  std::string key_;  // of content_hashes_, while hashing
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_CHUNK_WRITER_H_
