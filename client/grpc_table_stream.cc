#include "client/grpc_table_stream.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/request_parts.h"
#include "client/status_from_grpc.h"
#include "grpcpp/grpcpp.h"

namespace posenc {
namespace {

using Stub = v1::PositionalEncodingService::Stub;

// One operation at a time on a completion queue of its own: the caller's thread does
// the work, as with the synchronous reader (the callback reader halves the
// throughput with a thread hop a message), and a wait can have an end.
//
// GrpcCall: grpc::ClientAsyncReader, or the one that also writes.
template <typename GrpcCall>
class GrpcTableStream : public TableStream {
 public:
  ~GrpcTableStream() override {
    if (!finished_) {
      context_.TryCancel();
      Finish().IgnoreError();
    }
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  absl::StatusOr<std::optional<TableChunk>> Read() override {
    call_->Read(&message_, nullptr);
    if (!Await()) {
      if (absl::Status status = Finish(); !status.ok()) return status;
      return std::nullopt;
    }
    TableChunk chunk;
    if (message_.has_header()) chunk.header = &message_.header();
    chunk.offset = message_.offset();
    chunk.checksum = message_.checksum();
    chunk.content_hash = message_.content_hash();
    chunk.data = std::as_bytes(std::span<const char>(message_.data()));
    return chunk;
  }

 protected:
  explicit GrpcTableStream(const CallContext& context)
      : progress_timeout_(context.progress_timeout) {
    if (context.deadline != absl::InfiniteFuture()) {
      context_.set_deadline(absl::ToChronoTime(context.deadline));
    }
  }

  void Start(std::unique_ptr<GrpcCall> call) {
    call_ = std::move(call);
    call_->StartCall(nullptr);
    Await();
  }

  // The outcome of the operation under way: false when the stream has ended.
  bool Await() {
    const absl::Time latest = absl::Now() + progress_timeout_;
    void* tag = nullptr;
    bool ok = false;
    if (queue_.AsyncNext(&tag, &ok, absl::ToChronoTime(latest)) == grpc::CompletionQueue::TIMEOUT) {
      timed_out_ = true;
      context_.TryCancel();  // ends the operation at once
      queue_.Next(&tag, &ok);
    }
    return ok;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<GrpcCall> call_;

 private:
  absl::Status Finish() {
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Await();
    finished_ = true;
    if (timed_out_ && status.error_code() == grpc::StatusCode::CANCELLED) {
      return absl::DeadlineExceededError(
          absl::StrCat("no message for ", absl::FormatDuration(progress_timeout_)));
    }
    return StatusFromGrpc(status);
  }

  const absl::Duration progress_timeout_;
  v1::GetTableResponse message_;  // kept, so that its buffers are used again
  bool timed_out_ = false;
  bool finished_ = false;
};

class DownloadStream final : public GrpcTableStream<grpc::ClientAsyncReader<v1::GetTableResponse>> {
 public:
  DownloadStream(Stub* stub, const v1::GetTableRequest& request, const CallContext& context)
      : GrpcTableStream(context) {
    Start(stub->PrepareAsyncGetTable(&context_, request, &queue_));
  }
};

class UploadStream final
    : public GrpcTableStream<
          grpc::ClientAsyncReaderWriter<v1::GetTableFromUploadRequest, v1::GetTableResponse>> {
 public:
  UploadStream(Stub* stub, RequestParts parts, const CallContext& context)
      : GrpcTableStream(context) {
    Start(stub->PrepareAsyncGetTableFromUpload(&context_, &queue_));
    // A write that fails has a status, which Read finds.
    for (std::optional<v1::GetTableFromUploadRequest> message = parts.Next(); message;
         message = parts.Next()) {
      call_->Write(*message, nullptr);
      if (!Await()) return;
    }
    call_->WritesDone(nullptr);
    Await();
  }
};

}  // namespace

std::unique_ptr<TableStream> OpenTableStream(Stub* stub, const v1::GetTableRequest& request,
                                             const CallContext& context) {
  if (request.ByteSizeLong() > kMaxRequestMessageBytes) {
    RequestParts parts(request);
    if (parts.has_tables()) {
      return std::make_unique<UploadStream>(stub, std::move(parts), context);
    }
  }
  return std::make_unique<DownloadStream>(stub, request, context);
}

}  // namespace posenc
