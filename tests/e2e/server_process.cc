#include "tests/e2e/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"

extern char** environ;

namespace posenc::testing {
namespace {

// A line of `fd` without its end; empty at the end of the stream.
std::string ReadLine(int fd) {
  std::string line;
  char c = 0;
  while (read(fd, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

// Starts `arguments` with its stdout going to `output`.
pid_t Spawn(std::vector<std::string> arguments, int output) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ), 0) << argv[0];
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

}  // namespace

ServerProcess::ServerProcess(std::vector<std::string> flags) {
  folder_ = ::testing::TempDir() + "posenc.XXXXXX";
  EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  std::vector<std::string> arguments = {POSENC_SERVER_BINARY,
                                        "--listen",
                                        "127.0.0.1:0",
                                        "--listen",
                                        absl::StrCat("unix:", folder_, "/socket"),
                                        "--log-level",
                                        "warning"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  output_ = ends[0];
  pid_ = Spawn(std::move(arguments), ends[1]);
  close(ends[1]);
  while (tcp_address_.empty() || unix_address_.empty()) {
    const std::string line = ReadLine(output_);
    absl::string_view address = line;
    if (!absl::ConsumePrefix(&address, "listening on ")) {
      ADD_FAILURE() << "the server said: " << line;
      return;
    }
    (absl::StartsWith(address, "unix:") ? unix_address_ : tcp_address_) = std::string(address);
  }
}

ServerProcess::~ServerProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    int status = -1;
    waitpid(pid_, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
  }
  close(output_);
  unlink(absl::StrCat(folder_, "/socket").c_str());
  unlink(absl::StrCat(folder_, "/socket.lock").c_str());
  rmdir(folder_.c_str());
}

}  // namespace posenc::testing
