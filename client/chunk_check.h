// Whether a peer keeps to the protocol of GetTable: pure functions on one message.
//
// They refuse, and never repair: a reader that has seen them pass can trust
// sizes, offsets and bytes. INTERNAL: the peer broke the protocol; DATA_LOSS: the
// bytes are not what it said they are.
#ifndef POSENC_CLIENT_CHUNK_CHECK_H_
#define POSENC_CLIENT_CHUNK_CHECK_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "posenc/connection.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// The id is 32 lower-case hex digits; tensors are contiguous, their bytes follow
// from shape and dtype, and sum to total_bytes.
absl::Status CheckHeader(const v1::TableHeader& header);

// A resumed read: the header is of the table that was being read.
absl::Status CheckSameTable(const v1::TableHeader& first, const v1::TableHeader& resumed);

// The message continues at `offset` and stays inside the table.
// REQUIRES: offset <= total_bytes.
absl::Status CheckChunk(const TableChunk& chunk, uint64_t offset, uint64_t total_bytes);

// Its data has the checksum that it says, if it says one; `checksum` is XXH3-64 of it.
absl::Status CheckChecksum(const TableChunk& chunk, uint64_t checksum);

// Bytes of its data.
size_t DataBytes(const TableChunk& chunk);

}  // namespace posenc

#endif  // POSENC_CLIENT_CHUNK_CHECK_H_
