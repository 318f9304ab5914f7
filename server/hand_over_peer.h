// One connection of a hand-over: a request comes, an answer goes, and it is over.
//
//   kReading ──whole request──> kWaiting ──answered──> kWriting ──all sent──> over
//
// Never blocks, and trusts the peer with nothing: memory grows with the bytes
// that came, not with the length it claims; what takes longer than the server's
// patience, hangs up or ends half way is over; descriptors it sends are never
// received, since recv() without room for them makes the kernel drop them.
#ifndef POSENC_SERVER_HAND_OVER_PEER_H_
#define POSENC_SERVER_HAND_OVER_PEER_H_

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "lib/base/file_descriptor.h"
#include "server/hand_over_call.h"

namespace posenc::server {

// Not thread-safe: the polling thread's.
class HandOverPeer {
 public:
  using Clock = std::chrono::steady_clock;

  // `socket` does not block. `patience` is for the whole request to come, and
  // again for the whole answer to be taken; 0: for ever.
  HandOverPeer(FileDescriptor socket, uint64_t max_request_bytes, std::chrono::nanoseconds patience,
               std::shared_ptr<HandOverCall> call);
  ~HandOverPeer();

  // What to poll for.
  pollfd Poll() const;
  // It is over then; time_point::max() for never.
  Clock::time_point deadline() const { return deadline_; }

  // Does what can be done now, given what poll said. False when it is over.
  bool Advance(short revents);

 private:
  enum class State { kReading, kWaiting, kWriting };

  bool Read();
  bool Write();
  ssize_t SendSome(const std::string& frame, int table_fd);
  void Enter(State state);
  void LogAnswer() const;

  const FileDescriptor socket_;
  const uint64_t max_request_bytes_;
  const std::chrono::nanoseconds patience_;
  const std::shared_ptr<HandOverCall> call_;
  const Clock::time_point begin_;

  State state_ = State::kReading;
  Clock::time_point deadline_;
  std::string received_;  // length and request, as far as they came
  size_t sent_ = 0;       // of the call's frame
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_HAND_OVER_PEER_H_
