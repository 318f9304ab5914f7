// bench [ROUNDS [JSON]]: one table of ratios; see rounds.h for what they mean.
#include <cstdlib>
#include <string>

#include "tests/bench/cases.h"

int main(int argc, char** argv) {
  using namespace posenc::bench;
  const int count = argc > 1 ? std::atoi(argv[1]) : 15;
  const std::string json = argc > 2 ? argv[2] : "bench.json";
  const Region region(size_t{64} << 20);
  Rounds rounds;
  AddPeerCases(&rounds);  // forks: before anything starts threads
  AddWireCases(&rounds, region);
  AddHandOverCases(&rounds);
  AddKernelCases(&rounds, region);
  rounds.RunAll(count);
  std::vector<Goal> goals = KernelGoals();
  for (const auto& more : {PeerGoals(), WireGoals(), HandOverGoals()}) {
    goals.insert(goals.end(), more.begin(), more.end());
  }
  rounds.Report(goals, json);
  return 0;
}
