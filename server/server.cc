#include "server/server.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "grpc/grpc.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/impl/server_builder_option.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/method_handler.h"
#include "lib/base/status.h"
#include "posenc/v1/service.grpc.pb.h"

namespace posenc::server {
namespace {

using Clock = std::chrono::steady_clock;

// gRPC itself refuses a larger message with a bare status, without our details:
// so it lets pass twice what is allowed, and CheckRequestSize refuses the rest.
constexpr uint64_t kReceiveFactor = 2;

// Above the 16 KiB that proxies in front take, so that this server never is the
// one that cuts a header: gRPC 1.51 loses its header compression state there
// (CVE-2023-32731). It counts a frame at a time: who sends CONTINUATION frames gets
// more in, which only a proxy in front can refuse.
constexpr int kMaxMetadataBytes = 64 << 10;

// Above all that reflection needs, which is the only service that takes a thread for
// each call: others wait for no thread, and a flood of it takes no more.
constexpr int kMaxReflectionThreads = 8;

// A peer that vanished is noticed a minute and KeepaliveTimeout later, calls or none (one that
// had bytes coming, by ConnectionWatchdog before).
constexpr int kKeepaliveMillis = 60'000;
// Without a call for so long, a connection makes room; a client opens the next by itself.
constexpr int kMaxIdleMillis = 30 * 60'000;
// What clients may do: gRPC's default would end connections that ping more often
// than every 5 minutes.
constexpr int kMinPingIntervalMillis = 10'000;

// The last bytes of a stream that ended may still be on their way to its reader,
// and closing a socket can destroy them. gRPC's own shutdown waits for readers,
// but a connection that nobody polls would hold it up.
constexpr std::chrono::milliseconds kGoodbye{1000};  // after the last call

// Chunks that wait for their turn in all streams together: enough to keep the threads
// and the wire busy, however many streams there are.
constexpr uint64_t kChunksAheadPerThread = 4;

int ClampToInt(uint64_t value) {
  return static_cast<int>(std::min<uint64_t>(value, std::numeric_limits<int>::max()));
}

uint64_t ComputeThreads(const ServerOptions& options) {
  if (options.compute_threads > 0) return options.compute_threads;
  return std::max(1U, std::thread::hardware_concurrency());
}

// One can move what two processors compute; more than gRPC's own number would not help.
uint64_t EventThreads(const ServerOptions& options) {
  constexpr uint64_t kMost = 16;
  if (options.event_threads > 0) return options.event_threads;
  return std::clamp<uint64_t>(std::thread::hardware_concurrency() / 2, 1, kMost);
}

v1::Limits LimitsOf(const ServerOptions& options) {
  v1::Limits limits;
  limits.set_max_table_bytes(options.engine.max_table_bytes);
  limits.set_max_request_bytes(options.max_request_bytes);
  limits.set_max_position_ids(options.engine.max_position_ids);
  limits.set_max_queue(options.max_queue);
  limits.set_max_concurrent_streams(options.max_concurrent_streams);
  limits.set_compute_threads(ComputeThreads(options));
  limits.set_chunk_bytes(options.engine.page_bytes);
  limits.set_max_upload_bytes(options.max_upload_bytes);
  return limits;
}

// The answer to a ping waits behind what the system holds for the peer, 4 MiB of a TCP
// socket, which it may take as slowly as it may take a stream.
int KeepaliveTimeoutMillis(const ServerOptions& options) {
  constexpr uint64_t kHeld = uint64_t{4} << 20;
  constexpr std::chrono::milliseconds kShortest{20'000};
  constexpr std::chrono::milliseconds kLongest{3'600'000};
  if (options.stall_timeout == std::chrono::nanoseconds::zero()) return kLongest.count();
  const double chunks = static_cast<double>(kHeld) / static_cast<double>(options.engine.page_bytes);
  const std::chrono::duration<double, std::milli> needed = options.stall_timeout * chunks;
  return static_cast<int>(std::clamp(needed.count(), static_cast<double>(kShortest.count()),
                                     static_cast<double>(kLongest.count())));
}

void SetConnectionArguments(const ServerOptions& options, grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(ClampToInt(kReceiveFactor * options.max_request_bytes));
  // A few kilobytes could inflate to gigabytes before any limit is looked at.
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder->SetResourceQuota(grpc::ResourceQuota("posenc").SetMaxThreads(kMaxReflectionThreads));
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMillis);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KeepaliveTimeoutMillis(options));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // as many as it takes
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMillis);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kMinPingIntervalMillis);
  // A client waits silently at this limit, so it lies above those that answer.
  constexpr uint64_t kSmallCalls = 128;
  builder->AddChannelArgument(
      GRPC_ARG_MAX_CONCURRENT_STREAMS,
      ClampToInt(options.max_concurrent_streams + options.max_queue + kSmallCalls));
}

