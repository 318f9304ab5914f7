// Two RoPEs: width, base, scheme and its parameters, pairing, axes, what multiplies.
#ifndef POSENC_CLIENT_CLI_COMPARE_ROPE_H_
#define POSENC_CLIENT_CLI_COMPARE_ROPE_H_

#include "absl/status/status.h"
#include "client/cli/compare_difference.h"
#include "posenc/client.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc::cli {

// One difference a cause: what follows from it is its effect. REQUIRES: both specs are RoPEs. Fails
// only when the client does.
absl::Status CompareRope(const Client& client, const v1::ResolvedEncoding& base,
                         const v1::ResolvedEncoding& model, Differences* differences);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_COMPARE_ROPE_H_
