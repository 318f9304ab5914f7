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
  for (const char* name : {"numpy rope", "numpy rope out=", "numpy sinusoidal", "torch rope",
                           "torch rope out=", "torch vllm", "torch hf half", "torch sinusoidal",
                           "torch alibi", "torch alibi bf16", "torch t5"}) {
    rounds->Add(name, [=] { return peers->Run(name); });
  }
}

std::vector<Goal> PeerGoals() {
  return {
      {"G8", "RoPE EXACT f32 cos, sin 64 MiB / numpy float32, out= given", "exact split",
       "numpy rope out=", 5},
      {"G8", "RoPE EXACT f32 cos, sin 64 MiB / numpy float32", "exact split", "numpy rope", 8},
      {"", "RoPE FLOAT32 f32 64 MiB / numpy float32", "float32", "numpy rope", 0},
      {"G7", "RoPE EXACT f32 cos, sin 64 MiB / torch", "exact split", "torch rope", 25},
      {"G7", "RoPE EXACT f32 cos, sin 64 MiB / torch, out= given", "exact split",
       "torch rope out=", 15},
      {"G7", "RoPE EXACT f32 cos_sin 64 MiB / torch as vLLM builds it", "exact", "torch vllm", 40},
      {"G7", "RoPE EXACT f32 full 64 MiB / torch as Hugging Face does", "exact full",
       "torch hf half", 30},
      {"", "RoPE FLOAT32 f32 64 MiB / torch as vLLM builds it", "float32", "torch vllm", 0},
      {"G9", "ALiBi f32 64 MiB / torch", "alibi", "torch alibi", 15},
      {"G9", "ALiBi bf16 64 MiB / torch as MPT builds it", "alibi bf16", "torch alibi bf16", 40},
      {"G9", "T5 buckets 64 MiB / torch as Hugging Face does", "t5", "torch t5", 350},
      {"G10", "sinusoidal [4096,1024] f32 / torch", "sinusoidal", "torch sinusoidal", 16},
      {"G10", "sinusoidal with its plan / torch", "sinusoidal with plan", "torch sinusoidal", 12},
      {"", "sinusoidal [4096,1024] f32 / numpy float64", "sinusoidal", "numpy sinusoidal", 0},
  };
}

}  // namespace posenc::bench
