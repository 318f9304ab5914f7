#include "tests/bench/rounds.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <random>

#include "absl/strings/str_format.h"

namespace posenc::bench {
namespace {

double Quantile(std::vector<double> values, double at) {
  std::sort(values.begin(), values.end());
  const double position = at * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(position);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (position - static_cast<double>(low)) * (values[high] - values[low]);
}

}  // namespace

double Timed(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Rounds::RunAll(int count) {
  std::vector<std::string> order;
  for (const auto& [name, run] : cases_) order.push_back(name);
  std::mt19937 random(20261130);
  for (int round = count > 0 ? -1 : 0; round < std::max(count, 1); ++round) {
    warming_up_ = round < 0;
    std::shuffle(order.begin(), order.end(), random);
    for (const std::string& name : order) Note(name, cases_.at(name)());
    std::fprintf(stderr, "round %d of %d\n", round + 1, count);
  }
}

void Rounds::Note(const std::string& name, double number) {
  if (!warming_up_) seconds_[name].push_back(number);
}

// A row's number in every round in which it could run.
std::vector<double> Rounds::NumbersOf(const Goal& goal) const {
  std::vector<double> numbers;
  const auto fast = seconds_.find(goal.fast);
  const auto measure = seconds_.find(goal.measure);
  if (fast == seconds_.end()) return numbers;
  if (goal.measure.empty()) return fast->second;
  if (measure == seconds_.end()) return numbers;
  for (size_t i = 0; i < std::min(fast->second.size(), measure->second.size()); ++i) {
    const double ratio = measure->second[i] / fast->second[i];
    if (std::isfinite(ratio)) numbers.push_back(ratio);
  }
  return numbers;
}

void Rounds::Report(const std::vector<Goal>& goals, const std::string& json_path) const {
  std::ofstream json(json_path);
  json << "{\"rows\": [";
  int reached = 0;
  int with_goal = 0;
  const char* separator = "";
  std::printf("%-4s %-62s %7s %7s %7s  %s\n", "", "speed against", "median", "p10", "p90",
              "target");
  for (const Goal& goal : goals) {
    const std::vector<double> numbers = NumbersOf(goal);
    const bool counts = !goal.id.empty();
    if (numbers.empty()) {
      std::printf("%-4s %-62s not run\n", goal.id.c_str(), goal.what.c_str());
      continue;
    }
    const double median = Quantile(numbers, 0.5);
    const bool at_most = goal.measure.empty();
    const bool good = at_most ? median <= goal.target : median >= goal.target;
    with_goal += counts;
    reached += counts && good;
    std::printf("%-4s %-62s %7.2f %7.2f %7.2f", goal.id.c_str(), goal.what.c_str(), median,
                Quantile(numbers, 0.1), Quantile(numbers, 0.9));
    if (counts) std::printf("  %s %.2f %s", at_most ? "<=" : ">=", goal.target, good ? "yes" : "");
    std::printf("\n");
    json << absl::StrFormat(
        "%s\n {\"goal\": \"%s\", \"what\": \"%s\", \"median\": %.4f, \"p10\": %.4f, \"p90\": %.4f, "
        "\"%s\": %.4f}",
        separator, goal.id, goal.what, median, Quantile(numbers, 0.1), Quantile(numbers, 0.9),
        at_most ? "at_most" : "at_least", goal.target);
    separator = ",";
  }
  json << "\n]}\n";
  std::printf("%d of %d goals reached\n", reached, with_goal);
}

}  // namespace posenc::bench
