#include "server/upload_budget.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "lib/base/status.h"
#include "server/grpc_status.h"

namespace posenc::server {
namespace {

// An upload takes a fraction of a second on a fast network, seconds on a slow one.
constexpr absl::Duration kRetryDelay = absl::Milliseconds(500);

}  // namespace

absl::Status UploadBudget::Reserve(uint64_t bytes) {
  if (bytes > max_bytes_) {
    return QuotaError("request", absl::StrCat("the ", bytes, " bytes of its tables exceed ",
                                              "max_upload_bytes (", max_bytes_, ")"));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes > max_bytes_ - reserved_) {
    return BusyError(
        absl::StrCat("other uploads take ", reserved_, " of max_upload_bytes (", max_bytes_, ")"),
        kRetryDelay);
  }
  reserved_ += bytes;
  return absl::OkStatus();
}

void UploadBudget::Release(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  reserved_ -= bytes;
}

}  // namespace posenc::server
