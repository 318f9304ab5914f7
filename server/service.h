// The RPCs, as raw methods: they take and give bytes, so that a message
// that does not parse is refused with our words and a page is sent uncopied.
#ifndef POSENC_SERVER_SERVICE_H_
#define POSENC_SERVER_SERVICE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "lib/engine/engine.h"
#include "posenc/v1/service.grpc.pb.h"
#include "server/admission.h"
#include "server/compute_pool.h"
#include "server/content_hashes.h"
#include "server/places.h"
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

using RawService = v1::PositionalEncodingService::WithRawCallbackMethod_GetTable<
    v1::PositionalEncodingService::WithRawCallbackMethod_GetTableFromUpload<
        v1::PositionalEncodingService::WithRawCallbackMethod_DescribeTable<
            v1::PositionalEncodingService::WithRawCallbackMethod_ResolveModelConfig<
                v1::PositionalEncodingService::WithRawCallbackMethod_GetServerInfo<
                    v1::PositionalEncodingService::Service>>>>>;

// Thread-safe.
class Service final : public RawService {
 public:
  explicit Service(ServiceParts parts) : parts_(std::move(parts)) {}

  grpc::ServerWriteReactor<grpc::ByteBuffer>* GetTable(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* GetTableFromUpload(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* DescribeTable(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ResolveModelConfig(grpc::CallbackServerContext* context,
                                               const grpc::ByteBuffer* request,
                                               grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;

 private:
  v1::GetServerInfoResponse ServerInfo() const;

  const ServiceParts parts_;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_SERVICE_H_
