#include "tests/bench/children.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "posenc/v1/service.grpc.pb.h"

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

class NaiveService final : public v1::PositionalEncodingService::Service {
 public:
  // A request's read_offset is the size of its chunks; the table has 64 MiB.
  grpc::Status GetTable(grpc::ServerContext*, const v1::GetTableRequest* request,
                        grpc::ServerWriter<v1::GetTableResponse>* writer) override {
    const size_t chunk = request->read_offset();
    for (size_t at = 0; at < table_.size(); at += chunk) {
      v1::GetTableResponse response;
      response.set_offset(at);
      response.set_data(table_.data() + at, chunk);
      writer->Write(response);
    }
    return grpc::Status::OK;
  }

 private:
  const std::vector<char> table_ = std::vector<char>(size_t{64} << 20, 1);
};

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

void ServeRawSocket(int port_pipe) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener, 1) != 0) {
    _exit(1);
  }
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  SayPort(port_pipe, ntohs(address.sin_port));
  const std::vector<char> buffer(size_t{1} << 20, 1);
  const int connection = accept(listener, nullptr, nullptr);
  uint64_t bytes = 0;
  while (recv(connection, &bytes, sizeof(bytes), MSG_WAITALL) == sizeof(bytes)) {
    if (!SendAll(connection, buffer, bytes)) break;
  }
}

void ServeNaively(int port_pipe) {
  NaiveService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  SayPort(port_pipe, port);
  server->Wait();
}

}  // namespace posenc::bench
