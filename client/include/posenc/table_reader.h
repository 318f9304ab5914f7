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
//
// With ClientOptions::share_memory a table may come as memory that the server has
// sealed, checked for that and for its size: reads copy from it, and nothing is
// left to verify or to fail.
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

enum class Transport { kStream, kSharedMemory };

// A tensor where it lies, little-endian, row-major. It may be kept and passed on:
// the bytes stay mapped as long as a copy of `owner` lives.
struct TensorView {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

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

  // How the bytes come.
  Transport transport() const;

  // Why they are streamed: UNIMPLEMENTED when share_memory is off or the target is
  // not unix:PATH, else what went wrong. OK when they are not streamed.
  const absl::Status& why_streamed() const { return why_streamed_; }

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

  // One tensor where it lies in shared memory: no copy. NOT_FOUND as above,
  // FAILED_PRECONDITION when the table is streamed.
  absl::StatusOr<TensorView> ViewTensor(absl::string_view name) const;

  // XXH3-128 of the table, 32 lower-case hex digits, once all of it was read from
  // its first byte to its last in order (resumes do not matter); empty before,
  // and when only parts were read. Of shared memory always, as the server says it.
  std::string content_hash() const;

 private:
  TableReader(std::unique_ptr<ResumingStream> stream, absl::Status why_streamed, uint64_t offset);
  TableReader(SharedTable shared, uint64_t offset);

  absl::StatusOr<size_t> ReadSome(std::span<std::byte> out);
  absl::StatusOr<const v1::TensorInfo*> FindTensor(absl::string_view name) const;
  void GoTo(uint64_t offset);

  // Exactly one is set.
  std::unique_ptr<ResumingStream> stream_;
  std::unique_ptr<const SharedTable> shared_;

  absl::Status why_streamed_;
  uint64_t offset_;
};

}  // namespace posenc

#endif  // POSENC_TABLE_READER_H_
