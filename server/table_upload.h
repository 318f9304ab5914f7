// GetTableFromUpload: a request, the tables that are missing in it, then the answer.
//
//   Start ──> read ──> OnReadDone ──> pool: Take ──> read ...
//                          └ the caller has closed its side ──> pool: Answer
//
// One message is in memory beside what was announced and reserved (UploadBudget). A
// caller that takes longer than the stall timeout for every kProgressBytes is cut off,
// however it spreads them; one that spreads them over kProgressMessages is refused.
#ifndef POSENC_SERVER_TABLE_UPLOAD_H_
#define POSENC_SERVER_TABLE_UPLOAD_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "lib/engine/upload.h"
#include "server/reactor.h"
#include "server/service.h"
#include "server/table_sender.h"

namespace posenc::server {

// Deletes itself when done.
class TableUpload final : public TableSender {
 public:
  static constexpr uint64_t kProgressBytes = uint64_t{1} << 20;
  static constexpr uint64_t kProgressMessages = 1024;

  // Waits for the first message, or ends the call.
  TableUpload(const ServiceParts& parts, std::unique_ptr<IncomingCall> call);

 private:
  void Read();
  absl::Status Take();
  absl::Status Begin(v1::GetTableFromUploadRequest* message);
  absl::Status Complete();
  absl::Status CountProgress();

  void OnReadDone(bool ok) override;
  void OnDone() override;

  grpc::ByteBuffer message_;
  bool began_ = false;  // the pool has taken this call
  std::optional<Upload> upload_;
  uint64_t reserved_ = 0;  // of the budget

  // How long the caller took since it had last sent kProgressBytes, without our time.
  Clock::duration waited_{0};
  Clock::time_point read_began_;
  uint64_t progress_ = 0;  // received() then
  uint64_t messages_ = 0;  // since then
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_TABLE_UPLOAD_H_
