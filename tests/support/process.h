// Real programs as tests run them: a child process, its output, its end.
#ifndef POSENC_TESTS_SUPPORT_PROCESS_H_
#define POSENC_TESTS_SUPPORT_PROCESS_H_

#include <sys/types.h>

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

  // Waits for the end: the exit code, or 128 + the signal that ended it.
  int Wait();

  // What it has written to stderr so far.
  std::string Errors() const;

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::string unread_;
  std::string errors_path_;
  bool waited_ = false;
  int exit_code_ = 0;
};

// posenc-server on the addresses that `arguments` name, ready to serve.
class ServerProcess {
 public:
  explicit ServerProcess(const std::vector<std::string>& arguments,
                         const std::vector<std::string>& environment = {});

  // The first bound address, as gRPC clients take it. Empty: it did not start.
  const std::string& address() const { return address_; }
  Process& process() { return process_; }

 private:
  Process process_;
  std::string address_;
};

}  // namespace posenc::testing

#endif  // POSENC_TESTS_SUPPORT_PROCESS_H_
