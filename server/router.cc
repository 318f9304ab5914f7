#include "server/router.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace posenc::server {
namespace {

class UnknownMethod final : public Reactor {
 public:
  explicit UnknownMethod(std::unique_ptr<IncomingCall> call) : Reactor(std::move(call)) {
    Finish({grpc::StatusCode::UNIMPLEMENTED, "unknown method"});
  }

 private:
  void OnDone() override { delete this; }
};

}  // namespace

void Router::Add(absl::string_view service, absl::string_view method, Handler handler) {
  handlers_.emplace(absl::StrCat("/", service, "/", method), std::move(handler));
}

void Router::Route(std::unique_ptr<IncomingCall> call) const {
  const auto found = handlers_.find(call->method());
  if (found == handlers_.end()) {
    new UnknownMethod(std::move(call));
    return;
  }
  found->second(std::move(call));
}

}  // namespace posenc::server
