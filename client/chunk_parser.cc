#include "client/chunk_parser.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/proto_buffer_reader.h"

namespace posenc {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using Response = v1::GetTableResponse;

constexpr uint32_t Tag(int field, WireFormatLite::WireType type) {
  return (static_cast<uint32_t>(field) << 3) | static_cast<uint32_t>(type);
}
constexpr uint32_t kHeader =
    Tag(Response::kHeaderFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
constexpr uint32_t kOffset = Tag(Response::kOffsetFieldNumber, WireFormatLite::WIRETYPE_VARINT);
constexpr uint32_t kChecksum =
    Tag(Response::kChecksumFieldNumber, WireFormatLite::WIRETYPE_FIXED64);
constexpr uint32_t kContentHash =
    Tag(Response::kContentHashFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
constexpr uint32_t kData =
    Tag(Response::kDataFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);

bool ReadHeader(CodedInputStream* in, v1::TableHeader* header) {
  int size = 0;
  if (!in->ReadVarintSizeAsInt(&size)) return false;
  const CodedInputStream::Limit limit = in->PushLimit(size);
  const bool whole =
      header->MergeFromCodedStream(in) && in->ConsumedEntireMessage() && in->BytesUntilLimit() == 0;
  in->PopLimit(limit);
  return whole;
}

// Of plain characters: whether others are UTF-8 is protobuf's to say.
bool ReadText(CodedInputStream* in, std::string* text) {
  int size = 0;
  return in->ReadVarintSizeAsInt(&size) && in->ReadString(text, size) &&
         std::all_of(text->begin(), text->end(),
                     [](char c) { return absl::ascii_isascii(static_cast<unsigned char>(c)); });
}

// The bytes up to the end, which must be `size`, where they lie.
bool ViewData(CodedInputStream* in, std::vector<std::span<const std::byte>>* pieces) {
  int size = 0;
  if (!in->ReadVarintSizeAsInt(&size)) return false;
  const void* data = nullptr;
  for (int count = 0; size > 0; size -= count) {
    if (!in->GetDirectBufferPointer(&data, &count) || count > size || !in->Skip(count))
      return false;
    pieces->push_back({static_cast<const std::byte*>(data), static_cast<size_t>(count)});
  }
  return !in->GetDirectBufferPointer(&data, &size);
}

}  // namespace

bool ChunkParser::Parse(grpc::ByteBuffer* raw, TableChunk* chunk) {
  return ParseInPlace(raw, chunk) || ParseByProtobuf(raw, chunk);
}

// Every field at most once, in the order of their numbers, data reaching to the
// end: what protobuf writes, and a sender that appends its data uncopied. False for
// all else, wrong or not.
bool ChunkParser::ParseInPlace(grpc::ByteBuffer* raw, TableChunk* chunk) {
  grpc::ProtoBufferReader reader(raw);
  CodedInputStream in(&reader);
  header_.Clear();
  pieces_.clear();
  *chunk = {};
  uint64_t checksum = 0;
  uint32_t last = 0;
  while (const uint32_t tag = in.ReadTag()) {
    if (tag <= last) return false;
    last = tag;
    switch (tag) {
      case kHeader:
        if (!ReadHeader(&in, &header_)) return false;
        chunk->header = &header_;
        break;
      case kOffset:
        if (!in.ReadVarint64(&chunk->offset)) return false;
        break;
      case kChecksum:
        if (!in.ReadLittleEndian64(&checksum)) return false;
        break;
      case kContentHash:
        if (!ReadText(&in, &content_hash_)) return false;
        chunk->content_hash = content_hash_;
        break;
      case kData:
        if (!ViewData(&in, &pieces_)) return false;
        break;
      default:
        return false;
    }
  }
  if (!in.ConsumedEntireMessage()) return false;
  chunk->checksum = checksum;
  if (pieces_.empty()) return true;
  chunk->data = pieces_.front();
  chunk->more_data = std::span(pieces_).subspan(1);
  return true;
}

bool ChunkParser::ParseByProtobuf(grpc::ByteBuffer* raw, TableChunk* chunk) {
  grpc::ProtoBufferReader reader(raw);
  if (!message_.ParseFromZeroCopyStream(&reader)) return false;
  *chunk = {};
  if (message_.has_header()) chunk->header = &message_.header();
  chunk->offset = message_.offset();
  chunk->checksum = message_.checksum();
  chunk->content_hash = message_.content_hash();
  chunk->data = std::as_bytes(std::span<const char>(message_.data()));
  return true;
}

}  // namespace posenc
