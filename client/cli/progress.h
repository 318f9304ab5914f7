// How far long work has come, on a terminal only.
#ifndef POSENC_CLIENT_CLI_PROGRESS_H_
#define POSENC_CLIENT_CLI_PROGRESS_H_

#include <cstdint>

#include "absl/time/time.h"

namespace posenc::cli {

// A line on stderr that is written over, from the second second on, and cleared
// at the end. Silent when stderr is no terminal.
class Progress {
 public:
  explicit Progress(uint64_t total_bytes);
  ~Progress();

  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Update(uint64_t done_bytes);

 private:
  const uint64_t total_bytes_;
  const bool on_terminal_;
  absl::Time next_;
  bool shown_ = false;
};

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_PROGRESS_H_
