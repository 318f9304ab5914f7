// .npy, version 1.0: one tensor of a dtype that numpy has.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#ifndef POSENC_CLIENT_CLI_NPY_WRITER_H_
#define POSENC_CLIENT_CLI_NPY_WRITER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/output_file.h"
#include "client/cli/table_writer.h"

namespace posenc::cli {

// Magic, length and dictionary, padded so that the data is aligned to 64 bytes.
// INVALID_ARGUMENT, naming .safetensors, for bf16 and for more than one tensor.
absl::StatusOr<std::string> NpyHeader(const v1::TableHeader& header);

class NpyWriter final : public TableWriter {
 public:
  explicit NpyWriter(std::unique_ptr<OutputFile> file);

  absl::Status Begin(const v1::TableHeader& header) override;
  absl::Status Append(std::span<const std::byte> bytes) override;
  absl::Status End(const std::string& content_hash) override;

 private:
  const std::unique_ptr<OutputFile> file_;
};

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_NPY_WRITER_H_
