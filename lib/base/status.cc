#include "lib/base/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "posenc/v1/error_details.pb.h"

namespace posenc {

absl::Status FieldError(absl::string_view field, absl::string_view rule) {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(field, ": ", rule));
  v1::BadRequest detail;
  auto* violation = detail.add_field_violations();
  violation->set_field(std::string(field));
  violation->set_description(std::string(rule));
  status.SetPayload("type.googleapis.com/google.rpc.BadRequest",
                    absl::Cord(detail.SerializeAsString()));
  return status;
}

absl::Status QuotaError(absl::string_view subject, absl::string_view description) {
  absl::Status status = absl::ResourceExhaustedError(absl::StrCat(subject, ": ", description));
  v1::QuotaFailure detail;
  auto* violation = detail.add_violations();
  violation->set_subject(std::string(subject));
  violation->set_description(std::string(description));
  status.SetPayload("type.googleapis.com/google.rpc.QuotaFailure",
                    absl::Cord(detail.SerializeAsString()));
  return status;
}

}  // namespace posenc
