#include "tests/bench/children.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace posenc::bench {
namespace {

void SayPort(int pipe, int port) {
  if (write(pipe, &port, sizeof(port)) != sizeof(port)) _exit(1);
}

bool SendAll(int socket, const std::vector<char>& buffer, uint64_t bytes) {
  while (bytes > 0) {
    const ssize_t sent = send(socket, buffer.data(), std::min<uint64_t>(bytes, buffer.size()), 0);
    if (sent <= 0) return false;
    bytes -= static_cast<uint64_t>(sent);
  }
  return true;
}

union Address {
  sockaddr any;
  sockaddr_in tcp;
  sockaddr_un unix_path;
};

Address AddressOf(int port, const std::string& unix_path) {
  Address address = {};
  if (unix_path.empty()) {
    address.tcp.sin_family = AF_INET;
    address.tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.tcp.sin_port = htons(static_cast<uint16_t>(port));
  } else {
    address.unix_path.sun_family = AF_UNIX;
    std::strncpy(address.unix_path.sun_path, unix_path.c_str(),
                 sizeof(address.unix_path.sun_path) - 1);
  }
  return address;
}

socklen_t SizeOf(const std::string& unix_path) {
  return unix_path.empty() ? sizeof(sockaddr_in) : sizeof(sockaddr_un);
}

// The raw limit that the goals name is that of cubic; who sends, decides.
int MakeSocket(const std::string& unix_path) {
  const int made = socket(unix_path.empty() ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
  if (unix_path.empty()) setsockopt(made, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
  return made;
}

}  // namespace

Child::Child(const std::function<void(int)>& serve) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  if (read(ends[0], &port_, sizeof(port_)) != sizeof(port_)) std::abort();
  close(ends[0]);
}

Child::~Child() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

Worker::Pipes::Pipes() {
  if (pipe(to) != 0 || pipe(from) != 0) std::abort();
}

Worker::Worker(const std::function<double(uint64_t)>& run)
    : child_([&](int port_pipe) {
        SayPort(port_pipe, 0);
        uint64_t argument = 0;
        while (read(pipes_.to[0], &argument, sizeof(argument)) == sizeof(argument)) {
          const double seconds = run(argument);
          if (write(pipes_.from[1], &seconds, sizeof(seconds)) != sizeof(seconds)) break;
        }
      }) {}

double Worker::Run(uint64_t argument) {
  double seconds = 0;
  if (write(pipes_.to[1], &argument, sizeof(argument)) != sizeof(argument) ||
      read(pipes_.from[0], &seconds, sizeof(seconds)) != sizeof(seconds)) {
    std::abort();
  }
  return seconds;
}

void ServeRawSocket(int port_pipe, const std::string& unix_path) {
  const int listener = MakeSocket(unix_path);
  Address address = AddressOf(0, unix_path);
  socklen_t size = SizeOf(unix_path);
  if (bind(listener, &address.any, size) != 0 || listen(listener, 1) != 0) _exit(1);
  getsockname(listener, &address.any, &size);
  SayPort(port_pipe, unix_path.empty() ? ntohs(address.tcp.sin_port) : 0);
  const std::vector<char> buffer(size_t{1} << 20, 1);
  const int connection = accept(listener, nullptr, nullptr);
  uint64_t bytes = 0;
  while (recv(connection, &bytes, sizeof(bytes), MSG_WAITALL) == sizeof(bytes)) {
    if (!SendAll(connection, buffer, bytes)) break;
  }
}

int ConnectRawSocket(int port, const std::string& unix_path) {
  const int connection = MakeSocket(unix_path);
  const Address address = AddressOf(port, unix_path);
  if (connect(connection, &address.any, SizeOf(unix_path)) != 0) std::abort();
  const int on = 1;
  if (unix_path.empty()) setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return connection;
}

}  // namespace posenc::bench
