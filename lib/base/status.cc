#include "lib/base/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "lib/base/shorten.h"
#include "posenc/v1/error_details.pb.h"

namespace posenc {
namespace {

// gRPC carries an error as metadata, of which a client takes 8 KiB: message and
// detail, escaped and in base64, must stay below.
constexpr size_t kMaxFieldBytes = 256;
constexpr size_t kMaxRuleBytes = 704;

}  // namespace

absl::Status FieldError(absl::string_view whole_field, absl::string_view whole_rule) {
  const std::string field = Shorten(whole_field, kMaxFieldBytes);
  const std::string rule = Shorten(whole_rule, kMaxRuleBytes);
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(field, ": ", rule));
  v1::BadRequest detail;
  auto* violation = detail.add_field_violations();
  violation->set_field(field);
  violation->set_description(rule);
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
