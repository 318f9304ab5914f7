#include "lib/families/sequences.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/canonical_key.h"
#include "lib/base/status.h"
#include "lib/families/checks.h"
#include "lib/families/family.h"
#include "lib/families/selection.h"

namespace posenc {
namespace {

constexpr int64_t kMaxBatch = int64_t{1} << 20;

std::string Field(absl::string_view name) { return absl::StrCat("selection.sequences.", name); }

absl::Status CheckUnread(absl::string_view name, bool is_read, bool is_set) {
  if (is_read || !is_set) return absl::OkStatus();
  return FieldError(Field(name), "this encoding does not read it");
}

absl::Status CheckShape(v1::Sequences* sequences, bool has_values) {
  if (!sequences->has_batch_size()) sequences->set_batch_size(1);
  RETURN_IF_ERROR(CheckInRange(Field("batch_size"), sequences->batch_size(), 1, kMaxBatch));
  if (!sequences->has_length()) {
    if (!has_values) return FieldError(Field("length"), "is required");
    sequences->set_length(sequences->values_size() / sequences->batch_size());
  }
  RETURN_IF_ERROR(CheckInRange(Field("length"), sequences->length(), 0, kMaxPosition));
  const int64_t tokens = sequences->batch_size() * sequences->length();
  if (has_values && sequences->values_size() != tokens) {
    return FieldError(Field("values"), absl::StrCat("must have batch_size * length (", tokens,
                                                    ") entries, got ", sequences->values_size()));
  }
  return absl::OkStatus();
}

absl::Status CheckCounts(absl::string_view name,
                         const google::protobuf::RepeatedField<int64_t>& counts,
                         const v1::Sequences& sequences) {
  if (counts.size() != sequences.batch_size()) {
    return FieldError(Field(name), absl::StrCat("must have batch_size (", sequences.batch_size(),
                                                ") entries, got ", counts.size()));
  }
  for (int i = 0; i < counts.size(); ++i) {
    RETURN_IF_ERROR(
        CheckInRange(absl::StrCat(Field(name), "[", i, "]"), counts[i], 0, sequences.length()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ResolvedSequences> ResolveSequences(const v1::Selection& selection,
                                                   const SequenceFields& fields) {
  if (!selection.has_sequences()) return WrongSelection(selection, "sequences");
  ResolvedSequences resolved;
  resolved.selection = selection;
  v1::Sequences* sequences = resolved.selection.mutable_sequences();
  RETURN_IF_ERROR(CheckUnread("values", fields.values, sequences->values_size() > 0));
  RETURN_IF_ERROR(CheckUnread("lengths", fields.lengths, sequences->lengths_size() > 0));
  RETURN_IF_ERROR(
      CheckUnread("num_targets", fields.num_targets, sequences->num_targets_size() > 0));
  RETURN_IF_ERROR(CheckUnread("past_length", fields.past_length, sequences->has_past_length()));
  RETURN_IF_ERROR(CheckShape(sequences, fields.values));
  if (fields.lengths) RETURN_IF_ERROR(CheckCounts("lengths", sequences->lengths(), *sequences));
  if (sequences->num_targets_size() > 0) {
    RETURN_IF_ERROR(CheckCounts("num_targets", sequences->num_targets(), *sequences));
  }
  if (fields.past_length) sequences->set_past_length(sequences->past_length());
  RETURN_IF_ERROR(
      CheckInRange(Field("past_length"), sequences->past_length(), 0, kMaxPosition - 1));
  resolved.batch_size = sequences->batch_size();
  resolved.length = sequences->length();
  resolved.past_length = sequences->past_length();
  resolved.coordinates_key = CanonicalKey(resolved.selection);
  return resolved;
}

}  // namespace posenc
