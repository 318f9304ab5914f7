// Ends a poll() of another thread.
#ifndef POSENC_SERVER_WAKE_UP_H_
#define POSENC_SERVER_WAKE_UP_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "lib/base/file_descriptor.h"

namespace posenc::server {

// Thread-safe.
class WakeUp {
 public:
  // UNAVAILABLE when there is no descriptor.
  static absl::StatusOr<std::shared_ptr<WakeUp>> Create();

  int fd() const { return fd_.get(); }  // readable from Signal to Clear
  void Signal();
  void Clear();

 private:
  explicit WakeUp(FileDescriptor fd) : fd_(std::move(fd)) {}

  FileDescriptor fd_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_WAKE_UP_H_
