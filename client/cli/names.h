// Names of enum values as people type and read them.
#ifndef POSENC_CLIENT_CLI_NAMES_H_
#define POSENC_CLIENT_CLI_NAMES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "posenc/v1/encoding.pb.h"
#include "posenc/v1/model_config.pb.h"
#include "posenc/v1/table.pb.h"

namespace posenc::cli {

// UsageError, with the flag and what it accepts, for a name that is none of them.
//
// f32, float32, F32, torch.float32, ...: in any case, with or without `torch.`.
// "" and auto are DTYPE_UNSPECIFIED: the config's dtype, or the encoding's.
absl::StatusOr<v1::DType> ParseDType(absl::string_view name);
absl::StatusOr<v1::Layout> ParseLayout(absl::string_view name);
absl::StatusOr<v1::Arithmetic> ParseArithmetic(absl::string_view name);
// latest, 5 or 5.16, 4 or 4.57: the version of transformers whose reading is wanted.
absl::StatusOr<v1::Compat> ParseCompat(absl::string_view name);

// A profile by its name or its versioned one, in any case; as requests name it.
absl::StatusOr<std::string> ParseProfile(absl::string_view name);
// "flashinfer, hf, ...": what a profile may be called.
std::string ProfileList();

// As safetensors names it: F32, BF16, ...
absl::string_view SafetensorsName(v1::DType dtype);

// half, interleaved; empty for an encoding that rotates nothing.
std::string PairingName(const v1::EncodingSpec& spec);

// Whether something multiplies the table's cosines and sines; other tables have no such factor,
// though their header says 1.
bool HasAttentionFactor(const v1::EncodingSpec& spec);

// "warning: /rope_theta: ...", with the flags of the fields that it names.
std::string FindingLine(const v1::Finding& finding);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_NAMES_H_
