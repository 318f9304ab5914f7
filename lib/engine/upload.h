// The tables of numbers that a request leaves out, as they arrive behind it.
//
//   request   {table_resample {table {shape: 1370 shape: 1024}}}: 5611520 bytes to come
//   messages  each the next bytes, with their offset and checksum
//   Finish    the request with its numbers, as if it had come in one piece: the same
//             table_id, the same bytes
//
// Nothing is allocated before Append, and no more than was announced.
#ifndef POSENC_LIB_ENGINE_UPLOAD_H_
#define POSENC_LIB_ENGINE_UPLOAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/engine/float_tables.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

// Not thread-safe.
class Upload {
 public:
  // Errors: the request's source is no spec, none of its tables lacks its numbers, a
  // shape of one is impossible.
  static absl::StatusOr<Upload> Begin(v1::GetTableRequest request);

  uint64_t bytes() const { return bytes_; }  // of all tables that are to come
  uint64_t received() const { return received_; }

  // Takes the next bytes. Errors: an offset that is not received(), more than bytes() in
  // all, another checksum.
  absl::Status Append(const v1::GetTableFromUploadRequest& message);

  // Once. Error: bytes are missing.
  absl::StatusOr<v1::GetTableRequest> Finish();

 private:
  struct Missing {
    v1::FloatTable* table;  // in *request_
    uint64_t bytes;
  };

  explicit Upload(std::unique_ptr<v1::GetTableRequest> request) : request_(std::move(request)) {}

  absl::Status AddMissing(const FloatTableField& field);

  std::unique_ptr<v1::GetTableRequest> request_;
  std::vector<Missing> missing_;
  uint64_t bytes_ = 0;
  uint64_t received_ = 0;
  size_t filling_ = 0;  // the table that the next byte belongs to
};

}  // namespace posenc

#endif  // POSENC_LIB_ENGINE_UPLOAD_H_
