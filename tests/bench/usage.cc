#include "tests/bench/usage.h"

#include <time.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace posenc::bench {
namespace {

double CpuSeconds(pid_t pid) {
  clockid_t clock;
  timespec time;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Fields 10 and 12 of /proc/PID/stat; field 2, in parentheses, may hold anything.
double PageFaults(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid == 0 ? getpid() : pid) + "/stat");
  file.ignore(std::numeric_limits<std::streamsize>::max(), ')');
  std::string skipped;
  double minor = 0;
  double major = 0;
  for (int field = 3; field < 10; ++field) file >> skipped;
  file >> minor >> skipped >> major;
  return minor + major;
}

}  // namespace

Usage UsageOf(pid_t pid) { return {CpuSeconds(pid), PageFaults(pid)}; }

}  // namespace posenc::bench
