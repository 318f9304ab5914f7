// A posenc server in this process: what main() runs and what tests start.
#ifndef POSENC_SERVER_SERVER_H_
#define POSENC_SERVER_SERVER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "grpcpp/server.h"
#include "grpcpp/support/channel_arguments.h"
#include "lib/engine/engine.h"
#include "server/acceptor.h"
#include "server/admission.h"
#include "server/call_queue.h"
#include "server/compute_pool.h"
#include "server/connection_watchdog.h"
#include "server/connections.h"
#include "server/content_hashes.h"
#include "server/hand_over.h"
#include "server/health.h"
#include "server/listen.h"
#include "server/places.h"
#include "server/router.h"
#include "server/service.h"
#include "server/shared_tables.h"
#include "server/small_answers.h"
#include "server/stall_watchdog.h"
#include "server/upload_budget.h"

namespace posenc::server {

struct ServerOptions {
  std::vector<std::string> listen;  // none: reached in-process only
  // page_bytes is the size of a chunk. A header echoes the position ids, so their
  // number bounds it: 10 bytes each, below the 4 MiB that a client takes.
  EngineOptions engine = {.max_table_bytes = uint64_t{16} << 30,
                          .max_position_ids = uint64_t{1} << 18};
  uint64_t max_request_bytes = uint64_t{4} << 20;
  // Of the tables of all uploads together. While the plan of one is made it is in memory
  // four times: as it came, as a key, in the header, as the plan has it.
  uint64_t max_upload_bytes = uint64_t{256} << 20;
  uint64_t max_queue = 128;
  uint64_t max_concurrent_streams = 128;
  uint64_t max_connections = 4096;
  uint64_t answer_cache_bytes = uint64_t{16} << 20;
  uint64_t compute_threads = 0;  // 0: one a processor
  uint64_t event_threads = 0;    // that move calls and bytes; 0: one for two processors
  std::chrono::nanoseconds stall_timeout = std::chrono::seconds(30);  // 0: never
  // Tables are handed over as memory to this user's processes, at PATH.memfd of each
  // unix:PATH, and kept for it up to share_memory_bytes.
  bool share_memory = false;
  uint64_t share_memory_bytes = uint64_t{1} << 30;
  bool reflection = false;           // gRPC keeps it on for every later server of the process
  std::function<void()> before_job;  // see ComputePool::Options; for tests
};

// Thread-safe.
class Server {
 public:
  // Serves from here on. UNAVAILABLE when an address is taken.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  ~Server();  // at once

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Bound addresses, in the order of options.listen.
  const std::vector<std::string>& addresses() const { return listeners_.addresses(); }

  std::shared_ptr<grpc::Channel> InProcessChannel(
      const grpc::ChannelArguments& arguments = grpc::ChannelArguments());

  // Health says NOT_SERVING and new calls are UNAVAILABLE; returns when what runs
  // is done, at the latest after `grace`, when the rest is cancelled. Nothing
  // listens any more then. Only the first call drains.
  void Drain(std::chrono::nanoseconds grace);

  // Cuts a Drain's grace short, now or later.
  void HurryUp();

 private:
  Server(const ServerOptions& options, Listeners listeners);
  absl::Status Serve(const ServerOptions& options);
  absl::Status ShareMemory(const ServerOptions& options);

  // In the order of their dependence: what is below goes first.
  Listeners listeners_;
  Engine engine_;
  Admission admission_;
  StallWatchdog stalls_;
  SmallAnswers small_answers_;
  ContentHashes content_hashes_;
  Places places_ahead_;
  UploadBudget uploads_;
  const std::unique_ptr<SharedTables> shared_tables_;  // null: no memory is shared
  const ServiceParts parts_;
  ComputePool pool_;
  Service service_;
  HealthService health_;
  Router router_;
  std::unique_ptr<HandOver> hand_over_;
  std::vector<std::unique_ptr<grpc::Service>> services_;  // what reflection shows of router_
  grpc::AsyncGenericService calls_;
  std::list<CallQueue> call_queues_;
  std::unique_ptr<grpc::Server> grpc_server_;
  Connections connections_;
  std::unique_ptr<ConnectionWatchdog> watchdog_;
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_SERVER_H_
