// grpc.health.v1, ours: gRPC's own keeps every open Watch in the way of a
// shutdown, and cannot end them.
#ifndef POSENC_SERVER_HEALTH_H_
#define POSENC_SERVER_HEALTH_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace posenc::server {

// Thread-safe. Knows the service "" (the server) and that of posenc.v1.
class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  HealthService() = default;
  ~HealthService() override;

  // Tells every Watch. NOT_SERVING until the first call.
  void SetServing(bool serving);

  // Ends every Watch after what it has yet to be told, and each that comes later
  // after its first answer. Waits for them until `deadline`; false when there
  // were none.
  bool EndWatches(std::chrono::steady_clock::time_point deadline);

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* response) override;
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request) override;

 private:
  class Watcher;
  // What a watcher does next; done outside the lock.
  enum class Step { kNothing, kWrite, kFinish };

  Step NextStep(Watcher* watcher);
  static void Do(Step step, Watcher* watcher);
  void StepAll();

  // While mutex_ is free: watchers_ are alive, and each is either writing,
  // finished, or has nothing to tell.
  std::mutex mutex_;
  std::condition_variable ended_;  // a Watch is no more
  bool serving_ = false;
  bool ending_ = false;
  absl::flat_hash_set<Watcher*> watchers_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_HEALTH_H_
