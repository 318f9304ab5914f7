#include "server/health.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/support/byte_buffer.h"
#include "posenc/v1/service.grpc.pb.h"
#include "server/grpc_status.h"
#include "server/request.h"
#include "server/watched_reactor.h"

namespace posenc::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Far above what load balancers open; a bound so that nobody fills the memory.
constexpr size_t kMaxWatches = 1024;

bool IsKnown(absl::string_view service) {
  return service.empty() || service == v1::PositionalEncodingService::service_full_name();
}

grpc::ByteBuffer Serialized(HealthCheckResponse::ServingStatus status) {
  HealthCheckResponse response;
  response.set_status(status);
  const grpc::Slice slice(response.SerializeAsString());
  return {&slice, 1};
}

}  // namespace

// Deletes itself when done.
class HealthService::Checker final : public WatchedReactor {
 public:
  Checker(HealthService* health, std::unique_ptr<IncomingCall> call)
      : WatchedReactor(std::move(call), health->stalls_), health_(health) {
    StartRead(&message_);
  }

 private:
  void OnReadDone(bool /*ok*/) override {
    StopWaiting();
    HealthCheckRequest request;
    if (const absl::Status status = ParseRequest(&message_, &request); !status.ok()) {
      return Finish(ToGrpcStatus(status));
    }
    if (!IsKnown(request.service())) {
      return Finish({grpc::StatusCode::NOT_FOUND, "unknown service"});
    }
    StartWriteAndFinish(Serialized(health_->IsServing() ? HealthCheckResponse::SERVING
                                                        : HealthCheckResponse::NOT_SERVING),
                        grpc::Status::OK);
  }
  void OnDone() override { delete this; }

  HealthService* const health_;
  grpc::ByteBuffer message_;
};

// Deletes itself when done. All but `health` and `known` is guarded by mutex_; `told`
// stays as it is while it is written.
class HealthService::Watcher final : public WatchedReactor {
 public:
  Watcher(HealthService* owner, std::unique_ptr<IncomingCall> call)
      : WatchedReactor(std::move(call), owner->stalls_), health(owner) {
    StartRead(&message_);
  }

  HealthService* const health;
  bool known = false;
  HealthCheckResponse::ServingStatus told = HealthCheckResponse::UNKNOWN;
  bool watched = false;  // among watchers_: the request has come
  bool writing = false;
  bool cancelled = false;
  bool finished = false;

  void Do(Step step) {
    switch (step) {
      case Step::kNothing:
        return;
      case Step::kWrite:
        return StartWrite(Serialized(told));
      case Step::kFinish:
        return Finish({grpc::StatusCode::UNAVAILABLE,
                       "the server is stopping, or has as many watches as it takes"});
    }
  }

 private:
  void OnReadDone(bool /*ok*/) override {
    StopWaiting();
    HealthCheckRequest request;
    if (const absl::Status status = ParseRequest(&message_, &request); !status.ok()) {
      return Finish(ToGrpcStatus(status));
    }
    known = IsKnown(request.service());
    health->Watch(this);
  }
  void Continue(bool* flag, bool value) {
    Step step;
    {
      const std::lock_guard<std::mutex> lock(health->mutex_);
      *flag = value;
      step = health->NextStep(this);
    }
    Do(step);
  }

  void OnWriteDone(bool ok) override {
    StopWaiting();
    if (!ok) OnCancel();
    Continue(&writing, false);
  }
  // Also before the request has come: its reaction ends the call then.
  void OnCancel() override { Continue(&cancelled, true); }
  void OnDone() override {
    {
      const std::lock_guard<std::mutex> lock(health->mutex_);
      health->watchers_.erase(this);
      health->ended_.notify_all();
    }
    delete this;
  }

  grpc::ByteBuffer message_;
};

HealthService::~HealthService() = default;

// REQUIRES: mutex_ is held, and the step is done right after it is free.
HealthService::Step HealthService::NextStep(Watcher* watcher) {
  if (!watcher->watched || watcher->writing || watcher->finished) return Step::kNothing;
  const auto now = !watcher->known ? HealthCheckResponse::SERVICE_UNKNOWN
                   : serving_      ? HealthCheckResponse::SERVING
                                   : HealthCheckResponse::NOT_SERVING;
  if (!watcher->cancelled && watcher->told != now) {
    watcher->told = now;
    watcher->writing = true;
    return Step::kWrite;
  }
  if (watcher->cancelled || ending_) {
    watcher->finished = true;
    return Step::kFinish;
  }
  return Step::kNothing;
}

void HealthService::StepAll() {
  std::vector<std::pair<Watcher*, Step>> steps;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Watcher* watcher : watchers_) {
      // A step keeps the watcher alive: only its outcome can lead to OnDone.
      const Step step = NextStep(watcher);
      if (step != Step::kNothing) steps.emplace_back(watcher, step);
    }
  }
  for (const auto& [watcher, step] : steps) watcher->Do(step);
}

void HealthService::SetServing(bool serving) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    serving_ = serving;
  }
  StepAll();
}

bool HealthService::EndWatches(std::chrono::steady_clock::time_point deadline) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ending_ || watchers_.empty()) {
      ending_ = true;
      return false;
    }
    ending_ = true;
  }
  StepAll();
  std::unique_lock<std::mutex> lock(mutex_);
  ended_.wait_until(lock, deadline, [this] { return watchers_.empty(); });
  return true;
}

bool HealthService::IsServing() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return serving_;
}

void HealthService::Watch(Watcher* watcher) {
  Step step;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    watchers_.insert(watcher);
    watcher->watched = true;
    if (watchers_.size() > kMaxWatches) watcher->cancelled = true;
    step = NextStep(watcher);
  }
  watcher->Do(step);
}

void HealthService::AddTo(Router* router) {
  const std::string name = grpc::health::v1::Health::service_full_name();
  router->Add(name, "Check", [this](auto call) { new Checker(this, std::move(call)); });
  router->Add(name, "Watch", [this](auto call) { new Watcher(this, std::move(call)); });
}

}  // namespace posenc::server
