// What a process has used so far, as the kernel counts it.
#ifndef POSENC_TESTS_BENCH_USAGE_H_
#define POSENC_TESTS_BENCH_USAGE_H_

#include <sys/types.h>

namespace posenc::bench {

struct Usage {
  double cpu_seconds = 0;  // of all threads, in user and kernel mode
  double page_faults = 0;
};

// 0 is this process. All zeros for one that is gone.
Usage UsageOf(pid_t pid);

}  // namespace posenc::bench

#endif  // POSENC_TESTS_BENCH_USAGE_H_
