#include "tests/support/golden.h"

#include <openssl/sha.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "lib/families/store.h"
#include "lib/numeric/dtype.h"

namespace posenc::golden {
namespace {

constexpr int kMismatchesShown = 5;

std::string PathOf(absl::string_view file) {
  return absl::StrCat(POSENC_TEST_DATA "/golden/", file);
}

size_t BytesOf(v1::DType dtype) { return static_cast<size_t>(ElementBytes(dtype)); }

// Neighbouring floats of one dtype are neighbouring integers; both zeros are 0.
int64_t Ordinal(uint64_t bits, v1::DType dtype) {
  const uint64_t sign = uint64_t{1} << (8 * BytesOf(dtype) - 1);
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

// What a line allows between its value and ours.
struct Tolerance {
  enum Kind { kExact, kUlp, kAbs };
  Kind kind = kExact;
  double limit = 0;
  bool zeros_have_signs = true;

  bool Allows(uint64_t want, uint64_t got, v1::DType dtype) const {
    if (want == got) return true;
    const double want_number = NumberOf(want, dtype);
    const double got_number = NumberOf(got, dtype);
    switch (kind) {
      case kExact:
        return !zeros_have_signs && want_number == 0 && got_number == 0;
      case kUlp:
        return std::abs(static_cast<double>(Ordinal(want, dtype) - Ordinal(got, dtype))) <= limit;
      case kAbs:
        return std::abs(want_number - got_number) <= limit;
    }
    return false;
  }
};

Tolerance ToleranceOf(const Json& line) {
  Tolerance tolerance;
  const Json& json = Get(line, "tolerance");
  if (json.IsObject() && json.HasMember("ulp")) {
    tolerance.kind = Tolerance::kUlp;
    tolerance.limit = json["ulp"].GetDouble();
  } else if (json.IsObject()) {
    tolerance.kind = Tolerance::kAbs;
    tolerance.limit = Get(json, "abs").GetDouble();
  } else {
    EXPECT_STREQ(json.GetString(), "exact");
  }
  if (Has(line, "notes") && absl::StrContains(line["notes"].GetString(), "zeros as numbers")) {
    tolerance.zeros_have_signs = false;
  }
  return tolerance;
}

size_t SizeOf(const Json& shape) {
  size_t size = 1;
  for (const Json& dim : shape.GetArray()) size *= dim.GetUint64();
  return size;
}

size_t FlatIndex(const Json& index, const Json& shape) {
  size_t flat = 0;
  for (rapidjson::SizeType i = 0; i < index.Size(); ++i) {
    flat = flat * shape[i].GetUint64() + index[i].GetUint64();
  }
  return flat;
}

uint64_t BitsOfInt(const Json& value) {
  return std::bit_cast<uint32_t>(static_cast<int32_t>(value.GetInt()));
}

// Index and bits of every value that the line spells out.
std::vector<std::pair<size_t, uint64_t>> ExpectedBits(const Json& line) {
  std::vector<std::pair<size_t, uint64_t>> expected;
  if (line.HasMember("values_hex")) {
    for (const Json& hex : line["values_hex"].GetArray()) {
      expected.emplace_back(expected.size(), BitsOfHex(hex.GetString()));
    }
  } else if (line.HasMember("values")) {
    for (const Json& value : line["values"].GetArray()) {
      expected.emplace_back(expected.size(), BitsOfInt(value));
    }
  } else {
    for (const Json& sample : Get(line, "samples").GetArray()) {
      expected.emplace_back(FlatIndex(sample["index"], line["shape"]),
                            sample.HasMember("hex") ? BitsOfHex(sample["hex"].GetString())
                                                    : BitsOfInt(sample["value"]));
    }
  }
  return expected;
}

std::string Sha256(std::span<const std::byte> bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  std::string hex;
  for (const unsigned char byte : digest) absl::StrAppend(&hex, absl::Hex(byte, absl::kZeroPad2));
  return hex;
}

std::vector<std::byte> Pack(std::span<const uint64_t> bits, v1::DType dtype, bool normalize_zeros) {
  const size_t width = BytesOf(dtype);
  std::vector<std::byte> bytes(bits.size() * width);
  for (size_t i = 0; i < bits.size(); ++i) {
    const uint64_t value = normalize_zeros && NumberOf(bits[i], dtype) == 0 ? 0 : bits[i];
    std::memcpy(bytes.data() + i * width, &value, width);  // little-endian
  }
  return bytes;
}

// The hash of the whole table, where the line has one and says that it is comparable.
void ExpectHash(const Json& line, v1::DType dtype, std::span<const uint64_t> bits,
                const Tolerance& tolerance) {
  if (tolerance.kind != Tolerance::kExact) return;
  if (line.HasMember("sha256_zero_normalized")) {
    EXPECT_EQ(Sha256(Pack(bits, dtype, /*normalize_zeros=*/true)),
              line["sha256_zero_normalized"].GetString());
  } else if (line.HasMember("sha256") && tolerance.zeros_have_signs) {
    EXPECT_EQ(Sha256(Pack(bits, dtype, /*normalize_zeros=*/false)), line["sha256"].GetString());
  }
}

}  // namespace

std::vector<rapidjson::Document> ReadLines(absl::string_view file) {
  std::vector<rapidjson::Document> lines;
  std::ifstream in(PathOf(file));
  EXPECT_TRUE(in.is_open()) << PathOf(file);
  for (std::string text; std::getline(in, text);) {
    rapidjson::Document& line = lines.emplace_back();
    // Full precision: the default reader may be an ulp off.
    line.Parse<rapidjson::kParseFullPrecisionFlag>(text.c_str());
    EXPECT_TRUE(line.IsObject()) << file << " line " << lines.size();
  }
  EXPECT_FALSE(lines.empty()) << file;
  return lines;
}

std::string Id(const Json& line) { return Get(line, "id").GetString(); }

const Json& Get(const Json& object, const char* name) {
  static const Json kNull;
  const auto member = object.FindMember(name);
  if (member != object.MemberEnd()) return member->value;
  ADD_FAILURE() << "no member " << name;
  return kNull;
}

bool Has(const Json& object, const char* name) {
  return object.HasMember(name) && !object[name].IsNull();
}

uint64_t BitsOfHex(absl::string_view hex) {
  uint64_t bits = 0;
  const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), bits, 16);
  EXPECT_TRUE(error == std::errc() && end == hex.data() + hex.size()) << hex;
  return bits;
}

