// --table: the numbers of a model's own table, from its file into the spec.
#ifndef POSENC_CLIENT_CLI_TABLE_INPUT_H_
#define POSENC_CLIENT_CLI_TABLE_INPUT_H_

#include <string>

#include "absl/status/status.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc::cli {

// `argument` is [FIELD=]FILE.npy or [FIELD=]FILE.safetensors[:TENSOR]. FIELD is that of
// the spec's family, and may be left out where the family has one table only, TENSOR
// where the file has one only. F32, F64, F16 and BF16 are read; an F64 is rounded to
// float32. UsageError, FileError, or what the file says wrong.
absl::Status ReadTableInto(const std::string& argument, v1::EncodingSpec* spec);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_TABLE_INPUT_H_
