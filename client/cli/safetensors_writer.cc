#include "client/cli/safetensors_writer.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/json.h"
#include "client/cli/names.h"

namespace posenc::cli {
namespace {

constexpr size_t kAlignment = 8;  // of the data in the file, as the format asks

std::string Metadata(const v1::TableHeader& header, absl::string_view content_hash) {
  const std::pair<absl::string_view, std::string> entries[] = {
      {"format", "pt"},
      {"table_id", header.table_id()},
      {"content_hash", std::string(content_hash)},
      {"numerics_version", header.numerics_version()},
      {"spec", CompactJson(header.spec())},
      {"attention_factor", ExactDouble(header.attention_factor())},
      {"pairing", PairingName(header.spec())},
      {"profile", header.format().profile()},
  };
  return absl::StrCat("\"__metadata__\":{",
                      absl::StrJoin(entries, ",",
                                    [](std::string* out, const auto& entry) {
                                      absl::StrAppend(out, JsonString(entry.first), ":",
                                                      JsonString(entry.second));
                                    }),
                      "}");
}

std::string TensorEntry(const v1::TensorInfo& tensor) {
  return absl::StrCat(JsonString(tensor.name()), ":{\"dtype\":\"", SafetensorsName(tensor.dtype()),
                      "\",\"shape\":[", absl::StrJoin(tensor.shape(), ","), "],\"data_offsets\":[",
                      tensor.offset(), ",", tensor.offset() + tensor.bytes(), "]}");
}

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span<const char>(text));
}

}  // namespace

std::string SafetensorsHeader(const v1::TableHeader& header, absl::string_view content_hash) {
  std::string json = absl::StrCat("{", Metadata(header, content_hash));
  for (const v1::TensorInfo& tensor : header.tensors()) {
    absl::StrAppend(&json, ",", TensorEntry(tensor));
  }
  json += '}';
  json.append((kAlignment - json.size() % kAlignment) % kAlignment, ' ');
  std::string length(sizeof(uint64_t), '\0');
  for (size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(json.size() >> (8 * i));
  return length + json;
}

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<OutputFile> file) : file_(std::move(file)) {}

// The hash is known after the last byte only: a placeholder holds its place.
absl::Status SafetensorsWriter::Begin(const v1::TableHeader& header) {
  header_ = header;
  return file_->Append(Bytes(SafetensorsHeader(header_, std::string(32, '0'))));
}

absl::Status SafetensorsWriter::Append(std::span<const std::byte> bytes) {
  return file_->Append(bytes);
}

absl::Status SafetensorsWriter::End(const std::string& content_hash) {
  const std::string header = SafetensorsHeader(header_, content_hash);
  if (absl::Status status = file_->OverwriteStart(Bytes(header)); !status.ok()) return status;
  return file_->Commit();
}

}  // namespace posenc::cli
