// A TCP relay that breaks connections: what a bad network does to a stream.
#ifndef POSENC_TESTS_E2E_CUTTING_PROXY_H_
#define POSENC_TESTS_E2E_CUTTING_PROXY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

namespace posenc::testing {

// Relays one connection at a time from a free loopback port to `target`, and
// resets it once `cut_after` bytes came from the target; after `cuts` resets it
// relays everything.
class CuttingProxy {
 public:
  CuttingProxy(const std::string& target, size_t cut_after, int cuts);
  ~CuttingProxy();

  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  const std::string& address() const { return address_; }
  int cuts_made() const { return cuts_made_; }

 private:
  void Serve();
  // True when the connection was cut, not closed.
  bool Relay(int client, int server, size_t limit);

  const uint16_t target_port_;
  const size_t cut_after_;
  const int cuts_;
  std::string address_;
  int listener_ = -1;
  std::atomic<bool> stop_{false};
  std::atomic<int> cuts_made_{0};
  std::thread thread_;
};

}  // namespace posenc::testing

#endif  // POSENC_TESTS_E2E_CUTTING_PROXY_H_
