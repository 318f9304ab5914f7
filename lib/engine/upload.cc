#include "lib/engine/upload.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/hash.h"
#include "lib/base/status.h"

namespace posenc {

absl::StatusOr<Upload> Upload::Begin(v1::GetTableRequest request) {
  if (!request.has_spec()) return FieldError("source", "must be a spec: its tables are uploaded");
  Upload upload(std::make_unique<v1::GetTableRequest>(std::move(request)));
  for (const FloatTableField& field : FindFloatTables(upload.request_->mutable_spec())) {
    if (!field.table->f32().empty() || field.table->values_size() > 0) continue;
    RETURN_IF_ERROR(upload.AddMissing(field));
  }
  if (upload.missing_.empty()) {
    return FieldError("spec", "has no table without numbers: nothing is to be uploaded");
  }
  return upload;
}

absl::Status Upload::AddMissing(const FloatTableField& field) {
  int64_t bytes = sizeof(float);
  for (const int64_t length : field.table->shape()) {
    if (length < 1 || __builtin_mul_overflow(bytes, length, &bytes)) bytes = 0;
    if (bytes == 0) break;
  }
  if (bytes == 0 || field.table->shape().empty() ||
      __builtin_add_overflow(bytes_, static_cast<uint64_t>(bytes), &bytes_)) {
    return FieldError(absl::StrCat(field.path, ".shape"),
                      "must be the lengths of a table to upload: each at least 1, its bytes "
                      "below 2^63");
  }
  missing_.push_back({field.table, static_cast<uint64_t>(bytes)});
  return absl::OkStatus();
}

absl::Status Upload::Append(const v1::GetTableFromUploadRequest& message) {
  if (message.offset() != received_) {
    return FieldError("offset", absl::StrCat("must be the ", received_, " bytes that came before, ",
                                             "got ", message.offset()));
  }
  absl::string_view data = message.data();
  if (data.size() > bytes_ - received_) {
    return FieldError("data", absl::StrCat("goes beyond the ", bytes_, " bytes of the tables: ",
                                           data.size(), " at offset ", received_));
  }
  if (message.has_checksum() && message.checksum() != Hash64(data)) {
    return FieldError("checksum",
                      absl::StrFormat("is %016x, that of the %d bytes at offset %d is %016x",
                                      message.checksum(), data.size(), received_, Hash64(data)));
  }
  received_ += data.size();
  while (!data.empty()) {
    const Missing& missing = missing_[filling_];
    std::string* f32 = missing.table->mutable_f32();
    f32->reserve(missing.bytes);
    const size_t size = std::min<size_t>(data.size(), missing.bytes - f32->size());
    f32->append(data.data(), size);
    data.remove_prefix(size);
    if (f32->size() == missing.bytes) ++filling_;
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::GetTableRequest> Upload::Finish() {
  if (received_ != bytes_) {
    return FieldError("data", absl::StrCat("ended after ", received_, " of the ", bytes_,
                                           " bytes of the tables"));
  }
  return std::move(*request_);
}

}  // namespace posenc
