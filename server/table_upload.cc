#include "server/table_upload.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "posenc/v1/table.pb.h"
#include "server/request.h"

namespace posenc::server {

TableUpload::TableUpload(const ServiceParts& parts, std::unique_ptr<IncomingCall> call)
    : TableSender(parts, std::move(call), "GetTableFromUpload") {
  if (const absl::Status status = Enter(); status.ok()) {
    Read();
  } else {
    End(status);
  }
}

void TableUpload::Read() {
  read_began_ = Clock::now();
  StartRead(&message_, read_began_ - waited_);
}

// Nothing is parsed or copied on the queue's thread.
void TableUpload::OnReadDone(bool ok) {
  StopWaiting();
  waited_ += Clock::now() - read_began_;
  const auto step = [this, ok] { return ok ? Take() : Complete(); };
  if (std::exchange(began_, true)) return ContinueOnPool(step);
  BeginOnPool(step);
}

absl::Status TableUpload::Take() {
  RETURN_IF_ERROR(Stopped());
  RETURN_IF_ERROR(CheckRequestSize(message_, parts_.limits.max_request_bytes()));
  v1::GetTableFromUploadRequest message;
  RETURN_IF_ERROR(ParseRequest(&message_, &message));
  if (message.has_request() == upload_.has_value()) {
    return FieldError("request", upload_.has_value() ? "must be in the first message only"
                                                     : "is required in the first message");
  }
  if (!upload_.has_value()) RETURN_IF_ERROR(Begin(&message));
  RETURN_IF_ERROR(upload_->Append(message));
  RETURN_IF_ERROR(CountProgress());
  Read();
  return absl::OkStatus();
}

absl::Status TableUpload::Begin(v1::GetTableFromUploadRequest* message) {
  ASSIGN_OR_RETURN(Upload upload, Upload::Begin(std::move(*message->mutable_request())));
  RETURN_IF_ERROR(parts_.uploads->Reserve(upload.bytes()));
  reserved_ = upload.bytes();
  upload_ = std::move(upload);
  return absl::OkStatus();
}

absl::Status TableUpload::CountProgress() {
  if (upload_->received() - progress_ >= kProgressBytes) {
    progress_ = upload_->received();
    waited_ = Clock::duration::zero();
    messages_ = 0;
  }
  if (++messages_ <= kProgressMessages) return absl::OkStatus();
  return FieldError("data", absl::StrCat("must come in larger messages: ", kProgressMessages,
                                         " of them brought less than ", kProgressBytes, " bytes"));
}

absl::Status TableUpload::Complete() {
  RETURN_IF_ERROR(Stopped());
  if (!upload_.has_value()) return FieldError("request", "is missing: the call sent no message");
  ASSIGN_OR_RETURN(v1::GetTableRequest request, upload_->Finish());
  upload_.reset();
  return Answer(std::move(request));
}

// The plan of the table that was sent held its numbers until now.
void TableUpload::OnDone() {
  if (reserved_ > 0) parts_.uploads->Release(reserved_);
  TableSender::OnDone();
}

}  // namespace posenc::server
