// What a difference of two encodings does to tables, where frequencies do not tell: rows that are
// ordered otherwise, channels that another axis turns.
#ifndef POSENC_CLIENT_CLI_COMPARE_TABLES_H_
#define POSENC_CLIENT_CLI_COMPARE_TABLES_H_

#include <string>

#include "absl/status/statusor.h"
#include "posenc/client.h"
#include "posenc/v1/encoding.pb.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc::cli {

// "96 of the 144 rows of a 12x12 grid differ"; empty when none does but by the base of the
// frequencies, or there is no table of such a grid. Two RoPEs over a grid.
absl::StatusOr<std::string> GridEffect(const Client& client, const v1::EncodingSpec& base,
                                       const v1::EncodingSpec& model);

// "32 of 128 channels turn by another axis, from channel 16"; empty when none does, or their heads
// are of different widths. Two M-RoPEs.
absl::StatusOr<std::string> AxisEffect(const Client& client, const v1::ResolvedEncoding& base,
                                       const v1::ResolvedEncoding& model);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_COMPARE_TABLES_H_
