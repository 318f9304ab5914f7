// Tables in sealed memory, kept to be handed over: made once, for any number of
// readers.
//
//   Get ──> kept:         told at once
//       ──> being filled: told when it is
//       ──> absent:       filled here, a page a turn of the pool, sealed, kept
//
// A fill takes turns with streams, so a large table holds nobody up, and ends
// when nobody waits for it any more. Fresh memory costs over ten times what
// computing its bytes does, and what is sealed can never be filled again: so
// tables are kept whole, which streams do without.
#ifndef POSENC_SERVER_SHARED_TABLES_H_
#define POSENC_SERVER_SHARED_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/engine/table.h"
#include "posenc/v1/service.pb.h"
#include "server/compute_pool.h"
#include "server/memory_file.h"

namespace posenc::server {

struct SharedTable {
  MemoryFile file;  // sealed
  std::string content_hash;
};

using SharedTablePointer = std::shared_ptr<const SharedTable>;

// Thread-safe.
class SharedTables {
 public:
  // Each kept table holds a file descriptor, which connections need too: so their number
  // is bounded.
  static constexpr size_t kMaxTables = 256;

  struct Waiter {
    std::function<bool()> waits;  // still; called on any thread, must not block
    // Called once, on a thread of the pool or the one that calls Get, unless the
    // waiter has stopped waiting.
    std::function<void(const absl::StatusOr<SharedTablePointer>&)> tell;
  };

  // What is kept and being filled takes at most budget_bytes. Memory that was
  // evicted is freed when its last reader unmaps it.
  SharedTables(uint64_t budget_bytes, ComputePool* pool)
      : budget_bytes_(budget_bytes), pool_(pool) {}

  SharedTables(const SharedTables&) = delete;
  SharedTables& operator=(const SharedTables&) = delete;

  // All bytes of `table`, which stands at its first. RESOURCE_EXHAUSTED: it is
  // larger than the budget, UNAVAILABLE: fills under way take too much of it.
  // REQUIRES: runs on the pool; this outlives the pool.
  void Get(std::unique_ptr<Table> table, Waiter waiter);

  v1::CacheStats stats() const;

 private:
  struct Fill;

  struct Entry {
    SharedTablePointer table;  // null while it is filled
    std::vector<Waiter> waiters;
    uint64_t bytes;
    uint64_t last_use;
  };

  absl::Status MakeRoom(uint64_t bytes, std::vector<SharedTablePointer>* evicted);
  void Evict(std::vector<SharedTablePointer>* evicted);
  void Step(const std::shared_ptr<Fill>& fill);
  bool Abandon(const std::string& key);
  void Land(const std::string& key, const absl::StatusOr<SharedTablePointer>& table);

  const uint64_t budget_bytes_;
  ComputePool* const pool_;

  // While mutex_ is free: an entry without a table is being filled by exactly one
  // Fill; used_bytes_ is the sum of all entries' bytes, filling_bytes_ of those;
  // used_bytes_ <= budget_bytes_. Nobody waits holding a thread. Tables are
  // filled, and freed, outside the lock.
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_;
  uint64_t used_bytes_ = 0;
  uint64_t filling_bytes_ = 0;
  uint64_t uses_ = 0;
  v1::CacheStats counts_;  // hits, misses, waits, evictions
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_SHARED_TABLES_H_
