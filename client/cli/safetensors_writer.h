// .safetensors: a length (8 bytes, little-endian), that many bytes of JSON, and
// the bytes of the table as they come.
// https://github.com/huggingface/safetensors#format
#ifndef POSENC_CLIENT_CLI_SAFETENSORS_WRITER_H_
#define POSENC_CLIENT_CLI_SAFETENSORS_WRITER_H_

#include <memory>
#include <string>

#include "client/cli/output_file.h"
#include "client/cli/table_writer.h"

namespace posenc::cli {

// Length and JSON, padded with spaces so that the data is aligned to 8 bytes. The
// size does not depend on the digits of `content_hash` (32 of them).
std::string SafetensorsHeader(const v1::TableHeader& header, absl::string_view content_hash);

class SafetensorsWriter final : public TableWriter {
 public:
  explicit SafetensorsWriter(std::unique_ptr<OutputFile> file);

  absl::Status Begin(const v1::TableHeader& header) override;
  absl::Status Append(std::span<const std::byte> bytes) override;
  absl::Status End(const std::string& content_hash) override;

 private:
  const std::unique_ptr<OutputFile> file_;
  v1::TableHeader header_;
};

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_SAFETENSORS_WRITER_H_
