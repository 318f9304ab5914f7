#include "lib/model_config/resolve.h"

namespace posenc {

absl::StatusOr<v1::ResolveModelConfigResponse> ResolveModelConfig(const v1::ModelSource&) {
  return absl::UnimplementedError("model_config");
}

absl::StatusOr<v1::ResolvedEncoding> OneEncoding(const v1::ResolveModelConfigResponse&) {
  return absl::UnimplementedError("model_config");
}

std::vector<std::string> KnownModelTypes() { return {}; }

}  // namespace posenc
