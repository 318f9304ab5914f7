// The parts of the benchmark: each adds its cases, and says what they are for.
#ifndef POSENC_TESTS_BENCH_CASES_H_
#define POSENC_TESTS_BENCH_CASES_H_

#include <memory>
#include <vector>

#include "tests/bench/memory.h"
#include "tests/bench/rounds.h"

namespace posenc::bench {

struct WirePeers;  // wire_peers.h

// kernels.cc: filling tables, against storing the same bytes.
void AddKernelCases(Rounds* rounds, const Region& region);
std::vector<Goal> KernelGoals();

// accuracy.cc: a sample of a table against MPFR.
void AddAccuracyCases(Rounds* rounds);
std::vector<Goal> AccuracyGoals();

// peers.cc: numpy and (where python3-torch is installed) torch, in a child process.
void AddPeerCases(Rounds* rounds);
std::vector<Goal> PeerGoals();

// wire.cc: streams of a real server, against a raw socket and the usual gRPC code.
// REQUIRES: region has 128 MiB; tables that are larger than it are left out.
void AddWireCases(Rounds* rounds, const std::shared_ptr<WirePeers>& peers, const Region& region);
std::vector<Goal> WireGoals();

// calls.cc: small calls, against empty ones.
void AddCallCases(Rounds* rounds, const std::shared_ptr<WirePeers>& peers);
std::vector<Goal> CallGoals();

// handover.cc: a table in shared memory, against private memory.
void AddHandOverCases(Rounds* rounds);
std::vector<Goal> HandOverGoals();

}  // namespace posenc::bench

#endif  // POSENC_TESTS_BENCH_CASES_H_
