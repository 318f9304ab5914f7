// What a config says about its RoPE scaling, in any of its forms:
//
//   rope_scaling: null | {type | rope_type, ...}            (transformers 4)
//   rope_parameters: {rope_type, rope_theta, ...}           (transformers 5)
//
// The rules are those of reference/hf-rope.md 4.3 with the policy of 4.6: a value
// inside the map wins over one beside it, and nothing is guessed.
#ifndef POSENC_LIB_MODEL_CONFIG_ROPE_SCALING_H_
#define POSENC_LIB_MODEL_CONFIG_ROPE_SCALING_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/model_config/json_document.h"
#include "lib/model_config/tower.h"
#include "posenc/v1/encoding.pb.h"

namespace posenc {

// The maps of one layer type.
struct RopeKeys {
  JsonValue map;       // rope_scaling, else rope_parameters; absent: the file has neither
  JsonValue fallback;  // rope_parameters beside a rope_scaling

  // The first that has a value; absent when neither has.
  JsonValue Find(absl::string_view key) const;
  bool present() const { return map.present(); }
};

// The maps of a tower. Refuses a map that is no object, and two whose types
// contradict each other.
absl::StatusOr<RopeKeys> FindRopeKeys(const Tower& tower);

// default, linear, yarn, ...: aliases (su, mrope) replaced. Refuses a type that is
// unknown, contradicts its other spelling, or is missing beside a factor.
absl::StatusOr<std::string> RopeType(const RopeKeys& keys);

// What the scaling's rules need to know of the tower.
struct ScalingInput {
  const Tower& tower;
  const RopeKeys& keys;
  std::string rope_type;
  int64_t max_position_embeddings;  // 0: not known
};

// Sets spec's scaling. Refuses missing and impossible parameters.
absl::Status SetScaling(const ScalingInput& input, v1::RopeSpec* spec);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_ROPE_SCALING_H_
