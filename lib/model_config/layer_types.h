// The type of each layer: full_attention, sliding_attention, linear_attention, ...
#ifndef POSENC_LIB_MODEL_CONFIG_LAYER_TYPES_H_
#define POSENC_LIB_MODEL_CONFIG_LAYER_TYPES_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/model_config/json_document.h"
#include "lib/model_config/rope_keys.h"
#include "lib/model_config/tower.h"

namespace posenc {

inline constexpr absl::string_view kFull = "full_attention";
inline constexpr absl::string_view kSliding = "sliding_attention";

// Layer types whose layers have no attention that could rotate.
inline constexpr std::array<absl::string_view, 5> kWithoutAttention = {
    "linear_attention", "mamba", "mamba2", "conv", "recurrent"};

// The names of the list of layer types; the second is hybrids'.
inline constexpr absl::string_view kTypesKeys = "layer_types layers_block_type";

// The pattern of a family whose file has no layer_types: one layer in `period` is
// full_attention, the last of each run or the first.
struct LayerPattern {
  absl::string_view every = "";    // keys that hold the period
  int64_t period = 0;              // where the file has none; 0: no pattern
  absl::string_view full = kFull;  // what that one is called
  bool full_first = false;
  bool last_full = false;    // the model's last layer, whatever the pattern
  bool zeroth_full = false;  // the model's first layer, whatever the pattern
  absl::string_view other = kSliding;
  absl::string_view pattern = "";  // a key that holds a list of numbers,
  int64_t full_number = 0;         // of which this is full and any other is not
  absl::string_view cycle = "";    // a key that lists the types of a run, which is repeated
  absl::string_view listed = "";   // a key that lists the numbers of the full layers,
  int64_t first_layer = 0;         // the first of which is this
  absl::string_view names = "";    // all that layer_types may hold; empty: anything
};

// layer_types (layers_block_type of hybrids), else the pattern over num_hidden_layers; empty
// where neither is known. Refuses a list that is shorter than the model has layers, or names
// one that it has not, or a type that the family has not.
absl::StatusOr<std::vector<std::string>> LayerTypes(const Tower& tower,
                                                    const LayerPattern& pattern);

// The pattern alone.
absl::StatusOr<std::vector<std::string>> PatternOfLayers(const Tower& tower,
                                                         const LayerPattern& pattern);

// Whether a key of a rope map names a layer type, of this model or of any.
bool IsLayerType(const Tower& tower, absl::string_view key);

// Whether it is one of kWithoutAttention.
bool IsWithoutAttention(absl::string_view type);

// Whether the map holds maps by layer type, or null for each.
bool IsNested(const Tower& tower, const RopeKeys& keys);

// FieldError of a list that has fewer entries than the model has layers.
absl::Status ListTooShort(const JsonValue& list, size_t layers);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_LAYER_TYPES_H_