std::vector<uint64_t> BitsOfHexList(const Json& list) {
  std::vector<uint64_t> bits;
  for (const Json& hex : list.GetArray()) bits.push_back(BitsOfHex(hex.GetString()));
  return bits;
}

v1::DType DTypeOf(absl::string_view name) {
  if (name == "f32") return v1::DTYPE_F32;
  if (name == "f64") return v1::DTYPE_F64;
  if (name == "f16") return v1::DTYPE_F16;
  if (name == "bf16") return v1::DTYPE_BF16;
  if (name == "i32") return v1::DTYPE_I32;
  ADD_FAILURE() << "unknown dtype " << name;
  return v1::DTYPE_UNSPECIFIED;
}

uint64_t BitsAt(std::span<const std::byte> bytes, v1::DType dtype, size_t index) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + index * BytesOf(dtype), BytesOf(dtype));
  return bits;
}

double NumberOf(uint64_t bits, v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_F64:
      return std::bit_cast<double>(bits);
    case v1::DTYPE_F32:
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case v1::DTYPE_F16:
      return static_cast<double>(F16ToFloat(static_cast<uint16_t>(bits)));
    case v1::DTYPE_BF16:
      return static_cast<double>(Bf16ToFloat(static_cast<uint16_t>(bits)));
    default:
      return static_cast<double>(std::bit_cast<int32_t>(static_cast<uint32_t>(bits)));
  }
}

void ExpectBits(const Json& line, v1::DType dtype, std::span<const uint64_t> bits) {
  SCOPED_TRACE(Id(line));
  ASSERT_EQ(dtype, DTypeOf(Get(line, "dtype").GetString()));
  ASSERT_EQ(bits.size(), SizeOf(Get(line, "shape")));
  const Tolerance tolerance = ToleranceOf(line);
  const auto expected = ExpectedBits(line);
  ASSERT_FALSE(expected.empty() && !bits.empty());
  int mismatches = 0;
  for (const auto& [index, want] : expected) {
    ASSERT_LT(index, bits.size());
    if (tolerance.Allows(want, bits[index], dtype)) continue;
    if (++mismatches > kMismatchesShown) continue;
    ADD_FAILURE() << absl::StrFormat("element %d: want %x (%.9g), got %x (%.9g)", index, want,
                                     NumberOf(want, dtype), bits[index],
                                     NumberOf(bits[index], dtype));
  }
  EXPECT_LE(mismatches, kMismatchesShown) << mismatches << " of " << expected.size() << " differ";
  ExpectHash(line, dtype, bits, tolerance);
}

void ExpectValues(const Json& line, v1::DType dtype, std::span<const std::byte> bytes) {
  std::vector<uint64_t> bits(bytes.size() / BytesOf(dtype));
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = BitsAt(bytes, dtype, i);
  ExpectBits(line, dtype, bits);
}

void CheckLines(absl::string_view file, const std::map<std::string, CheckLine>& checks) {
  NotCovered skipped;
  for (const rapidjson::Document& line : ReadLines(file)) {
    SCOPED_TRACE(Id(line));
    const std::string encoding = Get(line, "encoding").GetString();
    const auto check = checks.find(encoding);
    if (check == checks.end()) {
      skipped[Id(line)] = absl::StrCat("encoding ", encoding);
    } else {
      check->second(line, Get(line, "params"));
    }
  }
  ExpectNotYetCovered(file, skipped);
}

void ExpectNotYetCovered(absl::string_view file, const NotCovered& skipped) {
  NotCovered listed;
  std::ifstream in(PathOf("not_yet_covered.txt"));
  ASSERT_TRUE(in.is_open());
  for (std::string text; std::getline(in, text);) {
    const std::vector<std::string> words = absl::StrSplit(text, absl::MaxSplits(' ', 2));
    if (words.front() != file) continue;
    ASSERT_EQ(words.size(), 3u) << "want \"<file> <id> <reason>\", got: " << text;
    EXPECT_TRUE(listed.emplace(words[1], words[2]).second) << "listed twice: " << words[1];
  }
  for (const auto& [id, reason] : skipped) {
    EXPECT_EQ(listed[id], reason) << "add to the list: " << file << ' ' << id << ' ' << reason;
  }
  for (const auto& [id, reason] : listed) {
    EXPECT_TRUE(skipped.contains(id)) << "covered now, take from the list: " << id;
  }
}

}  // namespace posenc::golden
