#include "server/health.h"

#include <string>
#include <utility>

#include "posenc/v1/service.grpc.pb.h"

namespace posenc::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Far above what load balancers open; a bound so that nobody fills the memory.
constexpr size_t kMaxWatches = 1024;

bool IsKnown(absl::string_view service) {
  return service.empty() || service == v1::PositionalEncodingService::service_full_name();
}

}  // namespace

// Deletes itself when done. All fields but response are guarded by mutex_.
class HealthService::Watcher final : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  Watcher(HealthService* owner, bool known_service) : health(owner), known(known_service) {}

  HealthService* const health;
  const bool known;
  HealthCheckResponse response;  // of the one who writes
  HealthCheckResponse::ServingStatus told = HealthCheckResponse::UNKNOWN;
  bool writing = false;
  bool cancelled = false;
  bool finished = false;

 private:
  void Continue(bool* flag, bool value) {
    Step step;
    {
      const std::lock_guard<std::mutex> lock(health->mutex_);
      *flag = value;
      step = health->NextStep(this);
    }
    Do(step, this);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) OnCancel();
    Continue(&writing, false);
  }
  void OnCancel() override { Continue(&cancelled, true); }
  void OnDone() override {
    {
      const std::lock_guard<std::mutex> lock(health->mutex_);
      health->watchers_.erase(this);
      health->ended_.notify_all();
    }
    delete this;
  }
};

HealthService::~HealthService() = default;

// REQUIRES: mutex_ is held, and the step is done right after it is free.
HealthService::Step HealthService::NextStep(Watcher* watcher) {
  if (watcher->writing || watcher->finished) return Step::kNothing;
  const auto now = !watcher->known ? HealthCheckResponse::SERVICE_UNKNOWN
                   : serving_      ? HealthCheckResponse::SERVING
                                   : HealthCheckResponse::NOT_SERVING;
  if (!watcher->cancelled && watcher->told != now) {
    watcher->told = now;
    watcher->response.set_status(now);
    watcher->writing = true;
    return Step::kWrite;
  }
  if (watcher->cancelled || ending_) {
    watcher->finished = true;
    return Step::kFinish;
  }
  return Step::kNothing;
}

void HealthService::Do(Step step, Watcher* watcher) {
  switch (step) {
    case Step::kNothing:
      return;
    case Step::kWrite:
      return watcher->StartWrite(&watcher->response);
    case Step::kFinish:
      return watcher->Finish({grpc::StatusCode::UNAVAILABLE,
                              "the server is stopping, or has as many watches as it takes"});
  }
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
  for (const auto& [watcher, step] : steps) Do(step, watcher);
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

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const HealthCheckRequest* request,
                                               HealthCheckResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  if (!IsKnown(request->service())) {
    reactor->Finish({grpc::StatusCode::NOT_FOUND, "unknown service"});
    return reactor;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    response->set_status(serving_ ? HealthCheckResponse::SERVING
                                  : HealthCheckResponse::NOT_SERVING);
  }
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext* /*context*/, const HealthCheckRequest* request) {
  auto* const watcher = new Watcher(this, IsKnown(request->service()));
  Step step;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    watchers_.insert(watcher);
    if (watchers_.size() > kMaxWatches) watcher->cancelled = true;
    step = NextStep(watcher);
  }
  Do(step, watcher);
  return watcher;
}

}  // namespace posenc::server
