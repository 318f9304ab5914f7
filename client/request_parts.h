// A request whose tables of numbers are too large for one message, as the messages of
// GetTableFromUpload: the request without the numbers, then the numbers.
#ifndef POSENC_CLIENT_REQUEST_PARTS_H_
#define POSENC_CLIENT_REQUEST_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "posenc/v1/table.pb.h"

namespace posenc {

// Below the 4 MiB that a server takes unless it is told otherwise.
inline constexpr size_t kMaxRequestMessageBytes = size_t{3} << 20;
inline constexpr size_t kUploadMessageBytes = size_t{1} << 20;

// Not thread-safe.
class RequestParts {
 public:
  // Copies the request and its tables.
  explicit RequestParts(const v1::GetTableRequest& request);

  bool has_tables() const { return !tables_.empty(); }

  // The next message, with its checksum; nullopt after the last.
  std::optional<v1::GetTableFromUploadRequest> Next();

 private:
  std::optional<v1::GetTableRequest> request_;  // until it was handed out
  std::vector<std::string> tables_;             // little-endian float32, in field order
  size_t table_ = 0;                            // the one that is cut
  size_t begin_ = 0;                            // of the next piece of it
  uint64_t offset_ = 0;                         // of that piece in the upload
};

}  // namespace posenc

#endif  // POSENC_CLIENT_REQUEST_PARTS_H_
