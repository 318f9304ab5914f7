// What would make a model like its base again, to paste.
#ifndef POSENC_CLIENT_CLI_COMPARE_FIXES_H_
#define POSENC_CLIENT_CLI_COMPARE_FIXES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/compare_difference.h"
#include "posenc/client.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc::cli {

// A config as it was read.
struct ResolvedFile {
  std::string config_json;
  v1::ResolveModelConfigResponse response;
};
// The model's config, read again as the first time.
using Resolver =
    std::function<absl::StatusOr<v1::ResolveModelConfigResponse>(const std::string& config_json)>;

// Sets the fix of each difference that has one: the base's value at the key that decides it, or the
// base's map of the scaling. Each was tried: pasted into the model's file it ends the difference
// and brings no error that was not there. Fails only when the client does.
absl::Status OfferFixes(const Client& client, const ResolvedFile& base, const ResolvedFile& model,
                        const Resolver& resolve, std::vector<Difference>* differences);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_COMPARE_FIXES_H_
