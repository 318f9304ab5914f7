#include "client/chunk_check.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace posenc {
namespace {

// Bytes of one element; 0 for a dtype that this client does not know.
uint64_t ElementBytes(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_F64:
      return 8;
    case v1::DTYPE_F32:
    case v1::DTYPE_I32:
      return 4;
    case v1::DTYPE_F16:
    case v1::DTYPE_BF16:
      return 2;
    case v1::DTYPE_BOOL:
      return 1;
    default:
      return 0;
  }
}

bool IsTableId(const std::string& id) {
  return id.size() == 32 && std::all_of(id.begin(), id.end(), [](char c) {
           return absl::ascii_isdigit(static_cast<unsigned char>(c)) || (c >= 'a' && c <= 'f');
         });
}

// Whether shape and dtype give the bytes that `tensor` says, below 2^63.
bool SizeHolds(const v1::TensorInfo& tensor) {
  auto bytes = static_cast<int64_t>(ElementBytes(tensor.dtype()));
  if (bytes == 0) return false;
  for (const int64_t dim : tensor.shape()) {
    if (dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes)) return false;
  }
  return static_cast<uint64_t>(bytes) == tensor.bytes();
}

}  // namespace

absl::Status CheckHeader(const v1::TableHeader& header) {
  if (!IsTableId(header.table_id())) {
    return absl::InternalError(absl::StrCat("malformed header: table_id \"",
                                            absl::CHexEscape(header.table_id()),
                                            "\" is not 32 lower-case hex digits"));
  }
  uint64_t offset = 0;
  for (const v1::TensorInfo& tensor : header.tensors()) {
    if (tensor.offset() != offset || !SizeHolds(tensor) ||
        __builtin_add_overflow(offset, tensor.bytes(), &offset)) {
      return absl::InternalError(
          absl::StrCat("malformed header: offset, shape, dtype and bytes of tensor \"",
                       absl::CHexEscape(tensor.name()),
                       "\" contradict each other: ", tensor.ShortDebugString()));
    }
  }
  if (offset != header.total_bytes()) {
    return absl::InternalError(absl::StrCat("malformed header: the tensors have ", offset,
                                            " bytes, total_bytes is ", header.total_bytes()));
  }
  return absl::OkStatus();
}

absl::Status CheckSameTable(const v1::TableHeader& first, const v1::TableHeader& resumed) {
  if (first.table_id() == resumed.table_id() && first.total_bytes() == resumed.total_bytes()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the table changed while it was read: ", first.table_id(), " with ", first.total_bytes(),
      " bytes became ", absl::CHexEscape(resumed.table_id()), " with ", resumed.total_bytes()));
}

absl::Status CheckChunk(const TableChunk& chunk, uint64_t offset, uint64_t total_bytes) {
  if (chunk.offset != offset) {
    return absl::InternalError(absl::StrCat("malformed stream: a message at offset ", chunk.offset,
                                            " follows byte ", offset));
  }
  const size_t bytes = DataBytes(chunk);
  if (bytes > total_bytes - offset) {
    return absl::InternalError(absl::StrCat("malformed stream: ", bytes, " bytes at offset ",
                                            offset, " of a table of ", total_bytes));
  }
  return absl::OkStatus();
}

absl::Status CheckChecksum(const TableChunk& chunk, uint64_t checksum) {
  if (!chunk.checksum.has_value() || checksum == *chunk.checksum) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrFormat("checksum of the %d bytes at offset %d is %016x, the server said %016x",
                      DataBytes(chunk), chunk.offset, checksum, *chunk.checksum));
}

size_t DataBytes(const TableChunk& chunk) {
  size_t bytes = chunk.data.size();
  for (const std::span<const std::byte> piece : chunk.more_data) bytes += piece.size();
  return bytes;
}

}  // namespace posenc
