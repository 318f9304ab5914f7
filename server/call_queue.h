// One of the threads on which calls arrive and are moved: a completion queue of gRPC's
// with everything that happens on it.
//
// Measured against gRPC's callback threads on 2 processors, one such thread answers
// small calls 1.1 (TCP) to 1.4 times (Unix) as fast: nothing changes threads.
#ifndef POSENC_SERVER_CALL_QUEUE_H_
#define POSENC_SERVER_CALL_QUEUE_H_

#include <cstddef>
#include <future>
#include <list>
#include <memory>
#include <thread>

#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server_builder.h"
#include "server/event.h"
#include "server/reactor.h"
#include "server/router.h"

namespace posenc::server {

class CallQueue {
 public:
  // Both must outlive it.
  CallQueue(std::unique_ptr<grpc::ServerCompletionQueue> queue, grpc::AsyncGenericService* service,
            const Router* router);
  // Waits until every call is done. REQUIRES: the server, if it started, is shut down.
  ~CallQueue();

  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // Once, after the server has started.
  void Start();

 private:
  // A call that is waited for, again and again.
  class Arrival;

  void Run();

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  grpc::AsyncGenericService* const service_;
  const Router* const router_;

  // Of the thread.
  std::list<Arrival> arrivals_;
  size_t armed_ = 0;                            // of the arrivals: calls may still come
  const std::shared_ptr<const void> presence_;  // each call that is there holds it too

  std::promise<void> empty_;  // no call is there, and none will come
  std::thread thread_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_CALL_QUEUE_H_
