#include "server/accept.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace posenc::server {

bool AcceptSome(int listener, const std::function<void(FileDescriptor)>& welcome) {
  constexpr int kAcceptsATurn = 16;
  for (int i = 0; i < kAcceptsATurn; ++i) {
    FileDescriptor socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() >= 0) {
      welcome(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      return false;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return true;
    }  // any other error was one connection's
  }
  return true;
}

}  // namespace posenc::server
