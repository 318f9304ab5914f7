// Gives tables to readers on this host as sealed memory (hand_over.proto).
//
// Beside each listening unix:PATH a socket PATH.memfd, which only this user may
// open; who connects all the same under another user id is sent away without a
// byte. One thread polls all connections, at most kMaxPeers, and computes
// nothing: that is the pool's.
#ifndef POSENC_SERVER_HAND_OVER_H_
#define POSENC_SERVER_HAND_OVER_H_

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/file_descriptor.h"
#include "server/hand_over_call.h"
#include "server/hand_over_peer.h"
#include "server/listen.h"
#include "server/service.h"
#include "server/wake_up.h"

namespace posenc::server {

// Thread-safe.
class HandOver {
 public:
  // A connection more is closed at once: its reader takes the stream.
  static constexpr size_t kMaxPeers = 64;

  // Serves from here on. FAILED_PRECONDITION or UNAVAILABLE when something else is
  // at a PATH.memfd, INVALID_ARGUMENT when the name is too long. `patience`: see
  // HandOverPeer. REQUIRES: parts.shared_tables; parts and what is in them outlive
  // this, and the pool's last job.
  static absl::StatusOr<std::unique_ptr<HandOver>> Start(const std::vector<std::string>& unix_paths,
                                                         std::chrono::nanoseconds patience,
                                                         const ServiceParts& parts);
  ~HandOver();  // closes all connections; the sockets are gone then

  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;

 private:
  using Clock = HandOverPeer::Clock;

  struct Listener {
    std::unique_ptr<UnixPathLock> lock;
    FileDescriptor socket;
  };

  HandOver(const ServiceParts& parts, std::chrono::nanoseconds patience,
           std::shared_ptr<WakeUp> wake)
      : parts_(parts), patience_(patience), wake_(std::move(wake)) {}

  absl::Status Listen(const std::string& path);
  void Run();
  std::vector<pollfd> WhatToPoll() const;
  int PollTimeoutMillis() const;
  void Accept(int listener);
  void Welcome(FileDescriptor socket);

  const ServiceParts& parts_;
  const std::chrono::nanoseconds patience_;
  const std::shared_ptr<WakeUp> wake_;
  std::vector<Listener> listeners_;

  std::atomic<bool> stopping_{false};
  // The thread's own.
  std::vector<std::unique_ptr<HandOverPeer>> peers_;
  Clock::time_point no_accept_before_{};
  std::thread thread_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_HAND_OVER_H_
