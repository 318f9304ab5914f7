// numpy and torch, run by a child process that answers with seconds.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "posenc/client.h"
#include "posenc/embedded_connection.h"
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
    Ask(name);
    return NextNumber();
  }

  // Of a table in the file at `path`, as peers.py says.
  std::pair<double, double> Differences(const std::string& path) {
    Ask("differences " + path);
    const double ulp = NextNumber();
    return {ulp, NextNumber()};
  }

 private:
  void Ask(const std::string& line) {
    std::fprintf(to_, "%s\n", line.c_str());
    std::fflush(to_);
  }
  double NextNumber() {
    double number = 0;
    if (std::fscanf(from_, "%lf", &number) != 1) return std::numeric_limits<double>::infinity();
    return number;
  }

  pid_t pid_;
  std::FILE* to_;
  std::FILE* from_;
};

// The table that torch's is compared with, as a file that is gone with this object.
class TableFile {
 public:
  TableFile() : fd_(memfd_create("posenc_bench", MFD_CLOEXEC)) {
    v1::GetTableRequest request;
    v1::RopeSpec* rope = request.mutable_spec()->mutable_rope();
    rope->set_head_dim(128);
    rope->set_rope_theta(500000);
    request.mutable_selection()->mutable_position_range()->set_end(131072);
    request.mutable_format()->set_layout(v1::LAYOUT_COS_AND_SIN_HALF);
    std::vector<std::byte> bytes(size_t{64} << 20);
    absl::StatusOr<TableReader> table = Client(MakeEmbeddedConnection()).GetTable(request);
    if (!table.ok() || !table->Read(bytes).ok()) std::abort();
    if (write(fd_, bytes.data(), bytes.size()) != std::ssize(bytes)) std::abort();
  }
  ~TableFile() { close(fd_); }

  std::string path() const { return absl::StrCat("/proc/", getpid(), "/fd/", fd_); }

 private:
  const int fd_;
};

}  // namespace

void AddPeerCases(Rounds* rounds) {
  const auto peers = std::make_shared<PythonPeers>();
  for (const char* name : {"numpy rope", "numpy rope out=", "numpy sinusoidal", "torch rope",
                           "torch rope out=", "torch vllm", "torch hf half", "torch sinusoidal",
                           "torch alibi", "torch alibi bf16", "torch t5"}) {
    rounds->Add(name, [=] { return peers->Run(name); });
  }
  const auto table = std::make_shared<TableFile>();
  rounds->Add("torch ulp", [=] {
    const auto [ulp, bf16_per_million] = peers->Differences(table->path());
    rounds->Note("torch bf16", bf16_per_million);
    return ulp;
  });
}

std::vector<Goal> PeerGoals() {
  return {
      {"G5", "RoPE FLOAT32 f32 against torch: the largest difference in ulp", "torch ulp", "", 1},
      {"G5", "the same rounded to bf16: how many of a million differ", "torch bf16", "", 1},
      {"G5", "SLEEF's bits: not offered, every value here is rounded correctly", "not offered", "",
       0},
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
