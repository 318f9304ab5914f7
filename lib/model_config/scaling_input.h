// What the rules of every RoPE scaling share: the keys they read, and the findings
// that several of them make.
#ifndef POSENC_LIB_MODEL_CONFIG_SCALING_INPUT_H_
#define POSENC_LIB_MODEL_CONFIG_SCALING_INPUT_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/model_config/rope_keys.h"
#include "lib/model_config/tower.h"

namespace posenc {

// What the rules need to know of the layers that the scaling is for.
struct ScalingInput {
  const Tower& tower;
  const RopeKeys& keys;
  RopeTypeName type;
  int64_t max_position_embeddings;  // 0: not known
  int64_t head_dim;
  int64_t rotary_dim;
  std::optional<double> attention_factor;  // the family's, where the map has none
};

// A number above 0, refused where there is none.
absl::StatusOr<double> RequiredFactor(const ScalingInput& input, absl::string_view key);

// original_max_position_embeddings: inside the map, else beside it, else the
// family's, else the length that the file has (with a finding).
absl::StatusOr<int64_t> OriginalLength(const ScalingInput& input);

// A switch of Qwen 1: true where its files do not have it, false in other families.
absl::StatusOr<bool> ReadQwenSwitch(const Tower& tower, absl::string_view key);

// Whether transformers 4 finds a training length for a LongRoPE, whose ratio then is its factor:
// beside the map, in the class, or copied out of the map by it (PhiMoE).
bool HasLengthInV4(const ScalingInput& input);

// The final multiplier of cos and sin, where the file or the family gives it.
absl::StatusOr<std::optional<double>> AttentionFactor(const ScalingInput& input);

// Findings: a factor below 1; one that the lengths do not bear out; a training
// length that nothing extends.
void NoteSmallFactor(const ScalingInput& input, double factor);
void NoteFactorMismatch(const ScalingInput& input, double factor, int64_t original);
void NoteLengthNotExtended(const ScalingInput& input, int64_t original, bool factor_implied);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_SCALING_INPUT_H_
