#include "server/table_stream.h"

#include <memory>
#include <utility>

#include "lib/base/status.h"
#include "posenc/v1/table.pb.h"
#include "server/request.h"

namespace posenc::server {

TableStream::TableStream(const ServiceParts& parts, std::unique_ptr<IncomingCall> call)
    : TableSender(parts, std::move(call), "GetTable") {
  StartRead(&request_);
}

// Gives the turn to the pool, or ends the call: also with what the same request got
// before. A call that sent no message has none that parses.
void TableStream::OnReadDone(bool /*ok*/) {
  StopWaiting();
  key_ = SmallAnswers::KeyOf("GetTable", request_);
  const std::shared_ptr<const SmallAnswer> known = parts_.small_answers->Find(key_);
  absl::Status status = Enter(known == nullptr ? CallKind::kStream : CallKind::kUnary);
  if (status.ok()) status = CheckRequestSize(request_, parts_.limits.max_request_bytes());
  if (!status.ok()) return End(status);
  if (known != nullptr) return AnswerAgain(*known);
  BeginOnPool([this] { return Begin(); });
}

absl::Status TableStream::Begin() {
  RETURN_IF_ERROR(Stopped());
  v1::GetTableRequest request;
  RETURN_IF_ERROR(ParseRequest(&request_, &request));
  return Answer(std::move(request), key_);
}

}  // namespace posenc::server
