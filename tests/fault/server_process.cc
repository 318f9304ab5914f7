#include "tests/fault/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "gtest/gtest.h"

extern char** environ;

namespace posenc::testing {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<char*> Pointers(std::vector<std::string>* strings) {
  std::vector<char*> pointers;
  for (std::string& text : *strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

ServerProcess::ServerProcess(const std::vector<std::string>& arguments,
                             const std::vector<std::string>& environment) {
  char name[] = "/tmp/posenc-server-XXXXXX";
  EXPECT_NE(mkdtemp(name), nullptr);
  folder_ = name;

  std::vector<std::string> argv = {POSENC_SERVER_BINARY};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  std::vector<std::string> env = environment;
  for (char** one = environ; *one != nullptr; ++one) env.emplace_back(*one);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, (folder_ / "out").c_str(), kFlags,
                                   0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, (folder_ / "err").c_str(), kFlags,
                                   0600);
  const int error = posix_spawn(&pid_, argv[0].c_str(), &actions, nullptr, Pointers(&argv).data(),
                                Pointers(&env).data());
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(error, 0);
}

ServerProcess::~ServerProcess() {
  if (running()) {
    Signal(SIGKILL);
    Wait();
  }
  std::filesystem::remove_all(folder_);
}

std::vector<std::string> ServerProcess::WaitForAddresses(size_t count) {
  constexpr char kPrefix[] = "listening on ";
  std::vector<std::string> addresses;
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    addresses.clear();
    std::istringstream lines(Stdout());
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind(kPrefix, 0) == 0) addresses.push_back(line.substr(sizeof(kPrefix) - 1));
    }
  } while (addresses.size() < count && running());
  return addresses;
}

void ServerProcess::Signal(int number) const { kill(pid_, number); }

bool ServerProcess::running() {
  if (ended_) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return true;
  ended_ = true;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return false;
}

int ServerProcess::Wait() {
  while (running()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return exit_code_;
}

uint64_t ServerProcess::ResidentBytes() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string word; status >> word;) {
    if (word != "VmRSS:") continue;
    uint64_t kib = 0;
    status >> kib;
    return kib << 10;
  }
  return 0;
}

std::string ServerProcess::Stdout() const { return ReadFile(folder_ / "out"); }
std::string ServerProcess::Stderr() const { return ReadFile(folder_ / "err"); }

}  // namespace posenc::testing
