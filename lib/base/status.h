// Errors as sentences for the caller: the field's path, the rule, what we got.
//
// A refusal carries the google.rpc detail that goes with it as a payload, so
// that whoever puts it on a wire only copies it. Which status means what is the
// table in proto/posenc/v1/service.proto.
#ifndef POSENC_LIB_BASE_STATUS_H_
#define POSENC_LIB_BASE_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace posenc {

// INVALID_ARGUMENT "field: rule" with a BadRequest detail.
// FieldError("rope.rotary_dim", "must be even, got 65"). Both are cut (256 and 704
// bytes), so that an error about a huge value fits wherever errors travel.
absl::Status FieldError(absl::string_view field, absl::string_view rule);

// RESOURCE_EXHAUSTED with a QuotaFailure detail: larger than this process allows.
absl::Status QuotaError(absl::string_view subject, absl::string_view description);

}  // namespace posenc

#define POSENC_CONCAT_INNER(a, b) a##b
#define POSENC_CONCAT(a, b) POSENC_CONCAT_INNER(a, b)

// Returns from the enclosing function unless `expr` is OK.
#define RETURN_IF_ERROR(expr)                                     \
  if (absl::Status posenc_status = (expr); !posenc_status.ok()) { \
    return posenc_status;                                         \
  }

// ASSIGN_OR_RETURN(const Plan plan, MakePlan(spec));
#define ASSIGN_OR_RETURN(declaration, expr) \
  POSENC_ASSIGN_OR_RETURN(POSENC_CONCAT(posenc_statusor_, __LINE__), declaration, expr)
#define POSENC_ASSIGN_OR_RETURN(statusor, declaration, expr) \
  auto statusor = (expr);                                    \
  if (!statusor.ok()) return std::move(statusor).status();   \
  declaration = *std::move(statusor)

#endif  // POSENC_LIB_BASE_STATUS_H_
