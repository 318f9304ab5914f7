// The connections that gRPC serves.
//
// It owns their sockets and says nothing when it closes one: they are known by their
// descriptors, as long as these are still the sockets that they were.
#ifndef POSENC_SERVER_CONNECTIONS_H_
#define POSENC_SERVER_CONNECTIONS_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <mutex>
#include <vector>

#include "lib/base/file_descriptor.h"

namespace posenc::server {

struct Connection {
  bool IsOpen() const;
  // The socket, which no other has the number of while it is held; none once it is closed.
  FileDescriptor Hold() const;

  int fd;
  ino_t socket;  // a descriptor may be another socket's later
};

// Thread-safe.
class Connections {
 public:
  // At most so many at a time.
  explicit Connections(size_t most) : most_(most) {}

  // False when there are as many as there may be; for some milliseconds more, too, after
  // one has gone, so that a flood costs no look at all of them each. REQUIRES: `fd` is an
  // open socket.
  bool Add(int fd);

  // Those that are open.
  std::vector<Connection> Open();

 private:
  using Clock = std::chrono::steady_clock;

  void ForgetTheClosed();

  const size_t most_;

  std::mutex mutex_;
  std::vector<Connection> connections_;  // all that are open; some are not any more
  Clock::time_point last_found_full_{};
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_CONNECTIONS_H_
