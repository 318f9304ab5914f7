// numpy and torch, run by a child process that answers with seconds.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>

#include "tests/bench/cases.h"

namespace posenc::bench {
namespace {

class PythonPeers {
 public:
  PythonPeers() {
    int to[2];
    int from[2];
    if (pipe(to) != 0 || pipe(from) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      close(to[1]);
      execl("/usr/bin/python3", "python3", POSENC_BENCH_PEERS, nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    to_ = fdopen(to[1], "w");
    from_ = fdopen(from[0], "r");
  }
  ~PythonPeers() {
    std::fclose(to_);
    std::fclose(from_);
    kill(pid_, SIGKILL);  // later children hold the pipe open: it sees no end of its input
    waitpid(pid_, nullptr, 0);
  }

  double Run(const std::string& name) {
    std::fprintf(to_, "%s\n", name.c_str());
    std::fflush(to_);
    double seconds = 0;
    if (std::fscanf(from_, "%lf", &seconds) != 1) return std::numeric_limits<double>::infinity();
    return seconds;
  }

 private:
  pid_t pid_;
  std::FILE* to_;
  std::FILE* from_;
};

}  // namespace

void AddPeerCases(Rounds* rounds) {
  const auto peers = std::make_shared<PythonPeers>();
  for (const char* name :
       {"numpy rope", "numpy rope out=", "numpy sinusoidal", "torch rope", "torch vllm"}) {
    rounds->Add(name, [=] { return peers->Run(name); });
  }
}

std::vector<Goal> PeerGoals() {
  return {
      {"G8", "RoPE EXACT f32 64 MiB / numpy float32, out= given", "rope exact f32",
       "numpy rope out=", 5},
      {"G8", "RoPE EXACT f32 64 MiB / numpy float32, allocating", "rope exact f32", "numpy rope",
       8},
      {"", "RoPE FLOAT32 f32 64 MiB / numpy float32, allocating", "rope float32 f32", "numpy rope",
       0},
      {"G7", "RoPE EXACT f32 64 MiB / torch, allocating", "rope exact f32", "torch rope", 25},
      {"G7", "RoPE EXACT f32 64 MiB / torch as vLLM builds it", "rope exact f32", "torch vllm", 40},
  };
}

}  // namespace posenc::bench
