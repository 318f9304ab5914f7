// Models in the Hugging Face cache folder of this machine; nothing is downloaded.
#ifndef POSENC_CLIENT_CLI_HUB_CACHE_H_
#define POSENC_CLIENT_CLI_HUB_CACHE_H_

#include <string>

#include "absl/status/statusor.h"

namespace posenc::cli {

// Whether `model` has the form org/name: two parts of letters, digits, -, _ and .
bool IsHubName(const std::string& model);

// The config.json of the snapshot that `main` points to, below HF_HUB_CACHE,
// HUGGINGFACE_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub or
// ~/.cache/huggingface/hub. FileError, with where it looked, when there is none.
// REQUIRES: IsHubName(model).
absl::StatusOr<std::string> FindInHubCache(const std::string& model);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_HUB_CACHE_H_
