// A call with one answer, computed on the pool.
#ifndef POSENC_SERVER_UNARY_CALL_H_
#define POSENC_SERVER_UNARY_CALL_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/byte_buffer.h"
#include "lib/base/status.h"
#include "server/admission.h"
#include "server/call.h"
#include "server/request.h"
#include "server/service.h"
#include "server/watched_reactor.h"

namespace posenc::server {

// Where an answer is made: kHere, on the queue's thread, is for what needs no
// computing, and so works while the pool is full.
enum class Where { kPool, kHere };

// Deletes itself when done. It is touched by one thread at a time: the queue's until
// the pool has the job, the pool's until the answer, the queue's again from there.
template <typename Request, typename Response>
class UnaryCall final : public WatchedReactor {
 public:
  // Thread-safe.
  using Answer = std::function<absl::StatusOr<Response>(const Request&)>;

  // Waits for the request.
  UnaryCall(const ServiceParts& parts, std::unique_ptr<IncomingCall> call, absl::string_view method,
            Where where, Answer answer)
      : WatchedReactor(std::move(call), parts.stalls),
        parts_(parts),
        call_(context(), method),
        method_(method),
        where_(where),
        answer_(std::move(answer)) {
    StartRead(&request_);
  }

 private:
  // Answers with what the same request got before, or with what is made now. A call
  // that sent no message has none that parses.
  void OnReadDone(bool /*ok*/) override {
    StopWaiting();
    if (absl::Status status = Enter(); !status.ok()) return End(status);
    if (where_ == Where::kHere) return Make();
    key_ = SmallAnswers::KeyOf(method_, request_);
    if (const auto known = parts_.small_answers->Find(key_); known != nullptr) {
      response_ = known->message;
      return End(absl::OkStatus());
    }
    if (!parts_.pool->TrySubmit([this] { Make(); })) End(QueueFullError(parts_));
  }

  absl::Status Enter() {
    RETURN_IF_ERROR(parts_.admission->Enter(CallKind::kUnary));
    entered_ = true;
    return CheckRequestSize(request_, parts_.limits.max_request_bytes());
  }

  void Make() {
    End(Guarded([this] { return Run(); }));
  }

  absl::Status Run() {
    RETURN_IF_ERROR(call_.Stopped());
    Request request;
    RETURN_IF_ERROR(ParseRequest(&request_, &request));
    ASSIGN_OR_RETURN(const Response response, answer_(request));
    bool own_buffer;
    const grpc::Status serialized =
        grpc::SerializationTraits<Response>::Serialize(response, &response_, &own_buffer);
    if (!serialized.ok()) return absl::InternalError(serialized.error_message());
    parts_.small_answers->Keep(key_, response_, 0);
    return absl::OkStatus();
  }

  void End(const absl::Status& status) {
    const grpc::Status end = call_.End(status);
    if (!status.ok()) return Finish(end);
    StartWriteAndFinish(response_, end);
  }

  void OnDone() override {
    call_.Log(response_.Length());
    if (entered_) parts_.admission->Leave(CallKind::kUnary);
    delete this;
  }

  const ServiceParts& parts_;
  Call call_;
  const absl::string_view method_;
  const Where where_;
  const Answer answer_;
  grpc::ByteBuffer request_;
  std::string key_;  // in small_answers; empty: not kept
  grpc::ByteBuffer response_;
  bool entered_ = false;
};

}  // namespace posenc::server

#endif  // POSENC_SERVER_UNARY_CALL_H_
