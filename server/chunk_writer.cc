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

ChunkWriter::ChunkWriter(const v1::TableHeader& header, uint64_t offset)
    : header_(header.SerializeAsString()), offset_(offset), total_bytes_(header.total_bytes()) {
  if (offset == 0) content_hash_.emplace();
}

grpc::ByteBuffer ChunkWriter::Frame(const Slice& slice) {
  const uint64_t offset = offset_;
  offset_ += slice.bytes.size();
  std::string content_hash;
  if (content_hash_.has_value()) {
    content_hash_->Update(slice.bytes);
    if (done()) content_hash = content_hash_->Hex();
  }

  std::string head;
  {
    HeadWriter write(&head);
    write.Bytes(Response::kHeaderFieldNumber, header_);
    write.Varint(Response::kOffsetFieldNumber, offset);
    write.Fixed64(Response::kChecksumFieldNumber,
                  XXH3_64bits(slice.bytes.data(), slice.bytes.size()));
    write.Bytes(Response::kContentHashFieldNumber, content_hash);
    if (!slice.bytes.empty()) write.Length(Response::kDataFieldNumber, slice.bytes.size());
  }
  header_.clear();

  const grpc::Slice parts[] = {grpc::Slice(head), slice.bytes.empty() ? grpc::Slice() : Pin(slice)};
  return {parts, slice.bytes.empty() ? size_t{1} : size_t{2}};
}

}  // namespace posenc::server
