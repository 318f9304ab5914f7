// A GetTableResponse from the slices that it arrived in, its data left where it is.
#ifndef POSENC_CLIENT_CHUNK_PARSER_H_
#define POSENC_CLIENT_CHUNK_PARSER_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "grpcpp/support/byte_buffer.h"
#include "posenc/connection.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Kept from message to message, so that memory is used again. Not thread-safe.
class ChunkParser {
 public:
  // What protobuf reads in `raw`; false when that is no GetTableResponse. The views
  // in `chunk` stay as long as `raw` is not changed and Parse is not called again.
  [[nodiscard]] bool Parse(grpc::ByteBuffer* raw, TableChunk* chunk);

 private:
  bool ParseInPlace(grpc::ByteBuffer* raw, TableChunk* chunk);
  bool ParseByProtobuf(grpc::ByteBuffer* raw, TableChunk* chunk);

  v1::TableHeader header_;
  std::string content_hash_;
  std::vector<std::span<const std::byte>> pieces_;
  v1::GetTableResponse message_;  // of what is not framed as our server does it
};

}  // namespace posenc

#endif  // POSENC_CLIENT_CHUNK_PARSER_H_
