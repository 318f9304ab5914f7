#include "posenc/table_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/resuming_stream.h"
#include "client/retry.h"

namespace posenc {

absl::StatusOr<TableReader> TableReader::Open(std::shared_ptr<Connection> connection,
                                              const v1::GetTableRequest& request,
                                              const ClientOptions& options) {
  ClientOptions complete = options;
  complete.clock = CompleteClock(std::move(complete.clock));
  auto stream = std::make_unique<ResumingStream>(std::move(connection), request, complete);
  if (absl::Status status = stream->Open(); !status.ok()) return status;
  return TableReader(std::move(stream), request.read_offset());
}

TableReader::TableReader(std::unique_ptr<ResumingStream> stream, uint64_t offset)
    : stream_(std::move(stream)), offset_(offset) {}

TableReader::TableReader(TableReader&&) noexcept = default;
TableReader& TableReader::operator=(TableReader&&) noexcept = default;
TableReader::~TableReader() = default;

const v1::TableHeader& TableReader::header() const { return stream_->header(); }

std::string TableReader::content_hash() const { return stream_->content_hash(); }

absl::StatusOr<size_t> TableReader::Read(std::span<std::byte> out) {
  size_t filled = 0;
  while (filled < out.size() || offset_ == header().total_bytes()) {
    if (pending_.empty()) {
      absl::StatusOr<std::span<const std::byte>> next = stream_->Next();
      if (!next.ok()) return next.status();
      if (next->empty()) break;
      pending_ = *next;
    }
    const size_t count = std::min(pending_.size(), out.size() - filled);
    std::memcpy(out.data() + filled, pending_.data(), count);
    pending_ = pending_.subspan(count);
    filled += count;
    offset_ += count;
  }
  return filled;
}

absl::Status TableReader::ReadAll(std::span<std::byte> out) {
  const uint64_t rest = header().total_bytes() - offset_;
  if (out.size() != rest) {
    return absl::InvalidArgumentError(absl::StrCat("out: must have the size of what is left, ",
                                                   rest, " bytes, got ", out.size()));
  }
  return Read(out).status();
}

void TableReader::GoTo(uint64_t offset) {
  if (offset == offset_) return;
  pending_ = {};
  offset_ = offset;
  stream_->Seek(offset);
}

absl::Status TableReader::ReadTensor(absl::string_view name, std::span<std::byte> out) {
  for (const v1::TensorInfo& tensor : header().tensors()) {
    if (tensor.name() != name) continue;
    if (out.size() != tensor.bytes()) {
      return absl::InvalidArgumentError(absl::StrCat("out: must have the size of ", name, ", ",
                                                     tensor.bytes(), " bytes, got ", out.size()));
    }
    GoTo(tensor.offset());
    return Read(out).status();
  }
  return absl::NotFoundError(absl::StrCat("the table has no tensor \"", name, "\""));
}

}  // namespace posenc
