#include "server/call_queue.h"

#include <utility>

namespace posenc::server {
namespace {

// Calls that gRPC can hand over before the thread has taken the first of them.
constexpr int kArrivals = 16;

}  // namespace

class CallQueue::Arrival {
 public:
  explicit Arrival(CallQueue* owner) : owner_(owner) {}

  void Arm() {
    call_ = std::make_unique<IncomingCall>(owner_->presence_);
    call_->Expect(owner_->service_, owner_->queue_.get(), &arrived_);
    ++owner_->armed_;
  }

 private:
  void Arrived(bool ok) {
    --owner_->armed_;
    std::unique_ptr<IncomingCall> call = std::move(call_);
    if (!ok) return;  // the server is shut down
    Arm();
    owner_->router_->Route(std::move(call));
  }

  CallQueue* const owner_;
  std::unique_ptr<IncomingCall> call_;
  MemberEvent<Arrival> arrived_{this, &Arrival::Arrived};
};

CallQueue::CallQueue(std::unique_ptr<grpc::ServerCompletionQueue> queue,
                     grpc::AsyncGenericService* service, const Router* router)
    : queue_(std::move(queue)),
      service_(service),
      router_(router),
      presence_(std::make_shared<char>()) {}

// gRPC forbids to shut a queue down before its server, and to start anything on it
// afterwards.
CallQueue::~CallQueue() {
  const bool started = thread_.joinable();
  if (started) empty_.get_future().wait();
  queue_->Shutdown();
  if (started) thread_.join();
}

void CallQueue::Start() {
  for (int i = 0; i < kArrivals; ++i) arrivals_.emplace_back(this).Arm();
  thread_ = std::thread([this] { Run(); });
}

void CallQueue::Run() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    static_cast<Event*>(tag)->Happen(ok);
    if (armed_ == 0 && presence_.use_count() == 1) empty_.set_value();
  }
}

}  // namespace posenc::server
