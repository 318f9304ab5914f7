// Which reactor a call gets, by its method.
#ifndef POSENC_SERVER_ROUTER_H_
#define POSENC_SERVER_ROUTER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/reactor.h"

namespace posenc::server {

// Thread-safe once all methods are added.
class Router {
 public:
  // Makes a reactor of the call; it owns itself.
  using Handler = std::function<void(std::unique_ptr<IncomingCall>)>;

  void Add(absl::string_view service, absl::string_view method, Handler handler);

  // A method that nobody added is answered with UNIMPLEMENTED.
  void Route(std::unique_ptr<IncomingCall> call) const;

 private:
  absl::flat_hash_map<std::string, Handler> handlers_;  // by "/service/method"
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_ROUTER_H_
