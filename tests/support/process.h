// Real programs as tests run them: a child process, its output, its end.
#ifndef POSENC_TESTS_SUPPORT_PROCESS_H_
#define POSENC_TESTS_SUPPORT_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace posenc::testing {

// A path below a directory of this test process, which goes when the process does.
std::string TemporaryPath(const std::string& name);

// A child process whose stdout is read line by line and whose stderr goes to a
// file. The destructor kills what still runs. Not thread-safe.
class Process {
 public:
  // argv[0] is the program. `environment` is added to that of the test.
  explicit Process(const std::vector<std::string>& argv,
                   const std::vector<std::string>& environment = {});
  ~Process();

  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal);

  // The next line of stdout without its newline; false at its end.
  bool ReadLine(std::string* line);

  bool running();

  // Waits for the end: the exit code, or 128 + the signal that ended it.
  int Wait();

  // Resident memory now, in bytes.
  uint64_t ResidentBytes() const;

  // What it has written to stderr so far.
  std::string Errors() const;

 private:
  bool Reap(int options);  // true: it has ended

  pid_t pid_ = -1;
  int out_ = -1;
  std::string unread_;
  std::string errors_path_;
  bool ended_ = false;
  int exit_code_ = 0;
};

// posenc-server with `arguments`. Not thread-safe.
class ServerProcess : public Process {
 public:
  explicit ServerProcess(const std::vector<std::string>& arguments,
                         const std::vector<std::string>& environment = {});

  // The addresses it says it listens on, as gRPC clients take them, once it has
  // said so many. Fewer: it has ended.
  const std::vector<std::string>& WaitForAddresses(size_t count = 1);

  // The first of them. Empty, and a failure of the test: it did not start.
  std::string address();

 private:
  std::vector<std::string> addresses_;
};

}  // namespace posenc::testing

#endif  // POSENC_TESTS_SUPPORT_PROCESS_H_
