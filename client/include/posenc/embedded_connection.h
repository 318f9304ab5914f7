// The whole of posenc in this process, behind the same interface as a server:
// same requests, same bytes, same errors. Links lib/, but no gRPC.
#ifndef POSENC_EMBEDDED_CONNECTION_H_
#define POSENC_EMBEDDED_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "posenc/connection.h"

namespace posenc {

struct EmbeddedOptions {
  uint64_t max_table_bytes = uint64_t{1} << 40;
  uint64_t max_position_ids = uint64_t{1} << 20;
  // Memory for what may be asked for again; 0: keeps nothing.
  size_t plan_cache_bytes = size_t{64} << 20;
  size_t page_cache_bytes = size_t{256} << 20;
};

// Computes on the calling thread; deadlines do not interrupt it. Never null.
std::shared_ptr<Connection> MakeEmbeddedConnection(const EmbeddedOptions& options = {});

}  // namespace posenc

#endif  // POSENC_EMBEDDED_CONNECTION_H_
