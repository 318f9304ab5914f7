// A call with one answer, computed on the pool.
#ifndef POSENC_SERVER_UNARY_CALL_H_
#define POSENC_SERVER_UNARY_CALL_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "lib/base/status.h"
#include "server/admission.h"
#include "server/call.h"
#include "server/request.h"
#include "server/service.h"

namespace posenc::server {

// Deletes itself when done. It is touched by one thread at a time: gRPC's until
// the pool has the job, the pool's until Finish, gRPC's again from there.
template <typename Request, typename Response>
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  // Thread-safe.
  using Answer = std::function<absl::StatusOr<Response>(const Request&)>;

  UnaryCall(const ServiceParts& parts, grpc::CallbackServerContext* context,
            absl::string_view method, const grpc::ByteBuffer& request, grpc::ByteBuffer* response,
            Answer answer)
      : parts_(parts),
        call_(context, method),
        method_(method),
        request_(request),
        response_(response),
        answer_(std::move(answer)) {}

  // Answers from the pool, or at once with what the same request got before.
  void Start() {
    if (absl::Status status = Enter(); !status.ok()) return End(status);
    key_ = SmallAnswers::KeyOf(method_, request_);
    if (const auto known = parts_.small_answers->Find(key_); known != nullptr) {
      *response_ = known->message;
      return End(absl::OkStatus());
    }
    if (!parts_.pool->TrySubmit([this] { End(Guarded([this] { return Run(); })); })) {
      End(QueueFullError(parts_));
    }
  }

  // Answers at once, for what needs no computing: so it works while the pool is full.
  void AnswerHere() {
    if (absl::Status status = Enter(); !status.ok()) return End(status);
    End(Guarded([this] { return Run(); }));
  }

 private:
  absl::Status Enter() {
    RETURN_IF_ERROR(parts_.admission->Enter(CallKind::kUnary));
    entered_ = true;
    return CheckRequestSize(request_, parts_.limits.max_request_bytes());
  }

  absl::Status Run() {
    RETURN_IF_ERROR(call_.Stopped());
    Request request;
    RETURN_IF_ERROR(ParseRequest(&request_, &request));
    ASSIGN_OR_RETURN(const Response response, answer_(request));
    bool own_buffer;
    const grpc::Status serialized =
        grpc::SerializationTraits<Response>::Serialize(response, response_, &own_buffer);
    if (!serialized.ok()) return absl::InternalError(serialized.error_message());
    parts_.small_answers->Keep(key_, *response_, 0);
    return absl::OkStatus();
  }

  void End(const absl::Status& status) { Finish(call_.End(status)); }

  void OnDone() override {
    call_.Log(response_->Length());
    if (entered_) parts_.admission->Leave(CallKind::kUnary);
    delete this;
  }

  const ServiceParts& parts_;
  Call call_;
  const absl::string_view method_;
  grpc::ByteBuffer request_;
  std::string key_;                   // in small_answers; empty: not kept
  grpc::ByteBuffer* const response_;  // gRPC's, alive until OnDone
  const Answer answer_;
  bool entered_ = false;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_UNARY_CALL_H_
