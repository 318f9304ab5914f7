#include "client/cli/array_file.h"

#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/numeric/dtype.h"
#include "rapidjson/document.h"

namespace posenc::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

constexpr absl::string_view kNpyMagic("\x93NUMPY", 6);

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("is malformed: ", what));
}

size_t ElementBytes(absl::string_view dtype) {
  if (dtype == "F64") return 8;
  if (dtype == "F32") return 4;
  return dtype == "F16" || dtype == "BF16" ? 2 : 0;
}

// That shape and dtype say as many bytes as there are.
absl::StatusOr<ArrayInfo> Checked(ArrayInfo array) {
  auto bytes = static_cast<int64_t>(ElementBytes(array.dtype));
  if (bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("must hold F32, F64, F16 or BF16, got ", absl::CHexEscape(array.dtype)));
  }
  for (const int64_t length : array.shape) {
    if (length < 0 || __builtin_mul_overflow(bytes, length, &bytes)) {
      return Malformed("its shape is impossible");
    }
  }
  if (static_cast<uint64_t>(bytes) == array.bytes) return array;
  return Malformed(absl::StrCat("its shape needs ", bytes, " bytes, there are ", array.bytes));
}

template <typename T>
T Load(absl::string_view bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

// The text between `open` and `close` that follows 'key': in a Python dictionary.
absl::StatusOr<absl::string_view> After(absl::string_view dictionary, absl::string_view key,
                                        char open, char close) {
  const size_t at = dictionary.find(absl::StrCat("'", key, "':"));
  const size_t begin = at == dictionary.npos ? at : dictionary.find(open, at + key.size() + 3);
  const size_t end = begin == dictionary.npos ? begin : dictionary.find(close, begin + 1);
  if (end == dictionary.npos) return Malformed(absl::StrCat("its header has no ", key));
  return dictionary.substr(begin + 1, end - begin - 1);
}

absl::StatusOr<std::vector<int64_t>> Tuple(absl::string_view text) {
  std::vector<int64_t> lengths;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const absl::string_view number = absl::StripAsciiWhitespace(part);
    if (number.empty()) continue;  // (5,)
    if (!absl::SimpleAtoi(number, &lengths.emplace_back())) return Malformed("its shape");
  }
  return lengths;
}

std::string SafetensorsDType(absl::string_view npy) {
  if (npy == "<f4") return "F32";
  if (npy == "<f8") return "F64";
  return npy == "<f2" ? "F16" : std::string(npy);
}

// `data_at` is where the data section begins.
absl::StatusOr<ArrayInfo> FromEntry(const rapidjson::Value& entry, uint64_t data_at,
                                    uint64_t file_bytes) {
  const auto member = [&](const char* name) { return entry.FindMember(name); };
  if (!entry.IsObject() || member("dtype") == entry.MemberEnd() ||
      !member("dtype")->value.IsString() || member("shape") == entry.MemberEnd() ||
      !member("shape")->value.IsArray() || member("data_offsets") == entry.MemberEnd() ||
      !member("data_offsets")->value.IsArray() || member("data_offsets")->value.Size() != 2) {
    return Malformed("a tensor has no dtype, shape or data_offsets");
  }
  ArrayInfo array;
  array.dtype = member("dtype")->value.GetString();
  for (const auto& length : member("shape")->value.GetArray()) {
    if (!length.IsInt64()) return Malformed("its shape");
    array.shape.push_back(length.GetInt64());
  }
  const auto& offsets = member("data_offsets")->value;
  if (!offsets[0].IsUint64() || !offsets[1].IsUint64() ||
      offsets[0].GetUint64() > offsets[1].GetUint64() ||
      offsets[1].GetUint64() > file_bytes - data_at) {
    return Malformed("its data_offsets leave the file");
  }
  array.offset = data_at + offsets[0].GetUint64();
  array.bytes = offsets[1].GetUint64() - offsets[0].GetUint64();
  return Checked(std::move(array));
}

}  // namespace

absl::StatusOr<ArrayInfo> ParseNpy(absl::string_view start, uint64_t file_bytes) {
  if (!absl::StartsWith(start, kNpyMagic) || start.size() < 12) {
    return Malformed("it is no .npy file");
  }
  const bool version_1 = start[6] == 1;
  const size_t header_at = version_1 ? 10 : 12;
  const size_t header_bytes =
      version_1 ? Load<uint16_t>(start.substr(8)) : Load<uint32_t>(start.substr(8));
  if (header_bytes > start.size() - header_at) return Malformed("its header is cut");
  const absl::string_view header = start.substr(header_at, header_bytes);
  if (absl::StrContains(header, "'fortran_order': True")) {
    return absl::InvalidArgumentError("is in Fortran order; save it in C order");
  }
  const absl::StatusOr<absl::string_view> dtype = After(header, "descr", '\'', '\'');
  if (!dtype.ok()) return dtype.status();
  const absl::StatusOr<absl::string_view> shape = After(header, "shape", '(', ')');
  if (!shape.ok()) return shape.status();
  absl::StatusOr<std::vector<int64_t>> lengths = Tuple(*shape);
  if (!lengths.ok()) return lengths.status();
  return Checked({.dtype = SafetensorsDType(*dtype),
                  .shape = *std::move(lengths),
                  .offset = header_at + header_bytes,
                  .bytes = file_bytes - header_at - header_bytes});
}

absl::StatusOr<ArrayInfo> ParseSafetensors(absl::string_view start, uint64_t file_bytes,
                                           absl::string_view tensor) {
  constexpr size_t kLengthBytes = 8;
  if (start.size() < kLengthBytes) return Malformed("it is no .safetensors file");
  const auto header_bytes = Load<uint64_t>(start);
  if (header_bytes > start.size() - kLengthBytes) return Malformed("its header is cut");
  rapidjson::Document header;
  header.Parse<rapidjson::kParseIterativeFlag>(start.data() + kLengthBytes, header_bytes);
  if (header.HasParseError() || !header.IsObject()) return Malformed("its header is no JSON");
  const uint64_t data_at = kLengthBytes + header_bytes;
  const rapidjson::Value* found = nullptr;
  std::string names;
  for (const auto& entry : header.GetObject()) {
    const absl::string_view name(entry.name.GetString(), entry.name.GetStringLength());
    if (name == "__metadata__") continue;
    if (name == tensor) return FromEntry(entry.value, data_at, file_bytes);
    absl::StrAppend(&names, names.empty() ? "" : ", ", absl::CHexEscape(name));
    found = found == nullptr ? &entry.value : &header;
  }
  if (tensor.empty() && found != nullptr && found != &header) {
    return FromEntry(*found, data_at, file_bytes);
  }
  return absl::InvalidArgumentError(
      tensor.empty() ? absl::StrCat("holds several tensors, name one with FILE:TENSOR: ", names)
                     : absl::StrCat("has no tensor ", tensor, ", but ", names));
}

std::string ToFloat32(absl::string_view dtype, std::string elements) {
  if (dtype == "F32") return elements;
  const size_t width = ElementBytes(dtype);
  std::string floats(elements.size() / width * sizeof(float), '\0');
  for (size_t i = 0; i < elements.size() / width; ++i) {
    const absl::string_view bytes = absl::string_view(elements).substr(i * width, width);
    const float value = dtype == "F64"   ? static_cast<float>(Load<double>(bytes))
                        : dtype == "F16" ? F16ToFloat(Load<uint16_t>(bytes))
                                         : Bf16ToFloat(Load<uint16_t>(bytes));
    std::memcpy(floats.data() + i * sizeof(float), &value, sizeof(float));
  }
  return floats;
}

}  // namespace posenc::cli
