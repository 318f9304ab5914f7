// Where a config says what its RoPE is, in any of the forms:
//
//   rope_scaling: null | {type | rope_type, ...}            (transformers 4)
//   rope_parameters: {rope_type, rope_theta, ...}           (transformers 5)
//   rope_parameters: {full_attention: {...}, ...}           (by layer type)
//
// The rules are those of reference/hf-rope.md 4.3 with the policy of 4.6: a value
// inside the map wins over one beside it, and nothing is guessed.
#ifndef POSENC_LIB_MODEL_CONFIG_ROPE_KEYS_H_
#define POSENC_LIB_MODEL_CONFIG_ROPE_KEYS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/model_config/json_document.h"
#include "lib/model_config/tower.h"

namespace posenc {

// The map of one layer type.
struct RopeKeys {
  JsonValue map = {};  // rope_scaling, else rope_parameters; absent: the file has neither

  // Absent where the map has no such value.
  JsonValue Find(absl::string_view key) const;
  bool present() const { return map.present(); }
};

// The map of a tower, the family's default where it has none. Of two rope_scaling
// holds, whole; transformers 4 reads no other. Refuses a map that is no object, and two that
// contradict each other.
absl::StatusOr<RopeKeys> FindRopeKeys(const Tower& tower);

// What a map names its type.
struct RopeTypeName {
  std::string rope_type = "default";  // one of the known ones, aliases replaced
  std::string written = "default";    // as the file has it: su, mrope, telechat3-yarn
};

// Refuses a type that is unknown, contradicts its other spelling (unless the
// compat mode says which wins), or is missing beside a factor.
absl::StatusOr<RopeTypeName> RopeTypeOf(const Tower& tower, const RopeKeys& keys);

// A note for each key of the map that its type does not use: a misspelt key looks
// the same.
void NoteUnusedKeys(const Tower& tower, const RopeKeys& keys, absl::string_view rope_type);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_ROPE_KEYS_H_
