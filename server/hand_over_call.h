// A request for a table in shared memory, from its bytes to the answer.
//
//   Start ──> pool: parse, ask the engine ──> SharedTables::Get ──> answered, Wake
//
// The engine's refusals are the same as GetTable's, and so are admission, queue
// and limits.
#ifndef POSENC_SERVER_HAND_OVER_CALL_H_
#define POSENC_SERVER_HAND_OVER_CALL_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/file_descriptor.h"
#include "posenc/v1/hand_over.pb.h"
#include "server/service.h"
#include "server/shared_tables.h"
#include "server/wake_up.h"

namespace posenc::server {

// The thread that polls owns it, jobs of the pool share it. They touch what is
// private until answered(); then it does not change.
class HandOverCall : public std::enable_shared_from_this<HandOverCall> {
 public:
  // Everything but the parts is kept alive by the call.
  HandOverCall(const ServiceParts& parts, std::shared_ptr<WakeUp> wake)
      : parts_(parts), wake_(std::move(wake)) {}

  // Once, of Start and Refuse; the answer may be there on return.
  void Start(std::string request);
  void Refuse(const absl::Status& status) { Answer(status); }

  // Nobody waits for the answer any more. Leaves admission. Once.
  void End();

  bool answered() const { return answered_.load(std::memory_order_acquire); }

  // REQUIRES: answered().
  const std::string& frame() const { return frame_; }         // the reply, as it travels
  const SharedTablePointer& table() const { return table_; }  // null when refused
  const absl::Status& status() const { return status_; }

 private:
  void Run();
  absl::Status Ask();
  void Answer(const absl::StatusOr<SharedTablePointer>& table);

  const ServiceParts& parts_;
  const std::shared_ptr<WakeUp> wake_;
  bool entered_ = false;  // the polling thread's
  std::atomic<bool> ended_{false};

  std::string request_;
  v1::HandOverReply reply_;
  std::string frame_;
  SharedTablePointer table_;
  absl::Status status_;
  std::atomic<bool> answered_{false};
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_HAND_OVER_CALL_H_
