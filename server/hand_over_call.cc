#include "server/hand_over_call.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/engine/engine.h"
#include "posenc/v1/table.pb.h"
#include "server/grpc_status.h"
#include "server/request.h"

namespace posenc::server {
namespace {

// Its length in 4 little-endian bytes (lib asserts the order), then the message.
std::string Frame(const v1::HandOverReply& reply) {
  const auto length = static_cast<uint32_t>(reply.ByteSizeLong());
  std::string frame(reinterpret_cast<const char*>(&length), sizeof(length));
  reply.AppendToString(&frame);
  return frame;
}

}  // namespace

void HandOverCall::Start(std::string request) {
  request_ = std::move(request);
  if (absl::Status status = parts_.admission->Enter(CallKind::kStream); !status.ok()) {
    return Answer(status);
  }
  entered_ = true;
  if (!parts_.pool->TrySubmit([self = shared_from_this()] { self->Run(); })) {
    Answer(QueueFullError(parts_));
  }
}

void HandOverCall::End() {
  ended_ = true;
  if (entered_) parts_.admission->Leave(CallKind::kStream);
}

void HandOverCall::Run() {
  if (ended_) return;
  if (absl::Status status = Guarded([this] { return Ask(); }); !status.ok()) Answer(status);
}

// On OK the answer comes from the shared tables, or was given.
absl::Status HandOverCall::Ask() {
  v1::GetTableRequest request;
  if (!request.ParseFromString(request_)) {
    return FieldError("request", absl::StrCat("its ", request_.size(), " bytes are not a ",
                                              request.GetTypeName(), " message"));
  }
  // Memory holds the table from its first byte; the offset need only be allowed.
  if (request.read_offset() > 0) RETURN_IF_ERROR(parts_.engine->GetTable(request).status());
  request.clear_read_offset();
  ASSIGN_OR_RETURN(std::unique_ptr<Table> table, parts_.engine->GetTable(std::move(request)));
  *reply_.mutable_header() = table->header();
  parts_.shared_tables->Get(
      std::move(table),
      {.waits = [self = shared_from_this()] { return !self->ended_; },
       .tell = [self = shared_from_this()](const auto& answer) { self->Answer(answer); }});
  return absl::OkStatus();
}

// The first one counts: what fails after it, fails for nobody.
void HandOverCall::Answer(const absl::StatusOr<SharedTablePointer>& table) {
  if (answered()) return;
  status_ = table.status();
  if (status_.ok()) {
    reply_.set_content_hash((*table)->content_hash);
    status_ = Guarded([this] {
      frame_ = Frame(reply_);
      return absl::OkStatus();
    });
  }
  if (status_.ok()) {
    table_ = *table;
  } else {
    reply_.Clear();
    *reply_.mutable_error() = ToRpcStatus(status_);
    frame_ = Frame(reply_);
  }
  answered_.store(true, std::memory_order_release);
  wake_->Signal();
}

}  // namespace posenc::server
