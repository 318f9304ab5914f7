// Accepts connections and gives them to gRPC.
//
// gRPC's own listeners never accept again once descriptors ran out (CVE-2023-4785, not
// mended in 1.51), know no limit, and leave a Unix socket's buffer as small as it is.
#ifndef POSENC_SERVER_ACCEPTOR_H_
#define POSENC_SERVER_ACCEPTOR_H_

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/server_builder.h"
#include "lib/base/file_descriptor.h"
#include "server/connections.h"
#include "server/wake_up.h"

namespace posenc::server {

class Acceptor {
 public:
  using Grpc = grpc::experimental::ExternalConnectionAcceptor;

  // Accepts from here on, on a thread of its own. REQUIRES: the sockets listen and do not
  // block; `grpc` is of a server that has started, and that is not shut down before this
  // is gone; `connections` outlives this.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Start(std::vector<FileDescriptor> sockets,
                                                         std::unique_ptr<Grpc> grpc,
                                                         Connections* connections);
  ~Acceptor();  // the sockets are closed then

  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

 private:
  Acceptor(std::vector<FileDescriptor> sockets, std::unique_ptr<Grpc> grpc,
           Connections* connections, std::shared_ptr<WakeUp> wake);

  void Run();
  void Pause();
  void Welcome(FileDescriptor socket);
  void Warn(const char* what);

  const std::vector<FileDescriptor> sockets_;
  const std::unique_ptr<Grpc> grpc_;
  Connections* const connections_;
  const std::shared_ptr<WakeUp> wake_;

  std::atomic<bool> stopping_{false};
  const char* last_warning_ = nullptr;  // since the last connection; the thread's own
  std::thread thread_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_ACCEPTOR_H_
