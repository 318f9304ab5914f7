// Memory for tables that are being uploaded: reserved before the first byte is taken.
#ifndef POSENC_SERVER_UPLOAD_BUDGET_H_
#define POSENC_SERVER_UPLOAD_BUDGET_H_

#include <cstdint>
#include <mutex>

#include "absl/status/status.h"

namespace posenc::server {

// Thread-safe.
class UploadBudget {
 public:
  explicit UploadBudget(uint64_t max_upload_bytes) : max_bytes_(max_upload_bytes) {}

  UploadBudget(const UploadBudget&) = delete;
  UploadBudget& operator=(const UploadBudget&) = delete;

  // RESOURCE_EXHAUSTED when `bytes` are more than the whole budget, UNAVAILABLE when
  // they are more than what other uploads leave of it.
  absl::Status Reserve(uint64_t bytes);
  // REQUIRES: Reserve(bytes) was OK, once for each.
  void Release(uint64_t bytes);

 private:
  const uint64_t max_bytes_;

  // While mutex_ is free: the sum of what was reserved and not released, at most max_bytes_.
  std::mutex mutex_;
  uint64_t reserved_ = 0;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_UPLOAD_BUDGET_H_
