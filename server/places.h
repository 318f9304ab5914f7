// A number of places, taken without waiting.
#ifndef POSENC_SERVER_PLACES_H_
#define POSENC_SERVER_PLACES_H_

#include <atomic>
#include <cstdint>

namespace posenc::server {

// Thread-safe.
class Places {
 public:
  explicit Places(int64_t count) : free_(count) {}

  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  // False when all are taken.
  [[nodiscard]] bool TryEnter() {
    if (free_.fetch_sub(1, std::memory_order_relaxed) > 0) return true;
    Leave();
    return false;
  }
  void Leave() { free_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> free_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_PLACES_H_
