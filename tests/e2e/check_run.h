// posenc check, run as a CI job runs it.
#ifndef POSENC_TESTS_E2E_CHECK_RUN_H_
#define POSENC_TESTS_E2E_CHECK_RUN_H_

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace posenc::testing {

// A file of tests/golden/configs, without its extension.
inline std::string Config(const std::string& name) {
  return std::string(POSENC_TEST_DATA "/golden/configs/") + name + ".json";
}

struct CheckResult {
  int exit_code;
  std::string out;
  std::string errors;
};

inline CheckResult Check(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {POSENC_BINARY, "check"});
  Process process(arguments);
  CheckResult result;
  std::string line;
  while (process.ReadLine(&line)) result.out += line + "\n";
  result.exit_code = process.Wait();
  result.errors = process.Errors();
  return result;
}

// The path of a temporary file with that text.
inline std::string Write(const std::string& name, const std::string& text) {
  const std::string path = TemporaryPath(name);
  std::ofstream(path) << text;
  return path;
}

}  // namespace posenc::testing

#endif  // POSENC_TESTS_E2E_CHECK_RUN_H_
