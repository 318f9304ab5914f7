#include "server/acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <utility>

#include "lib/base/status.h"
#include "server/accept.h"
#include "server/log.h"

namespace posenc::server {
namespace {

// A sender waits whenever so much is on its way: with the 208 KiB that Linux gives a Unix
// socket, at every fifth of a chunk. What the system does not allow, it lowers; what it
// counts against it is twice that.
constexpr int kUnixSendBuffer = 512 << 10;

// A TCP peer that acknowledges nothing for so long is gone, as in keepalive.
constexpr unsigned kUserTimeoutMillis = 20'000;

template <typename T>
void SetOption(int socket, int level, int option, T value) {
  setsockopt(socket, level, option, &value, sizeof(value));  // a socket does without
}

void Tune(int socket) {
  int domain = AF_UNSPEC;
  socklen_t size = sizeof(domain);
  getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size);
  if (domain == AF_UNIX) {
    SetOption(socket, SOL_SOCKET, SO_SNDBUF, kUnixSendBuffer);
  } else {
    SetOption(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    SetOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMillis);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Start(std::vector<FileDescriptor> sockets,
                                                          std::unique_ptr<Grpc> grpc,
                                                          Connections* connections) {
  ASSIGN_OR_RETURN(std::shared_ptr<WakeUp> wake, WakeUp::Create());
  return std::unique_ptr<Acceptor>(
      new Acceptor(std::move(sockets), std::move(grpc), connections, std::move(wake)));
}

Acceptor::Acceptor(std::vector<FileDescriptor> sockets, std::unique_ptr<Grpc> grpc,
                   Connections* connections, std::shared_ptr<WakeUp> wake)
    : sockets_(std::move(sockets)),
      grpc_(std::move(grpc)),
      connections_(connections),
      wake_(std::move(wake)),
      thread_([this] { Run(); }) {}

Acceptor::~Acceptor() {
  stopping_ = true;
  wake_->Signal();
  thread_.join();
}

void Acceptor::Run() {
  std::vector<pollfd> polled = {{wake_->fd(), POLLIN, 0}};
  for (const FileDescriptor& socket : sockets_) polled.push_back({socket.get(), POLLIN, 0});
  while (!stopping_) {
    if (poll(polled.data(), polled.size(), -1) < 0) continue;  // a signal
    for (const pollfd& one : polled) {
      if (one.fd == wake_->fd() || one.revents == 0) continue;
      if (!AcceptSome(one.fd, [this](FileDescriptor socket) { Welcome(std::move(socket)); })) {
        Pause();
      }
    }
  }
}

// What waits to be accepted goes on waiting.
void Acceptor::Pause() {
  Warn("no descriptor or no memory is left for a connection: new ones wait");
  pollfd wake = {wake_->fd(), POLLIN, 0};
  poll(&wake, 1, static_cast<int>(kPauseWithoutDescriptors.count()));
}

// One too many is closed, which its peer sees at once.
void Acceptor::Welcome(FileDescriptor socket) {
  if (!connections_->Add(socket.get())) return Warn("too many connections: new ones are closed");
  warned_ = false;
  Tune(socket.get());
  Grpc::NewConnectionParameters connection;
  connection.fd = socket.Release();
  grpc_->HandleNewConnection(&connection);
}

// A flood is one line of the log.
void Acceptor::Warn(const char* what) {
  if (!std::exchange(warned_, true)) Log(LogLevel::kWarning, what);
}

}  // namespace posenc::server
