#include "server/acceptor.h"

#include <poll.h>
#include <sys/socket.h>

#include <utility>

#include "lib/base/status.h"
#include "server/accept.h"
#include "server/log.h"
#include "server/socket_options.h"

namespace posenc::server {
namespace {

bool HasPeer(int socket) {
  sockaddr_storage peer;
  socklen_t size = sizeof(peer);
  return getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
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

// One too many is closed, which its peer sees at once. gRPC has a line in the log for each
// whose peer is gone already.
void Acceptor::Welcome(FileDescriptor socket) {
  if (!HasPeer(socket.get())) return;
  if (!connections_->Add(socket.get())) return Warn("too many connections: new ones are closed");
  last_warning_ = nullptr;
  SetSocketOptions(socket.get());
  Grpc::NewConnectionParameters connection;
  connection.fd = socket.Release();
  grpc_->HandleNewConnection(&connection);
}

// A flood is one line of the log.
void Acceptor::Warn(const char* what) {
  if (std::exchange(last_warning_, what) != what) Log(LogLevel::kWarning, what);
}

}  // namespace posenc::server
