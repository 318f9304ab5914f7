#include "server/chunk_writer.h"

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"
#include "xxhash.h"

namespace posenc::server {
namespace {

using google::protobuf::internal::WireFormatLite;
using Response = v1::GetTableResponse;

// Protobuf leaves a field that is 0 or empty out, and so do we: the bytes are
// what the generated message would serialize to.
class HeadWriter {
 public:
  explicit HeadWriter(std::string* out) : string_(out), coded_(&string_) {}

  void Fixed64(int field, uint64_t value) {
    if (value == 0) return;
    Tag(field, WireFormatLite::WIRETYPE_FIXED64);
    coded_.WriteLittleEndian64(value);
  }

  void Varint(int field, uint64_t value) {
    if (value == 0) return;
    Tag(field, WireFormatLite::WIRETYPE_VARINT);
    coded_.WriteVarint64(value);
  }

  void Bytes(int field, absl::string_view value) {
    if (value.empty()) return;
    Length(field, value.size());
    coded_.WriteRaw(value.data(), static_cast<int>(value.size()));
  }

  // Of a field whose bytes follow.
  void Length(int field, size_t size) {
    Tag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
    coded_.WriteVarint64(size);
  }

 private:
  void Tag(int field, WireFormatLite::WireType type) {
    coded_.WriteTag(WireFormatLite::MakeTag(field, type));
  }

  google::protobuf::io::StringOutputStream string_;
  google::protobuf::io::CodedOutputStream coded_;  // flushes when it goes
};

grpc::Slice Pin(const Slice& slice) {
  void* const begin = const_cast<std::byte*>(slice.bytes.data());  // gRPC only reads
  auto* const pin = new std::shared_ptr<const Page>(slice.page);
  return {begin, slice.bytes.size(),
          [](void* page) { delete static_cast<std::shared_ptr<const Page>*>(page); }, pin};
}

}  // namespace

ChunkWriter::ChunkWriter(const v1::TableHeader& header, uint64_t offset,
                         ContentHashes* content_hashes)
    : header_(header.SerializeAsString()),
      offset_(offset),
      total_bytes_(header.total_bytes()),
      content_hashes_(content_hashes) {
  if (offset != 0) return;
  if (content_hashes_ != nullptr) content_hash_ = content_hashes_->Find(header_);
  if (content_hash_.has_value()) return;
  hashing_.emplace();
  key_ = header_;
}

// If it is known: of a slice that is a whole page.
std::optional<uint64_t> ChunkWriter::ChecksumOf(const Slice& slice) {
  if (slice.page == nullptr || slice.bytes.size() != slice.page->bytes()) return std::nullopt;
  return slice.page->checksum();
}

// The checksum of a slice, whose bytes are read at most once, for both hashes.
uint64_t ChunkWriter::HashData(const Slice& slice) {
  const std::optional<uint64_t> known = ChecksumOf(slice);
  Xxh3 checksum;
  if (known.has_value()) {
    if (hashing_.has_value()) hashing_->Update(slice.bytes);
    return *known;
  }
  if (hashing_.has_value()) {
    Xxh3::UpdateBoth(slice.bytes, &checksum, &*hashing_);
  } else {
    checksum.Update(slice.bytes);
  }
  const bool is_page = slice.page != nullptr && slice.bytes.size() == slice.page->bytes();
  if (is_page) slice.page->KeepChecksum(checksum.Digest64());
  return checksum.Digest64();
}

// Of the whole table, after its last byte; empty if it was not read from its first.
std::string ChunkWriter::ContentHash() {
  if (hashing_.has_value()) {
    content_hash_ = hashing_->Hex128();
    hashing_.reset();
    if (content_hashes_ != nullptr) content_hashes_->Keep(key_, *content_hash_);
  }
  return content_hash_.value_or("");
}

grpc::ByteBuffer ChunkWriter::Frame(const Slice& slice) {
  const uint64_t offset = offset_;
  offset_ += slice.bytes.size();
  const uint64_t checksum = HashData(slice);

  std::string head;
  {
    HeadWriter write(&head);
    write.Bytes(Response::kHeaderFieldNumber, header_);
    write.Varint(Response::kOffsetFieldNumber, offset);
    write.Fixed64(Response::kChecksumFieldNumber, checksum);
    if (done()) write.Bytes(Response::kContentHashFieldNumber, ContentHash());
    if (!slice.bytes.empty()) write.Length(Response::kDataFieldNumber, slice.bytes.size());
  }
  header_.clear();

  const grpc::Slice parts[] = {grpc::Slice(head), slice.bytes.empty() ? grpc::Slice() : Pin(slice)};
  return {parts, slice.bytes.empty() ? size_t{1} : size_t{2}};
}

}  // namespace posenc::server
