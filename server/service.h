// The RPCs. They take and give bytes, so that a message that does not parse is refused
// with our words and a page is sent uncopied.
#ifndef POSENC_SERVER_SERVICE_H_
#define POSENC_SERVER_SERVICE_H_

#include <utility>

#include "absl/status/status.h"
#include "lib/engine/engine.h"
#include "posenc/v1/service.pb.h"
#include "server/admission.h"
#include "server/compute_pool.h"
#include "server/content_hashes.h"
#include "server/places.h"
#include "server/router.h"
#include "server/shared_tables.h"
#include "server/small_answers.h"
#include "server/stall_watchdog.h"
#include "server/upload_budget.h"

namespace posenc::server {

// What calls share. All of it is thread-safe and outlives them.
struct ServiceParts {
  Engine* engine;
  Admission* admission;
  ComputePool* pool;
  StallWatchdog* stalls;
  SmallAnswers* small_answers;
  ContentHashes* content_hashes;
  Places* places_ahead;  // for chunks that are prepared while the one before is written
  UploadBudget* uploads;
  SharedTables* shared_tables;  // null: no memory is shared
  v1::Limits limits;            // as GetServerInfo reports them
};

// UNAVAILABLE: max_queue requests wait for a thread already.
absl::Status QueueFullError(const ServiceParts& parts);

// Thread-safe. Must outlive the calls.
class Service {
 public:
  explicit Service(ServiceParts parts) : parts_(std::move(parts)) {}

  void AddTo(Router* router) const;

 private:
  v1::GetServerInfoResponse ServerInfo() const;

  const ServiceParts parts_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_SERVICE_H_
