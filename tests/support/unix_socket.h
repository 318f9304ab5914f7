// A hand-over (hand_over.proto) as tests speak it, from either end: raw bytes and
// descriptors, so that a peer can do what a decent one never would.
#ifndef POSENC_TESTS_SUPPORT_UNIX_SOCKET_H_
#define POSENC_TESTS_SUPPORT_UNIX_SOCKET_H_

#include <fcntl.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "google/protobuf/message.h"

namespace posenc::testing {

inline constexpr int kAllSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// A descriptor that is closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int get() const { return fd_; }

 private:
  int fd_;
};

// Memory that holds `bytes`, with these seals on it.
Descriptor MakeMemory(const std::string& bytes, int seals = kAllSeals);

// How many descriptors this process has open.
int OpenDescriptors();

// `message` behind its length.
std::string Framed(const google::protobuf::Message& message);
std::string Framed(const std::string& bytes);

// A socket at `path` that does not listen yet.
Descriptor BindUnix(const std::string& path);

// Not thread-safe. Blocks.
class UnixSocket {
 public:
  explicit UnixSocket(Descriptor fd) : fd_(std::move(fd)) {}
  // A failure of the test when nobody listens at `path`.
  explicit UnixSocket(const std::string& path);

  // False when the peer is gone.
  bool Send(const std::string& bytes, const std::vector<int>& descriptors = {});
  void EndSending();

  // The next `bytes` bytes, or what came of them before the end.
  std::string Receive(size_t bytes);
  // Until the peer hangs up.
  std::string ReceiveRest() { return Receive(std::string::npos); }
  // The next framed message, and its descriptors; false when none comes.
  bool Receive(google::protobuf::Message* message);
  // Those that came so far.
  const std::vector<Descriptor>& descriptors() const { return descriptors_; }

 private:
  Descriptor fd_;
  std::vector<Descriptor> descriptors_;
};

// Listens at `path` and does with each connection as `serve` says, one by one.
class UnixServer {
 public:
  UnixServer(const std::string& path, std::function<void(UnixSocket*)> serve);
  ~UnixServer();

 private:
  Descriptor listener_;
  std::thread thread_;
};

}  // namespace posenc::testing

#endif  // POSENC_TESTS_SUPPORT_UNIX_SOCKET_H_
