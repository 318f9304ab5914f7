// posenc-server as a process of its own, for tests of what users run.
#ifndef POSENC_TESTS_E2E_SERVER_PROCESS_H_
#define POSENC_TESTS_E2E_SERVER_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace posenc::testing {

class ServerProcess {
 public:
  // Starts the binary on a free loopback port and on a Unix socket, with `flags`
  // besides, and waits until it listens. Fails the test when it does not.
  explicit ServerProcess(std::vector<std::string> flags = {});

  // Ends it (SIGTERM) and fails the test unless it exits with 0.
  ~ServerProcess();

  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // As a client names them: 127.0.0.1:40001, unix:/tmp/...
  const std::string& tcp_address() const { return tcp_address_; }
  const std::string& unix_address() const { return unix_address_; }

 private:
  std::string folder_;
  std::string tcp_address_;
  std::string unix_address_;
  pid_t pid_ = -1;
  int output_ = -1;  // read end of its stdout
};

}  // namespace posenc::testing

#endif  // POSENC_TESTS_E2E_SERVER_PROCESS_H_
