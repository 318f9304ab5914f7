// Which layers have which encoding, of a model and its base.
#ifndef POSENC_CLIENT_CLI_COMPARE_LAYERS_H_
#define POSENC_CLIENT_CLI_COMPARE_LAYERS_H_

#include <vector>

#include "client/cli/compare_difference.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc::cli {

// A difference for each tower of both: "2 of 26 layers differ, from layer 4: sliding_attention, in
// the base full_attention".
std::vector<Difference> CompareLayers(const v1::ResolveModelConfigResponse& base,
                                      const v1::ResolveModelConfigResponse& model);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_COMPARE_LAYERS_H_
