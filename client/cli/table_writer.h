// A file format: takes a table's header, its bytes in order, and their hash.
#ifndef POSENC_CLIENT_CLI_TABLE_WRITER_H_
#define POSENC_CLIENT_CLI_TABLE_WRITER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "posenc/v1/table.pb.h"

namespace posenc::cli {

class TableWriter {
 public:
  virtual ~TableWriter() = default;

  // Once, first. Refuses (INVALID_ARGUMENT) a table that the format cannot hold.
  virtual absl::Status Begin(const v1::TableHeader& header) = 0;

  // The next bytes of the table.
  virtual absl::Status Append(std::span<const std::byte> bytes) = 0;

  // Once, after total_bytes. Then the file stands at its place.
  virtual absl::Status End(const std::string& content_hash) = 0;
};

// By the end of the name: .safetensors, .npy, or - for raw bytes to stdout;
// another is a UsageError. Creates the file beside its place (output_file.h), so
// that a folder that cannot be written is noticed before anything is computed.
absl::StatusOr<std::unique_ptr<TableWriter>> OpenTableWriter(const std::string& output);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_TABLE_WRITER_H_
