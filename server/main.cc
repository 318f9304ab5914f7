// posenc-server: start, print where, serve until SIGTERM or SIGINT, drain.
//
// Exit codes: 0 stopped as asked, 1 could not start, 2 wrong usage.
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <iostream>
#include <string>
#include <thread>

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

// Out of file descriptors, gRPC 1.51 stops accepting for good (CVE-2023-4785).
void RaiseFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// In every thread to come: only WaitForSignal sees them. A closed pipe is an
// error of the write, not the end of the process.
sigset_t BlockSignals() {
  signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

std::string WaitForSignal(const sigset_t& signals) {
  int number = 0;
  sigwait(&signals, &number);
  return number == SIGINT ? "SIGINT" : "SIGTERM";
}

void DrainUntilSecondSignal(const sigset_t& signals, std::chrono::nanoseconds grace,
                            Server* server) {
  std::thread second([&] {
    WaitForSignal(signals);
    server->HurryUp();
  });
  server->Drain(grace);
  pthread_kill(second.native_handle(), SIGTERM);  // no second signal came: end the wait
  second.join();
}

int Run(int argc, const char* const* argv) {
  const sigset_t signals = BlockSignals();
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
  const std::string signal = WaitForSignal(signals);
  Log(LogLevel::kInfo, "draining", {{"signal", signal}});
  DrainUntilSecondSignal(signals, parsed.options->drain_grace, server->get());
  Log(LogLevel::kInfo, "stopped");
  server->reset();
  StopLogging();
  return 0;
}

}  // namespace
}  // namespace posenc::server

int main(int argc, char** argv) {
  // Debian's Abseil aborts the process on a lock order it dislikes, gRPC's included.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Kept to the end: the last grpc_shutdown can wait 10 s for a poller (gRPC 1.51).
  grpc_init();
  posenc::server::KeepMemoryLow();
  posenc::server::RaiseFileLimit();
  return posenc::server::Run(argc, argv);
}
