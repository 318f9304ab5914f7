// The other ends of the wire cases, each a process of its own as in life.
#ifndef POSENC_TESTS_BENCH_CHILDREN_H_
#define POSENC_TESTS_BENCH_CHILDREN_H_

#include <sys/types.h>

#include <functional>
#include <string>

namespace posenc::bench {

// A forked child that serves on a loopback port, killed with this object.
// REQUIRES: made before this process uses gRPC, which does not survive a fork.
class Child {
 public:
  // `serve` gets the write end of a pipe on which it says its port.
  explicit Child(const std::function<void(int)>& serve);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int port() const { return port_; }

 private:
  pid_t pid_;
  int port_ = 0;
};

// Sends as many bytes as a client asks for in 8 little-endian bytes, from a
// buffer of 1 MiB: what a socket costs and nothing else.
void ServeRawSocket(int port_pipe);

// The usual gRPC code: generated stubs, synchronous, each chunk copied into a
// `bytes` field, parsed and copied out again.
void ServeNaively(int port_pipe);

}  // namespace posenc::bench

#endif  // POSENC_TESTS_BENCH_CHILDREN_H_
