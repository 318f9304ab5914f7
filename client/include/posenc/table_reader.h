// A table on its way into memory that the caller owns: header first, then bytes.
//
// A table's bytes are its tensors one after the other, little-endian, row-major.
// Every byte is verified before it is handed out: chunks by offset and checksum,
// the whole by its content hash. A cut stream is resumed at its offset under the
// same table id, which the caller does not notice but for the wait.
//
// Errors, besides what the server answered: DATA_LOSS for bytes that are not
// what the server said they are or end too soon, INTERNAL for a peer that does
// not keep to the protocol, FAILED_PRECONDITION when a resumed read would get
// another table: never a silent restart. After an error the reader is spent:
// it repeats the error, and what was copied by the failed call is void.
#ifndef POSENC_TABLE_READER_H_
#define POSENC_TABLE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "posenc/connection.h"
#include "posenc/options.h"
#include "posenc/v1/table.pb.h"

namespace posenc {

class ResumingStream;

// Not thread-safe: one reader. Movable; a moved-from reader may only be destroyed
// or assigned to.
class TableReader {
 public:
  // Opens the table and waits for its header. What Client::GetTable does.
  static absl::StatusOr<TableReader> Open(std::shared_ptr<Connection> connection,
                                          const v1::GetTableRequest& request,
                                          const ClientOptions& options);

  TableReader(TableReader&&) noexcept;
  TableReader& operator=(TableReader&&) noexcept;
  ~TableReader();

  // Its tensors are contiguous, their sizes follow from shape and dtype, and
  // their sum is total_bytes: that has been checked.
  const v1::TableHeader& header() const;

  // Of the next byte.
  uint64_t offset() const { return offset_; }

  // Fills `out` with the next bytes as far as the table goes, and returns how
  // many: fewer than out.size() only at the end, 0 past it. The call that
  // delivers the last byte has verified the content hash.
  absl::StatusOr<size_t> Read(std::span<std::byte> out);

  // The rest of the table: all of it, when nothing was read before.
  // out.size() must be total_bytes - offset(), else INVALID_ARGUMENT.
  absl::Status ReadAll(std::span<std::byte> out);

  // One tensor, in any order: goes to its first byte (by a new request, when that
  // is not the next one) and fills `out`, whose size must be the tensor's.
  // NOT_FOUND for a name that the header does not have.
  absl::Status ReadTensor(absl::string_view name, std::span<std::byte> out);

  // XXH3-128 of the table, 32 lower-case hex digits, once all of it was read from
  // its first byte to its last in order (resumes do not matter); empty before,
  // and when only parts were read.
  std::string content_hash() const;

 private:
  TableReader(std::unique_ptr<ResumingStream> stream, uint64_t offset);
  void GoTo(uint64_t offset);

  std::unique_ptr<ResumingStream> stream_;
  std::span<const std::byte> pending_;  // verified, not yet copied out
  uint64_t offset_;
};

}  // namespace posenc

#endif  // POSENC_TABLE_READER_H_
