// The real posenc-server as a process of its own, for what only a process shows:
// signals, exit codes, memory, what it prints.
#ifndef POSENC_TESTS_FAULT_SERVER_PROCESS_H_
#define POSENC_TESTS_FAULT_SERVER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace posenc::testing {

class ServerProcess {
 public:
  // Starts `posenc-server arguments...`, without waiting for it. `environment`
  // holds NAME=value and is added to this process's.
  explicit ServerProcess(const std::vector<std::string>& arguments,
                         const std::vector<std::string>& environment = {});
  ~ServerProcess();  // kills it if it still runs

  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // The addresses it says it listens on, once it has said so many. Fewer when it
  // has ended.
  std::vector<std::string> WaitForAddresses(size_t count = 1);

  void Signal(int number) const;
  // Its exit code, once it has ended; -1 when a signal ended it.
  int Wait();
  bool running();

  // Resident memory now, in bytes.
  uint64_t ResidentBytes() const;

  std::string Stdout() const;
  std::string Stderr() const;

 private:
  std::filesystem::path folder_;  // holds what it prints
  pid_t pid_ = -1;
  bool ended_ = false;
  int exit_code_ = -1;
};

}  // namespace posenc::testing

#endif  // POSENC_TESTS_FAULT_SERVER_PROCESS_H_
