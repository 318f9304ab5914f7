// Arrays of real numbers in files as numpy and safetensors write them.
#ifndef POSENC_CLIENT_CLI_ARRAY_FILE_H_
#define POSENC_CLIENT_CLI_ARRAY_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace posenc::cli {

// What a file's header says of an array.
struct ArrayInfo {
  std::string dtype;  // F32, F64, F16 or BF16
  std::vector<int64_t> shape;
  uint64_t offset = 0;  // in the file, of its bytes: little-endian, row-major
  uint64_t bytes = 0;
};

// `start` is the beginning of a file of `file_bytes` bytes, its header at least. Errors
// say what is wrong with the file, not which one it is; every length is checked against
// the file's.
absl::StatusOr<ArrayInfo> ParseNpy(absl::string_view start, uint64_t file_bytes);
// `tensor` may be empty when there is one only.
absl::StatusOr<ArrayInfo> ParseSafetensors(absl::string_view start, uint64_t file_bytes,
                                           absl::string_view tensor);

// Elements of `dtype` as float32. REQUIRES: a dtype from above.
std::string ToFloat32(absl::string_view dtype, std::string elements);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_ARRAY_FILE_H_
