// Cases timed in one interleaved run, and rows that are ratios of them.
//
// Every round runs every case once, in an order drawn anew, so that whatever else
// the machine does hits all of them alike. A row is the median over the rounds of
// one case's time divided by another's of the same round: times drift, ratios hold.
#ifndef POSENC_TESTS_BENCH_ROUNDS_H_
#define POSENC_TESTS_BENCH_ROUNDS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace posenc::bench {

// Seconds that one run took; infinity when it could not run.
using Run = std::function<double()>;

// Seconds of `work`, by the steady clock.
double Timed(const std::function<void()>& work);

struct Goal {
  std::string id;       // G1 ... of reference/performance.md, or empty: no goal
  std::string what;     // "EXACT f32 cos_sin, 64 MiB, against stores"
  std::string fast;     // the case whose speed counts
  std::string measure;  // the case that it is measured against; empty: the number itself
  double target;        // speed of `fast` in units of `measure`: at least this;
                        // of the number itself: at most this
};

// A case that is not there (a peer that is not installed) makes a row "not run".
class Rounds {
 public:
  void Add(const std::string& name, Run run) { cases_[name] = std::move(run); }

  // A further number of the run under way, as if a case of this name had given it.
  void Note(const std::string& name, double number);

  // One warm-up round and `count` that count; of 0, one that does, to see that all works.
  void RunAll(int count);

  // A line a goal with median, spread and target, then "N of M goals reached";
  // the same as JSON into `json_path`.
  void Report(const std::vector<Goal>& goals, const std::string& json_path) const;

 private:
  std::vector<double> NumbersOf(const Goal& goal) const;

  std::map<std::string, Run> cases_;
  std::map<std::string, std::vector<double>> seconds_;  // a number a round
  bool warming_up_ = true;                              // nothing is kept
};

}  // namespace posenc::bench

#endif  // POSENC_TESTS_BENCH_ROUNDS_H_
