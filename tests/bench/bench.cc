// bench [ROUNDS [JSON [PART...]]]: one table of ratios; see rounds.h for what they
// mean. 0 ROUNDS only try it, without large tables. PARTs are kernels, peers, wire,
// calls and handover; none is all of them.
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/bench/cases.h"
#include "tests/bench/wire_peers.h"

namespace posenc::bench {
namespace {

// What README.md tells users to do, so that memory that gRPC has freed is used again.
void KeepPages() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

void Measure(int count, const std::string& json, const std::vector<std::string>& parts) {
  const auto has = [&](const char* part) {
    return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  Rounds rounds;
  std::vector<Goal> goals;
  const auto want = [&](const std::vector<Goal>& more) {
    goals.insert(goals.end(), more.begin(), more.end());
  };
  const bool on_wire = has("wire") || has("calls");
  const Region region(size_t{64} << 20);
  const size_t large_bytes = count > 0 ? size_t{1} << 30 : size_t{128} << 20;
  const Region large(has("wire") ? large_bytes : 4096);
  if (has("kernels")) {
    want(KernelGoals());
    want(AccuracyGoals());
  }
  if (has("peers")) {
    AddPeerCases(&rounds);  // forks: before anything starts threads
    want(PeerGoals());
  }
  const auto peers = on_wire ? std::make_shared<WirePeers>() : nullptr;  // fork, too
  KeepPages();  // after the forks: the usual code is not tuned
  if (has("wire")) {
    AddWireCases(&rounds, peers, large);
    want(WireGoals());
  }
  if (has("calls")) {
    AddCallCases(&rounds, peers);
    want(CallGoals());
  }
  if (has("handover")) {
    AddHandOverCases(&rounds);
    want(HandOverGoals());
  }
  if (has("kernels") || has("peers")) AddKernelCases(&rounds, region);
  if (has("kernels")) AddAccuracyCases(&rounds);
  rounds.RunAll(count);
  rounds.Report(goals, json);
}

}  // namespace
}  // namespace posenc::bench

int main(int argc, char** argv) {
  posenc::bench::Measure(argc > 1 ? std::atoi(argv[1]) : 15, argc > 2 ? argv[2] : "bench.json",
                         std::vector<std::string>(argv + std::min(argc, 3), argv + argc));
  return 0;
}
