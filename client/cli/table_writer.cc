#include "client/cli/table_writer.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/cli/npy_writer.h"
#include "client/cli/output_file.h"
#include "client/cli/safetensors_writer.h"

namespace posenc::cli {
namespace {

class StdoutWriter final : public TableWriter {
 public:
  absl::Status Begin(const v1::TableHeader&) override { return absl::OkStatus(); }
  absl::Status Append(std::span<const std::byte> bytes) override {
    return WriteFully(STDOUT_FILENO, bytes, "stdout");
  }
  absl::Status End(const std::string&) override { return absl::OkStatus(); }
};

}  // namespace

absl::StatusOr<std::unique_ptr<TableWriter>> OpenTableWriter(const std::string& output) {
  if (output == "-") return std::make_unique<StdoutWriter>();
  const bool safetensors = absl::EndsWith(output, ".safetensors");
  if (!safetensors && !absl::EndsWith(output, ".npy")) {
    return UsageError(
        absl::StrCat("-o: must end in .safetensors or .npy, or be - for stdout, got ", output));
  }
  absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Create(output);
  if (!file.ok()) return file.status();
  if (safetensors) return std::make_unique<SafetensorsWriter>(*std::move(file));
  return std::make_unique<NpyWriter>(*std::move(file));
}

}  // namespace posenc::cli
