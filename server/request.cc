#include "server/request.h"

#include <exception>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "server/grpc_status.h"

namespace posenc::server {

absl::Status CheckRequestSize(const grpc::ByteBuffer& raw, uint64_t max_request_bytes) {
  const uint64_t bytes = raw.Length();
  if (bytes <= max_request_bytes) return absl::OkStatus();
  return QuotaError("request", absl::StrCat("its ", bytes, " bytes exceed max_request_bytes (",
                                            max_request_bytes, ")"));
}

absl::Status ParseRequest(grpc::ByteBuffer* raw, google::protobuf::Message* message) {
  if (!raw->Valid()) return FieldError("request", "is missing: the call sent no message");
  const uint64_t bytes = raw->Length();
  if (grpc::GenericDeserialize<grpc::ProtoBufferReader, google::protobuf::Message>(raw, message)
          .ok()) {
    return absl::OkStatus();
  }
  return FieldError("request", absl::StrCat("its ", bytes, " bytes are not a ",
                                            message->GetTypeName(), " message"));
}

absl::Status Guarded(absl::FunctionRef<absl::Status()> work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return BusyError("the server is out of memory", absl::Seconds(1));
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace posenc::server
