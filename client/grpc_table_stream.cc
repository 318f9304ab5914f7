#include "client/grpc_table_stream.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/chunk_parser.h"
#include "client/request_parts.h"
#include "client/status_from_grpc.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/async_stream.h"
#include "posenc/v1/service.pb.h"

namespace posenc {
namespace {

using grpc::internal::RpcMethod;
using v1::GetTableFromUploadRequest;

constexpr char kGetTable[] = "/posenc.v1.PositionalEncodingService/GetTable";
constexpr char kGetTableFromUpload[] = "/posenc.v1.PositionalEncodingService/GetTableFromUpload";

// As generated stubs have them, but for the answers.
using Reader = grpc::ClientAsyncReader<grpc::ByteBuffer>;
using ReaderFactory = grpc::internal::ClientAsyncReaderFactory<grpc::ByteBuffer>;
using ReaderWriter = grpc::ClientAsyncReaderWriter<GetTableFromUploadRequest, grpc::ByteBuffer>;
using ReaderWriterFactory =
    grpc::internal::ClientAsyncReaderWriterFactory<GetTableFromUploadRequest, grpc::ByteBuffer>;

// One operation at a time on a completion queue of its own: the caller's thread does
// the work, as with the synchronous reader (the callback reader halves the
// throughput with a thread hop a message), and a wait can have an end.
//
// GrpcCall: Reader or ReaderWriter.
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
    raw_.Clear();  // before more memory is taken
    call_->Read(&raw_, nullptr);
    if (!Await()) {
      if (absl::Status status = Finish(); !status.ok()) return status;
      return std::nullopt;
    }
    TableChunk chunk;
    if (parser_.Parse(&raw_, &chunk)) return chunk;
    return absl::InternalError(
        absl::StrCat("malformed stream: ", raw_.Length(), " bytes that are no GetTableResponse"));
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
  grpc::ByteBuffer raw_;  // what the last chunk views
  ChunkParser parser_;
  bool timed_out_ = false;
  bool finished_ = false;
};

class DownloadStream final : public GrpcTableStream<Reader> {
 public:
  DownloadStream(grpc::Channel* channel, const RpcMethod& method,
                 const v1::GetTableRequest& request, const CallContext& context)
      : GrpcTableStream(context) {
    Start(std::unique_ptr<Reader>(ReaderFactory::Create(channel, &queue_, method, &context_,
                                                        request, /*start=*/false, nullptr)));
  }
};

class UploadStream final : public GrpcTableStream<ReaderWriter> {
 public:
  UploadStream(grpc::Channel* channel, const RpcMethod& method, RequestParts parts,
               const CallContext& context)
      : GrpcTableStream(context) {
    Start(std::unique_ptr<ReaderWriter>(ReaderWriterFactory::Create(
        channel, &queue_, method, &context_, /*start=*/false, nullptr)));
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

RawTableStub::RawTableStub(std::shared_ptr<grpc::Channel> channel)
    : channel_(std::move(channel)),
      get_table_(kGetTable, RpcMethod::SERVER_STREAMING, channel_),
      get_table_from_upload_(kGetTableFromUpload, RpcMethod::BIDI_STREAMING, channel_) {}

std::unique_ptr<TableStream> RawTableStub::Open(const v1::GetTableRequest& request,
                                                const CallContext& context) const {
  if (request.ByteSizeLong() > kMaxRequestMessageBytes) {
    RequestParts parts(request);
    if (parts.has_tables()) {
      return std::make_unique<UploadStream>(channel_.get(), get_table_from_upload_,
                                            std::move(parts), context);
    }
  }
  return std::make_unique<DownloadStream>(channel_.get(), get_table_, request, context);
}

}  // namespace posenc
