// A cache bounded by bytes in which exactly one thread makes a missing value.
//
// It knows nothing of encodings: a key is a byte string that holds everything
// the value depends on (compared whole), a value is immutable and shared.
// Evicted values live on while somebody holds them.
//
// Least recently used goes first. A value larger than the budget is handed out
// but not kept; with a budget of 0 nothing is kept, and callers that ask for the
// same key at the same time still share one making.
#ifndef POSENC_LIB_CACHE_SINGLE_FLIGHT_CACHE_H_
#define POSENC_LIB_CACHE_SINGLE_FLIGHT_CACHE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace posenc {

struct CacheCounters {
  uint64_t bytes = 0;
  uint64_t budget_bytes = 0;
  uint64_t entries = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t waits = 0;  // lookups that waited for another thread's making
  uint64_t evictions = 0;
};

// Thread-safe. Value needs `size_t bytes() const`.
template <typename Value>
class SingleFlightCache {
 public:
  using Pointer = std::shared_ptr<const Value>;

  explicit SingleFlightCache(size_t budget_bytes) { counters_.budget_bytes = budget_bytes; }

  SingleFlightCache(const SingleFlightCache&) = delete;
  SingleFlightCache& operator=(const SingleFlightCache&) = delete;

  // The value of `key`; null when it is absent or still being made.
  Pointer Find(absl::string_view key) {
    std::lock_guard<std::mutex> lock(mutex_);
    return Touch(key);
  }

  // The value of `key`, made by `make` (-> Pointer, not null) if it is absent.
  // Makes outside the lock. If `make` throws, this caller sees the exception and
  // those who waited try for themselves.
  template <typename Make>
  Pointer FindOrMake(absl::string_view key, Make&& make) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      if (Pointer found = Touch(key)) return found;
      const auto flight = flights_.find(key);
      if (flight == flights_.end()) break;
      ++counters_.waits;
      const std::shared_ptr<Flight> shared = flight->second;
      landed_.wait(lock, [&] { return shared->done; });
      if (shared->value != nullptr) return shared->value;
    }
    ++counters_.misses;
    const auto flight = std::make_shared<Flight>();
    flights_.emplace(key, flight);
    lock.unlock();
    Lander lander{this, key, flight.get()};  // lands on every way out
    lander.value = make();
    return lander.value;
  }

  CacheCounters counters() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return counters_;
  }

 private:
  // A making under way; whoever waits holds it, so it outlives its map entry.
  struct Flight {
    bool done = false;
    Pointer value;  // null if the making failed
  };

  struct Entry {
    std::string key;
    Pointer value;
    size_t bytes;
  };

  struct Lander {
    SingleFlightCache* cache;
    absl::string_view key;
    Flight* flight;
    Pointer value = nullptr;
    ~Lander() { cache->Land(key, flight, value); }
  };

  // REQUIRES: mutex_ is held.
  Pointer Touch(absl::string_view key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    ++counters_.hits;
    order_.splice(order_.begin(), order_, found->second);
    return found->second->value;
  }

  void Land(absl::string_view key, Flight* flight, const Pointer& value) {
    std::list<Entry> evicted;  // destroyed after the lock
    {
      std::lock_guard<std::mutex> lock(mutex_);
      flight->done = true;
      flight->value = value;
      flights_.erase(key);
      if (value != nullptr) Keep(key, value, &evicted);
    }
    landed_.notify_all();
  }

  // REQUIRES: mutex_ is held.
  void Keep(absl::string_view key, const Pointer& value, std::list<Entry>* evicted) {
    const size_t bytes = value->bytes() + key.size();
    if (bytes > counters_.budget_bytes) return;
    while (counters_.bytes + bytes > counters_.budget_bytes) {
      const auto oldest = std::prev(order_.end());
      counters_.bytes -= oldest->bytes;
      ++counters_.evictions;
      entries_.erase(oldest->key);
      evicted->splice(evicted->begin(), order_, oldest);
    }
    order_.push_front(Entry{std::string(key), value, bytes});
    entries_.emplace(absl::string_view(order_.front().key), order_.begin());
    counters_.bytes += bytes;
    counters_.entries = entries_.size();
  }

  // While mutex_ is free: entries_ indexes exactly order_ (most recent first),
  // counters_.bytes is the sum of its bytes and at most the budget, and a key is
  // in flights_ exactly while one thread makes it, which then is not in entries_.
  // Waiters wait for Flight::done; makers wait for nobody.
  mutable std::mutex mutex_;
  std::condition_variable landed_;
  std::list<Entry> order_;
  absl::flat_hash_map<absl::string_view, typename std::list<Entry>::iterator> entries_;
  absl::flat_hash_map<std::string, std::shared_ptr<Flight>> flights_;
  CacheCounters counters_;
};

}  // namespace posenc

#endif  // POSENC_LIB_CACHE_SINGLE_FLIGHT_CACHE_H_
