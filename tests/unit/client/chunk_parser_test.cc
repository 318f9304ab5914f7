// Reading a message where it lies, against protobuf's own parser: the same fields or
// the same refusal, whatever the bytes and however they are cut into slices.
#include "client/chunk_parser.h"

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"

namespace posenc {
namespace {

using Random = std::mt19937;

std::string RandomText(Random* random, size_t most) {
  std::string text((*random)() % (most + 1), '\0');
  for (char& c : text) c = static_cast<char>((*random)());
  return text;
}

// Any of the fields, small and large.
v1::GetTableResponse RandomMessage(Random* random) {
  v1::GetTableResponse message;
  const auto flip = [&] { return (*random)() % 2 == 0; };
  if (flip()) {
    v1::TableHeader* header = message.mutable_header();
    if (flip()) header->set_table_id("0123456789abcdef0123456789abcdef");
    if (flip()) header->set_total_bytes((*random)());
    if (flip()) header->mutable_spec()->mutable_rope()->set_head_dim(128);
    for (int i = static_cast<int>((*random)() % 3); i > 0; --i)
      header->add_tensors()->set_name("t");
  }
  if (flip()) message.set_offset(uint64_t{(*random)()} << ((*random)() % 33));
  if (flip()) message.set_checksum((uint64_t{(*random)()} << 32) | (*random)());
  if (flip()) message.set_content_hash(flip() ? std::string(32, 'a') : "\u00e9");
  if (flip()) message.set_data(RandomText(random, flip() ? 20 : 5000));
  return message;
}

// `bytes` in slices cut at random places, some of them empty.
grpc::ByteBuffer InSlices(const std::string& bytes, Random* random) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size();) {
    const size_t most = size_t{1} << (*random)() % 12;
    const size_t count = std::min<size_t>(bytes.size() - at, (*random)() % (most + 1));
    slices.emplace_back(bytes.data() + at, count);
    at += count;
  }
  if (slices.empty()) slices.emplace_back();
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string DataOf(const TableChunk& chunk) {
  std::string data(reinterpret_cast<const char*>(chunk.data.data()), chunk.data.size());
  for (const auto piece : chunk.more_data) {
    data.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  return data;
}

void ExpectAsProtobufReads(const std::string& bytes, Random* random, ChunkParser* parser) {
  grpc::ByteBuffer raw = InSlices(bytes, random);
  v1::GetTableResponse expected;
  const bool parses = expected.ParseFromString(bytes);
  TableChunk chunk;
  ASSERT_EQ(parser->Parse(&raw, &chunk), parses);
  if (!parses) return;
  ASSERT_EQ(chunk.header != nullptr, expected.has_header());
  if (chunk.header != nullptr) {
    EXPECT_EQ(chunk.header->SerializeAsString(), expected.header().SerializeAsString());
  }
  EXPECT_EQ(chunk.offset, expected.offset());
  EXPECT_EQ(chunk.checksum, expected.checksum());
  EXPECT_EQ(chunk.content_hash, expected.content_hash());
  EXPECT_TRUE(DataOf(chunk) == expected.data());
}

// Runs `bytes_of` with 20000 seeds.
void ForManySeeds(const std::function<std::string(Random*)>& bytes_of) {
  ChunkParser parser;  // one for all: nothing of one message may show in the next
  for (uint32_t seed = 0; seed < 20'000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    ExpectAsProtobufReads(bytes_of(&random), &random, &parser);
  }
}

TEST(ChunkParserTest, ReadsWhatProtobufWrites) {
  ForManySeeds([](Random* random) { return RandomMessage(random).SerializeAsString(); });
}

// Protobuf merges: headers field by field, of the others the last one counts.
TEST(ChunkParserTest, ReadsFieldsInAnyOrderAndTwice) {
  ForManySeeds([](Random* random) {
    std::string bytes;
    for (int i = 0; i < 3; ++i) bytes += RandomMessage(random).SerializeAsString();
    return bytes;
  });
}

TEST(ChunkParserTest, SkipsFieldsThatItDoesNotKnow) {
  ForManySeeds([](Random* random) {
    const std::string unknown[] = {
        std::string("\x30\x05", 2), std::string("\x82\x06\x03zzz", 6),
        std::string("\x1d\x01\x02\x03\x04", 5),  // number 3, as a fixed32
        std::string("\x33\x08\x01\x34", 4)};     // a group
    return RandomMessage(random).SerializeAsString() + unknown[(*random)() % 4] +
           RandomMessage(random).SerializeAsString();
  });
}

TEST(ChunkParserTest, RefusesWhatProtobufRefuses) {
  ForManySeeds([](Random* random) {
    std::string bytes = RandomMessage(random).SerializeAsString();
    for (int i = static_cast<int>((*random)() % 4); i >= 0 && !bytes.empty(); --i) {
      bytes[(*random)() % std::min<size_t>(bytes.size(), 80)] = static_cast<char>((*random)());
    }
    if ((*random)() % 2 == 0) bytes.resize((*random)() % (bytes.size() + 1));
    return bytes;
  });
}

TEST(ChunkParserTest, RefusesNoise) {
  ForManySeeds([](Random* random) { return RandomText(random, 40); });
}

TEST(ChunkParserTest, LeavesTheDataWhereItIs) {
  v1::GetTableResponse head;
  head.set_offset(1 << 20);
  head.set_checksum(7);
  const std::string data(100'000, 'x');
  const std::string tag("\x7a\xa0\x8d\x06", 4);  // field 15, 100000 bytes
  const grpc::Slice slices[] = {grpc::Slice(head.SerializeAsString() + tag),
                                grpc::Slice(data.data(), 60'000), grpc::Slice(data.data(), 40'000)};
  grpc::ByteBuffer raw(slices, 3);
  ChunkParser parser;
  TableChunk chunk;
  ASSERT_TRUE(parser.Parse(&raw, &chunk));
  EXPECT_EQ(static_cast<const void*>(chunk.data.data()), slices[1].begin());
  EXPECT_EQ(chunk.data.size(), 60'000u);
  ASSERT_EQ(chunk.more_data.size(), 1u);
  EXPECT_EQ(static_cast<const void*>(chunk.more_data[0].data()), slices[2].begin());
  EXPECT_EQ(chunk.more_data[0].size(), 40'000u);
}

}  // namespace
}  // namespace posenc
