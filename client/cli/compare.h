// A model against its base: what differs in its positions, with the effect in numbers.
#ifndef POSENC_CLIENT_CLI_COMPARE_H_
#define POSENC_CLIENT_CLI_COMPARE_H_

#include <array>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/compare_difference.h"
#include "posenc/client.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc::cli {

struct BaseRule {
  absl::string_view id;
  absl::string_view meaning;
};
// All are errors but for those that say warning. Of each the fix is what the base has there, where
// that is one key or one map, and pasting it was tried (compare_fixes.h).
inline constexpr std::array kBaseRules = {
    BaseRule{"base-attention-differs", "What multiplies cos and sin, or the softmax scale."},
    BaseRule{"base-encoding-added", "The model has an encoding that the base has not (warning)."},
    BaseRule{"base-encoding-missing", "The base has an encoding that the model has not."},
    BaseRule{"base-kind-differs", "RoPE against ALiBi and so on."},
    BaseRule{"base-layers-differ", "Which layers have which encoding, or none."},
    BaseRule{"base-length-differs", "max_position_embeddings differs (warning)."},
    BaseRule{"base-mrope-differs", "Which axis turns which frequency."},
    BaseRule{"base-pairing-differs", "Which channels rotate, and which together."},
    BaseRule{"base-rotary-dim-differs", "How many channels rotate, or of how many."},
    BaseRule{"base-scaling-differs", "A parameter of the scaling differs."},
    BaseRule{"base-scheme-differs", "rope_type differs, or the variant of it."},
    BaseRule{"base-spec-differs",
             "A parameter of an encoding that is not RoPE; a warning where two ALiBis attend alike "
             "but for their roundings."},
    BaseRule{"base-theta-differs", "rope_theta differs."},
};

// One difference a cause: one finding for all layer types that it is in, with what follows from it
// as its effect. Pointers into the two responses. Fails only when the client does.
absl::StatusOr<std::vector<Difference>> CompareWithBase(
    const Client& client, const v1::ResolveModelConfigResponse& base,
    const v1::ResolveModelConfigResponse& model);

}  // namespace posenc::cli

#endif  // POSENC_CLIENT_CLI_COMPARE_H_
