// posenc-server: start, print where, serve until SIGTERM or SIGINT, drain.
//
// Exit codes: 0 stopped as asked, 1 could not start, 2 wrong usage.
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <iostream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "grpc/grpc.h"
#include "server/log.h"
#include "server/options.h"
#include "server/server.h"

namespace posenc::server {
namespace {

constexpr int kCouldNotStart = 1;

// Without these, glibc raises both limits as large blocks are freed and keeps
// what requests and answers took: 32 answers of 64 MiB left 0.7 to 1.2 GB behind
// (80 MB with them), at no measurable cost in throughput.
void KeepMemoryLow() {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
}

// A connection and a table in shared memory each take a descriptor; many systems give a
// process 1024 until it asks.
void RaiseFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// In every thread to come: they are only taken by sigwait. A closed pipe is an
// error of the write, not the end of the process, and so is memory to share that
// `ulimit -f` does not allow.
sigset_t BlockSignals() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

std::string NameOf(int signal_number) { return signal_number == SIGINT ? "SIGINT" : "SIGTERM"; }

// Drains until all is done, or a second signal, or the grace has passed. A peer
// that takes nothing can keep gRPC from closing its connection (the write under
// way must end first), so in the last two cases we do not wait for gRPC: true
// when it is done, false when the process should just leave.
bool Drain(const sigset_t& signals, std::chrono::nanoseconds grace, Server* server) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kLastWords{1};
  constexpr timespec kPoll = {.tv_sec = 0, .tv_nsec = 20'000'000};

  std::packaged_task<void()> drain([&] { server->Drain(grace); });
  const std::future<void> drained = drain.get_future();
  std::thread drainer;
  try {
    drainer = std::thread(std::ref(drain));
  } catch (const std::system_error&) {  // the process has all the threads it may have
    drain();
    return true;
  }
  const auto is_done = [&] {
    return drained.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  bool hurried = false;
  auto end = Clock::now() + grace + kLastWords;
  while (!is_done() && Clock::now() < end) {
    if (sigtimedwait(&signals, nullptr, &kPoll) < 0 || hurried) continue;
    server->HurryUp();
    hurried = true;
    end = Clock::now() + kLastWords;
  }
  if (!is_done()) {
    drainer.detach();
    return false;
  }
  drainer.join();
  return true;
}

int Run(int argc, const char* const* argv) {
  const sigset_t signals = BlockSignals();
  // Kept to the end: the last grpc_shutdown can wait 10 s for a poller (gRPC 1.51).
  // After BlockSignals, since it starts threads.
  grpc_init();
  const ParsedOptions parsed = ParseOptions(argc, argv);
  if (!parsed.options.has_value()) {
    (parsed.exit_code == 0 ? std::cout : std::cerr) << parsed.text;
    return parsed.exit_code;
  }
  StartLogging(parsed.options->log_format, parsed.options->log_level);
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(parsed.options->server);
  if (!server.ok()) {
    std::cerr << "posenc-server: " << server.status().message() << "\n";
    StopLogging();
    return kCouldNotStart;
  }
  for (const std::string& address : (*server)->addresses()) {
    std::cout << "listening on " << address << "\n";
  }
  std::cout.flush();
  int signal_number = 0;
  sigwait(&signals, &signal_number);
  Log(LogLevel::kInfo, "draining", {{"signal", NameOf(signal_number)}});
  const bool drained = Drain(signals, parsed.options->drain_grace, server->get());
  Log(LogLevel::kInfo, drained ? "stopped" : "stopped with connections open");
  if (!drained) {
    StopLogging();
    std::_Exit(0);  // the kernel closes what gRPC could not
  }
  server->reset();
  StopLogging();
  return 0;
}

}  // namespace
}  // namespace posenc::server

int main(int argc, char** argv) {
  // Debian's Abseil aborts the process on a lock order it dislikes, gRPC's included.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  posenc::server::KeepMemoryLow();
  posenc::server::RaiseFileLimit();
  return posenc::server::Run(argc, argv);
}
