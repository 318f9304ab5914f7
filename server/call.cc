#include "server/call.h"

#include <algorithm>
#include <atomic>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "server/grpc_status.h"
#include "server/log.h"

namespace posenc::server {
namespace {

constexpr char kRequestIdKey[] = "x-request-id";
constexpr size_t kMaxRequestIdBytes = 64;

// Unlike ids of other processes by its first half, and of this one by its second.
std::string NewRequestId() {
  static const uint32_t kProcess = std::random_device{}();
  static std::atomic<uint32_t> count{0};
  return absl::StrFormat("%08x%08x", kProcess, count.fetch_add(1, std::memory_order_relaxed));
}

bool IsRequestId(absl::string_view id) {
  return !id.empty() && id.size() <= kMaxRequestIdBytes &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

std::string RequestId(const grpc::ServerContext& context) {
  const auto found = context.client_metadata().find(kRequestIdKey);
  if (found == context.client_metadata().end()) return NewRequestId();
  const absl::string_view id(found->second.data(), found->second.size());
  return IsRequestId(id) ? std::string(id) : NewRequestId();
}

LogLevel LevelOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INTERNAL:
      return LogLevel::kError;
    case grpc::StatusCode::UNAVAILABLE:
      return LogLevel::kWarning;
    default:
      return LogLevel::kInfo;
  }
}

std::string CodeName(const grpc::Status& status) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code()));
}

}  // namespace

Call::Call(grpc::ServerContext* context, absl::string_view method)
    : context_(context),
      method_(method),
      request_id_(RequestId(*context)),
      peer_(context->peer()),
      begin_(std::chrono::steady_clock::now()) {
  context_->AddTrailingMetadata(kRequestIdKey, request_id_);
}

grpc::Status Call::End(const absl::Status& status) {
  status_ = ToGrpcStatus(status);
  return status_;
}

void Call::Log(uint64_t bytes_sent) const {
  const auto took = std::chrono::steady_clock::now() - begin_;
  server::Log(LevelOf(status_.error_code()), status_.ok() ? "served" : status_.error_message(),
              {{"method", method_},
               {"code", CodeName(status_)},
               {"request_id", request_id_},
               {"peer", peer_},
               {"bytes", static_cast<int64_t>(bytes_sent)},
               {"micros", std::chrono::duration_cast<std::chrono::microseconds>(took).count()}});
}

bool Call::DeadlinePassed() const {
  return context_->deadline() <= std::chrono::system_clock::now();
}

absl::Status Call::Stopped() const {
  if (!context_->IsCancelled()) return absl::OkStatus();
  return StoppedError(DeadlinePassed());
}

}  // namespace posenc::server
