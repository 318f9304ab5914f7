// The one time that the bytes of a message are touched.
#ifndef POSENC_CLIENT_HASH_AND_COPY_H_
#define POSENC_CLIENT_HASH_AND_COPY_H_

#include <cstddef>
#include <cstdint>

#include "lib/hash/xxh3.h"
#include "posenc/connection.h"

namespace posenc {

// Where the data of a chunk goes.
struct CopyTarget {
  std::byte* to = nullptr;  // null: nowhere, they are only hashed
  // Write past the caches: right for memory that is larger than they are. What is
  // written to a cold line is not read before, and they keep what they hold.
  bool past_caches = false;
};

// Returns XXH3-64 of the chunk's data and adds it to `whole`, unless that is null,
// while each part goes to `target`.
uint64_t HashAndCopy(const TableChunk& chunk, Xxh3* whole, CopyTarget target);

}  // namespace posenc

#endif  // POSENC_CLIENT_HASH_AND_COPY_H_
