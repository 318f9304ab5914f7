// From a request to a table: the flow of lib/DESIGN.md on one screen.
//
//   source -> spec -> canonical -> shape and limits -> table_id -> plan -> Table
//
// Everything that can be refused is refused before any work is done. The engine
// is what the server wraps and what the command-line tool embeds: same bytes.
#ifndef POSENC_LIB_ENGINE_ENGINE_H_
#define POSENC_LIB_ENGINE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "lib/cache/page.h"
#include "lib/cache/single_flight_cache.h"
#include "lib/engine/table.h"
#include "lib/families/family.h"
#include "posenc/v1/service.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

struct EngineOptions {
  uint64_t max_table_bytes = uint64_t{1} << 40;
  uint64_t max_position_ids = uint64_t{1} << 20;
  size_t plan_cache_bytes = size_t{64} << 20;
  size_t page_cache_bytes = size_t{256} << 20;
  // A page holds as many units as fit into this (at least one).
  size_t page_bytes = size_t{1} << 20;
};

// Thread-safe: any number of requests at once.
class Engine {
 public:
  explicit Engine(EngineOptions options = {});

  // A table, positioned at request.read_offset(). Errors: INVALID_ARGUMENT,
  // RESOURCE_EXHAUSTED, OUT_OF_RANGE (offset past the end), FAILED_PRECONDITION
  // (if_table_id names another table). Computes none of its bytes. The table
  // must not outlive the engine. By value: a request may hold a large table, which
  // is moved, not copied.
  absl::StatusOr<std::unique_ptr<Table>> GetTable(v1::GetTableRequest request);

  absl::StatusOr<v1::DescribeTableResponse> DescribeTable(v1::DescribeTableRequest request);

  absl::StatusOr<v1::ResolveModelConfigResponse> ResolveModelConfig(
      const v1::ResolveModelConfigRequest& request);

  // Version, encodings, model types, cache statistics and the limits that are
  // the engine's; a server adds its own.
  v1::GetServerInfoResponse GetServerInfo() const;

  const EngineOptions& options() const { return options_; }

 private:
  struct Resolved;
  // Takes the spec out of the request.
  template <typename Request>
  absl::StatusOr<Resolved> Resolve(Request* request);

  const EngineOptions options_;
  SingleFlightCache<Plan> plans_;
  SingleFlightCache<Page> pages_;
  const std::shared_ptr<BlockPool> pool_;
};

}  // namespace posenc

#endif  // POSENC_LIB_ENGINE_ENGINE_H_
