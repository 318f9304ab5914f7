#include "tests/support/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"

extern char** environ;

namespace posenc::testing {
namespace {

// Removed when the test process ends; short, since a Unix socket's path is.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "posenc-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::vector<char*> Pointers(std::vector<std::string>* strings) {
  std::vector<char*> pointers;
  for (std::string& string : *strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string TemporaryPath(const std::string& name) {
  static const TemporaryDirectory directory;
  static int count = 0;
  return (directory.path() / (std::to_string(count++) + "-" + name)).string();
}

Process::Process(const std::vector<std::string>& argv, const std::vector<std::string>& environment)
    : errors_path_(TemporaryPath("stderr")) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) std::abort();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors_path_.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::vector<std::string> arguments = argv;
  std::vector<std::string> variables = environment;  // first: the first of a name counts
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  const int error = posix_spawnp(&pid_, argv[0].c_str(), &actions, nullptr,
                                 Pointers(&arguments).data(), Pointers(&variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  out_ = pipe_ends[0];
  EXPECT_EQ(error, 0) << "cannot start " << argv[0];
  ended_ = error != 0;
}

Process::~Process() {
  if (!ended_) {
    kill(pid_, SIGKILL);
    Wait();
  }
  close(out_);
}

void Process::Signal(int signal) {
  if (!ended_) kill(pid_, signal);
}

bool Process::ReadLine(std::string* line) {
  while (true) {
    if (const size_t newline = unread_.find('\n'); newline != std::string::npos) {
      *line = unread_.substr(0, newline);
      unread_.erase(0, newline + 1);
      return true;
    }
    char buffer[4096];
    const ssize_t count = read(out_, buffer, sizeof(buffer));
    if (count <= 0) return false;
    unread_.append(buffer, static_cast<size_t>(count));
  }
}

bool Process::running() { return !Reap(WNOHANG); }

int Process::Wait() {
  Reap(0);
  return exit_code_;
}

bool Process::Reap(int options) {
  int status = 0;
  if (!ended_ && waitpid(pid_, &status, options) == pid_) {
    ended_ = true;
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return ended_;
}

uint64_t Process::ResidentBytes() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string word; status >> word;) {
    if (word != "VmRSS:") continue;
    uint64_t kib = 0;
    status >> kib;
    return kib << 10;
  }
  return 0;
}

std::string Process::Errors() const {
  std::ostringstream text;
  text << std::ifstream(errors_path_).rdbuf();
  return text.str();
}

namespace {

std::vector<std::string> ServerCommand(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {POSENC_SERVER_BINARY};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace

ServerProcess::ServerProcess(const std::vector<std::string>& arguments,
                             const std::vector<std::string>& environment)
    : Process(ServerCommand(arguments), environment) {}

const std::vector<std::string>& ServerProcess::WaitForAddresses(size_t count) {
  constexpr char kListening[] = "listening on ";
  std::string line;
  while (addresses_.size() < count && ReadLine(&line)) {
    if (line.rfind(kListening, 0) == 0) addresses_.push_back(line.substr(sizeof(kListening) - 1));
  }
  return addresses_;
}

std::string ServerProcess::address() {
  if (WaitForAddresses().empty()) {
    ADD_FAILURE() << Errors();
    return "";
  }
  return addresses_[0];
}

}  // namespace posenc::testing