// Reflection lists the services that gRPC knows a method of: this one, which nobody
// calls, stands for those of the router.
class NamedService final : public grpc::Service {
 public:
  explicit NamedService(absl::string_view name) : path_(absl::StrCat("/", name, "/")) {
    AddMethod(new grpc::internal::RpcServiceMethod(path_.c_str(),
                                                   grpc::internal::RpcMethod::NORMAL_RPC,
                                                   new grpc::internal::UnknownMethodHandler("")));
  }

 private:
  const std::string path_;
};

// The reflection library adds itself to every server of a process that links it;
// this takes it out again.
class WithoutReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    std::erase_if(*plugins,
                  [](const auto& plugin) { return plugin->name() == "proto_server_reflection"; });
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  ASSIGN_OR_RETURN(Listeners listeners, Listeners::Open(options.listen));
  std::unique_ptr<Server> server(new Server(options, std::move(listeners)));
  RETURN_IF_ERROR(server->Serve(options));
  RETURN_IF_ERROR(server->ShareMemory(options));
  server->health_.SetServing(true);
  return server;
}

Server::Server(const ServerOptions& options, Listeners listeners)
    : listeners_(std::move(listeners)),
      engine_(options.engine),
      admission_(options.max_concurrent_streams),
      stalls_(options.stall_timeout),
      small_answers_(options.answer_cache_bytes),
      places_ahead_(static_cast<int64_t>(kChunksAheadPerThread * ComputeThreads(options))),
      uploads_(options.max_upload_bytes),
      shared_tables_(options.share_memory
                         ? std::make_unique<SharedTables>(options.share_memory_bytes, &pool_)
                         : nullptr),
      parts_({.engine = &engine_,
              .admission = &admission_,
              .pool = &pool_,
              .stalls = &stalls_,
              .small_answers = &small_answers_,
              .content_hashes = &content_hashes_,
              .places_ahead = &places_ahead_,
              .uploads = &uploads_,
              .shared_tables = shared_tables_.get(),
              .limits = LimitsOf(options)}),
      pool_({.threads = ComputeThreads(options),
             .max_queue = options.max_queue,
             .before_job = options.before_job}),
      service_(parts_),
      health_(&stalls_),
      connections_(options.max_connections) {
  service_.AddTo(&router_);
  health_.AddTo(&router_);
}

absl::Status Server::Serve(const ServerOptions& options) {
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();  // or the linker drops it
  grpc::ServerBuilder builder;
  if (!options.reflection) builder.SetOption(std::make_unique<WithoutReflection>());
  SetConnectionArguments(options, &builder);
  auto grpc_acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  builder.RegisterAsyncGenericService(&calls_);
  if (options.reflection) {
    for (const char* name : {v1::PositionalEncodingService::service_full_name(),
                             grpc::health::v1::Health::service_full_name()}) {
      services_.push_back(std::make_unique<NamedService>(name));
      builder.RegisterService(services_.back().get());
    }
  }
  for (uint64_t i = 0; i < EventThreads(options); ++i) {
    call_queues_.emplace_back(builder.AddCompletionQueue(), &calls_, &router_);
  }
  grpc_server_ = builder.BuildAndStart();
  if (grpc_server_ == nullptr) return absl::InternalError("gRPC could not start");
  for (CallQueue& queue : call_queues_) queue.Start();
  // A chunk in that time is what a stream asks of its peer too.
  ASSIGN_OR_RETURN(watchdog_, ConnectionWatchdog::Start(options.stall_timeout,
                                                        options.engine.page_bytes, &connections_));
  ASSIGN_OR_RETURN(acceptor_, Acceptor::Start(listeners_.TakeSockets(), std::move(grpc_acceptor),
                                              &connections_));
  return absl::OkStatus();
}

absl::Status Server::ShareMemory(const ServerOptions& options) {
  if (!options.share_memory) return absl::OkStatus();
  const std::vector<std::string> paths = listeners_.UnixPaths();
  if (paths.empty()) return FieldError("share_memory", "needs a unix:PATH to listen on");
  ASSIGN_OR_RETURN(hand_over_, HandOver::Start(paths, options.stall_timeout, parts_));
  return absl::OkStatus();
}

Server::~Server() {
  HurryUp();
  Drain(std::chrono::nanoseconds::zero());
}

std::shared_ptr<grpc::Channel> Server::InProcessChannel(const grpc::ChannelArguments& arguments) {
  return grpc_server_->InProcessChannel(arguments);
}

void Server::Drain(std::chrono::nanoseconds grace) {
  if (grpc_server_ == nullptr) return;
  const auto deadline = Clock::now() + grace;
  health_.SetServing(false);
  admission_.Close();
  const bool empty = admission_.WaitUntilEmpty(deadline);
  hand_over_.reset();
  const bool watched = health_.EndWatches(std::min(deadline, Clock::now() + kGoodbye));
  const auto last_answer = watched ? Clock::now() : admission_.last_leave();
  const auto end = empty ? std::min(deadline, last_answer + kGoodbye) : Clock::now();
  acceptor_.reset();
  grpc_server_->Shutdown(std::chrono::system_clock::now() + (end - Clock::now()));
  call_queues_.clear();
}

void Server::HurryUp() { admission_.HurryUp(); }

}  // namespace posenc::server
