#include "server/shared_tables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "lib/base/canonical_key.h"
#include "lib/base/status.h"
#include "lib/hash/xxh3.h"
#include "server/grpc_status.h"
#include "server/request.h"

namespace posenc::server {
namespace {

constexpr uint64_t kSystemPage = 4096;  // what the least memfd takes

// Everything that the bytes depend on, compared whole: table_id is but a hash of it.
// (A table of numbers that is too large for a header is here by its hash.)
std::string KeyOf(const v1::TableHeader& header) {
  return absl::StrCat(header.table_id(), header.numerics_version(), ";",
                      CanonicalKey(header.spec()), CanonicalKey(header.selection()),
                      CanonicalKey(header.format()));
}

uint64_t CostOf(const v1::TableHeader& header, const std::string& key) {
  return (header.total_bytes() / kSystemPage + 1) * kSystemPage + key.size();
}

}  // namespace

// One table on its way into memory. One thread at a time has it.
struct SharedTables::Fill {
  absl::Status AppendPage() {
    if (table->done()) return absl::OkStatus();
    const Slice slice = table->Next();
    hash.Update(slice.bytes);
    return file.Append(slice.bytes);
  }

  absl::StatusOr<SharedTablePointer> Seal() {
    RETURN_IF_ERROR(file.Seal());
    return std::make_shared<const SharedTable>(SharedTable{std::move(file), hash.Hex128()});
  }

  std::string key;
  std::unique_ptr<Table> table;
  MemoryFile file;
  Xxh3 hash = {};
};

void SharedTables::Get(std::unique_ptr<Table> table, Waiter waiter) {
  const std::string key = KeyOf(table->header());
  const uint64_t bytes = CostOf(table->header(), key);
  std::vector<SharedTablePointer> evicted;  // freed after the lock
  SharedTablePointer kept;
  absl::Status refused;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) {
      found->second.last_use = ++uses_;
      kept = found->second.table;
      if (kept == nullptr) {
        counts_.set_waits(counts_.waits() + 1);
        found->second.waiters.push_back(std::move(waiter));
        return;
      }
      counts_.set_hits(counts_.hits() + 1);
    } else if (refused = MakeRoom(bytes, &evicted); refused.ok()) {
      entries_[key] = Entry{nullptr, {std::move(waiter)}, bytes, ++uses_};
      counts_.set_misses(counts_.misses() + 1);
      used_bytes_ += bytes;
      filling_bytes_ += bytes;
    }
  }
  if (kept != nullptr) return waiter.tell(kept);
  if (!refused.ok()) return waiter.tell(refused);

  std::shared_ptr<Fill> fill;
  const absl::Status began = Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(MemoryFile file, MemoryFile::Create(table->header().total_bytes()));
    fill = std::make_shared<Fill>(Fill{key, std::move(table), std::move(file)});
    return absl::OkStatus();
  });
  if (!began.ok()) return Land(key, began);
  Step(fill);
}

// REQUIRES: mutex_ is held. Evicts nothing when that would not help.
absl::Status SharedTables::MakeRoom(uint64_t bytes, std::vector<SharedTablePointer>* evicted) {
  if (bytes > budget_bytes_) {
    return QuotaError("selection", absl::StrCat("the table's ", bytes, " bytes of shared memory ",
                                                "exceed share_memory_bytes (", budget_bytes_, ")"));
  }
  const auto filling = static_cast<size_t>(std::count_if(
      entries_.begin(), entries_.end(), [](const auto& e) { return e.second.table == nullptr; }));
  if (filling_bytes_ + bytes > budget_bytes_ || filling >= kMaxTables) {
    return BusyError(
        absl::StrCat("tables under way take up share_memory_bytes (", budget_bytes_, ")"),
        absl::Milliseconds(100));
  }
  while (used_bytes_ + bytes > budget_bytes_ || entries_.size() >= kMaxTables) Evict(evicted);
  return absl::OkStatus();
}

// The table that was used least recently. REQUIRES: mutex_ is held, and there is one.
void SharedTables::Evict(std::vector<SharedTablePointer>* evicted) {
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->second.table == nullptr) continue;
    if (oldest == entries_.end() || entry->second.last_use < oldest->second.last_use) {
      oldest = entry;
    }
  }
  used_bytes_ -= oldest->second.bytes;
  counts_.set_evictions(counts_.evictions() + 1);
  evicted->push_back(std::move(oldest->second.table));
  entries_.erase(oldest);
}

// A page of it; the next in another turn.
void SharedTables::Step(const std::shared_ptr<Fill>& fill) {
  if (Abandon(fill->key)) return;
  SharedTablePointer made;
  const absl::Status status = Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(fill->AppendPage());
    if (!fill->table->done()) return absl::OkStatus();
    ASSIGN_OR_RETURN(made, fill->Seal());
    return absl::OkStatus();
  });
  if (!status.ok()) return Land(fill->key, status);
  if (made != nullptr) return Land(fill->key, made);
  pool_->Continue([this, fill] { Step(fill); });
}

// Whether nobody waits for the table under way any more; then it is none.
bool SharedTables::Abandon(const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto entry = entries_.find(key);
  std::erase_if(entry->second.waiters, [](const Waiter& waiter) { return !waiter.waits(); });
  if (!entry->second.waiters.empty()) return false;
  used_bytes_ -= entry->second.bytes;
  filling_bytes_ -= entry->second.bytes;
  entries_.erase(entry);
  return true;
}

// Ends a fill: keeps the table, or forgets that there was one, and tells who waits.
void SharedTables::Land(const std::string& key, const absl::StatusOr<SharedTablePointer>& table) {
  std::vector<Waiter> waiters;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto entry = entries_.find(key);
    waiters.swap(entry->second.waiters);
    filling_bytes_ -= entry->second.bytes;
    if (table.ok()) {
      entry->second.table = *table;
    } else {
      used_bytes_ -= entry->second.bytes;
      entries_.erase(entry);
    }
  }
  for (const Waiter& waiter : waiters) waiter.tell(table);
}

v1::CacheStats SharedTables::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  v1::CacheStats stats = counts_;
  stats.set_bytes(used_bytes_);
  stats.set_budget_bytes(budget_bytes_);
  stats.set_entries(entries_.size());
  return stats;
}

}  // namespace posenc::server
