// What a difference of two encodings does, in numbers.
#ifndef POSENC_CLIENT_CLI_COMPARE_EFFECTS_H_
#define POSENC_CLIENT_CLI_COMPARE_EFFECTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "posenc/client.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc::cli {

// 8, 1.25, 1.0000012: with as many digits as it takes to tell it from 1.
std::string FactorText(double factor);

// "35 of 64 frequencies differ, from pair 29, by up to 8x"; empty when none does. Where they depend
// on the length of the sequence, those of a long one too: "at 65536 positions ...". Two RoPEs, or
// two over a grid.
absl::StatusOr<std::string> FrequencyEffect(const Client& client, const v1::EncodingSpec& base,
                                            const v1::EncodingSpec& model);

// "3 of 12 slopes differ, from head 8, by up to 1.41x"; empty when none does by more than a
// float32's rounding. Two ALiBis.
absl::StatusOr<std::string> SlopeEffect(const Client& client, const v1::EncodingSpec& base,
                                        const v1::EncodingSpec& model);

// "63 of 128 distances have another bucket, from distance 8"; empty when none has. Two T5s.
absl::StatusOr<std::string> BucketEffect(const Client& client, const v1::EncodingSpec& base,
                                         const v1::EncodingSpec& model);

// Whether only what is the same for all keys of a query sets it apart from the others of which
// this is true, and that in float32.
bool IsRowConstant(const v1::AlibiSpec& alibi);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_COMPARE_EFFECTS_H_
