#include "posenc/table_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/chunk_check.h"
#include "client/resuming_stream.h"
#include "client/retry.h"

namespace posenc {

namespace {

// Whether a refusal to share a table would be GetTable's as well.
bool IsAboutTheRequest(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsOutOfRange(status) ||
         absl::IsFailedPrecondition(status);
}

// What TableReader relies on. None of the errors is about the request.
absl::Status CheckShared(const SharedTable& shared, const v1::GetTableRequest& request) {
  if (absl::Status status = CheckHeader(shared.header); !status.ok()) return status;
  const bool is_other =
      !request.if_table_id().empty() && request.if_table_id() != shared.header.table_id();
  if (is_other || shared.bytes.size() != shared.header.total_bytes() ||
      request.read_offset() > shared.bytes.size()) {
    return absl::InternalError("shared memory: the header is of another table");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TableReader> TableReader::Open(std::shared_ptr<Connection> connection,
                                              const v1::GetTableRequest& request,
                                              const ClientOptions& options) {
  ClientOptions complete = options;
  complete.clock = CompleteClock(std::move(complete.clock));
  absl::StatusOr<SharedTable> shared =
      connection->ShareTable(request, CallContext{.progress_timeout = complete.progress_timeout});
  if (IsAboutTheRequest(shared.status())) return shared.status();
  absl::Status why_streamed = shared.ok() ? CheckShared(*shared, request) : shared.status();
  if (why_streamed.ok()) return TableReader(*std::move(shared), request.read_offset());

  auto stream = std::make_unique<ResumingStream>(std::move(connection), request, complete);
  if (absl::Status status = stream->Open(); !status.ok()) return status;
  return TableReader(std::move(stream), std::move(why_streamed), request.read_offset());
}

TableReader::TableReader(std::unique_ptr<ResumingStream> stream, absl::Status why_streamed,
                         uint64_t offset)
    : stream_(std::move(stream)), why_streamed_(std::move(why_streamed)), offset_(offset) {}

TableReader::TableReader(SharedTable shared, uint64_t offset)
    : shared_(std::make_unique<const SharedTable>(std::move(shared))), offset_(offset) {}

TableReader::TableReader(TableReader&&) noexcept = default;
TableReader& TableReader::operator=(TableReader&&) noexcept = default;
TableReader::~TableReader() = default;

const v1::TableHeader& TableReader::header() const {
  return shared_ != nullptr ? shared_->header : stream_->header();
}

Transport TableReader::transport() const {
  return shared_ != nullptr ? Transport::kSharedMemory : Transport::kStream;
}

std::string TableReader::content_hash() const {
  return shared_ != nullptr ? shared_->content_hash : stream_->content_hash();
}

// As ResumingStream::Read.
absl::StatusOr<size_t> TableReader::ReadSome(std::span<std::byte> out) {
  if (stream_ != nullptr) return stream_->Read(out);
  const size_t count = std::min(out.size(), shared_->bytes.size() - offset_);
  std::copy_n(shared_->bytes.data() + offset_, count, out.data());
  return count;
}

absl::StatusOr<size_t> TableReader::Read(std::span<std::byte> out) {
  size_t filled = 0;
  while (filled < out.size() || offset_ == header().total_bytes()) {
    const absl::StatusOr<size_t> count = ReadSome(out.subspan(filled));
    if (!count.ok()) return count.status();
    if (*count == 0) break;
    filled += *count;
    offset_ += *count;
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
  offset_ = offset;
  if (stream_ != nullptr) stream_->Seek(offset);
}

absl::StatusOr<const v1::TensorInfo*> TableReader::FindTensor(absl::string_view name) const {
  for (const v1::TensorInfo& tensor : header().tensors()) {
    if (tensor.name() == name) return &tensor;
  }
  return absl::NotFoundError(absl::StrCat("the table has no tensor \"", name, "\""));
}

absl::Status TableReader::ReadTensor(absl::string_view name, std::span<std::byte> out) {
  const absl::StatusOr<const v1::TensorInfo*> tensor = FindTensor(name);
  if (!tensor.ok()) return tensor.status();
  if (out.size() != (*tensor)->bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("out: must have the size of ", name, ", ",
                                                   (*tensor)->bytes(), " bytes, got ", out.size()));
  }
  GoTo((*tensor)->offset());
  return Read(out).status();
}

absl::StatusOr<TensorView> TableReader::ViewTensor(absl::string_view name) const {
  if (shared_ == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the table is streamed, a view needs shared memory: ", why_streamed_.message()));
  }
  const absl::StatusOr<const v1::TensorInfo*> tensor = FindTensor(name);
  if (!tensor.ok()) return tensor.status();
  return TensorView{shared_->bytes.subspan((*tensor)->offset(), (*tensor)->bytes()),
                    shared_->owner};
}

}  // namespace posenc
