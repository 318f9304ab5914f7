// The other ends of the wire cases, each a process of its own as in life.
#ifndef POSENC_TESTS_BENCH_CHILDREN_H_
#define POSENC_TESTS_BENCH_CHILDREN_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

namespace posenc::bench {

// A forked child that serves, killed with this object.
// REQUIRES: made before this process uses gRPC, which does not survive a fork.
class Child {
 public:
  // `serve` gets the write end of a pipe on which it says its port; 0 if it has
  // none of TCP.
  explicit Child(const std::function<void(int)>& serve);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  int port() const { return port_; }

 private:
  pid_t pid_;
  int port_ = 0;
};

// A forked child that runs `run` when told to, in a process whose malloc nobody has
// tuned. REQUIRES: as of a Child.
class Worker {
 public:
  explicit Worker(const std::function<double(uint64_t)>& run);

  pid_t pid() const { return child_.pid(); }
  double Run(uint64_t argument);

 private:
  struct Pipes {
    Pipes();
    int to[2];
    int from[2];
  };

  Pipes pipes_;  // before the child, who inherits them
  Child child_;
};

// Sends as many bytes as a client asks for in 8 little-endian bytes, from a
// buffer of 1 MiB: what a socket costs and nothing else. On a free TCP port of
// loopback, with the congestion control `cubic` where the system has it, or, if
// `unix_path` is not empty, there.
void ServeRawSocket(int port_pipe, const std::string& unix_path);

// A connection to such a server, as a file descriptor.
int ConnectRawSocket(int port, const std::string& unix_path);

// The next three serve on a free TCP port and on unix:`unix_path`.

// The usual gRPC code: generated stubs, synchronous, each chunk copied into a
// `bytes` field, parsed and copied out again. DescribeTable answers an empty message.
void ServeNaively(int port_pipe, const std::string& unix_path);

// Every raw DescribeTable is answered with nothing, by one thread on one
// completion queue, or by gRPC's threads through the callback interface.
void ServeEmptyFromQueue(int port_pipe, const std::string& unix_path);
void ServeEmptyFromCallbacks(int port_pipe, const std::string& unix_path);

}  // namespace posenc::bench

#endif  // POSENC_TESTS_BENCH_CHILDREN_H_
