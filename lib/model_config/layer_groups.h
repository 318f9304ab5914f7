// What the rules of layer_rules.h and layer_lists.h make groups of.
#ifndef POSENC_LIB_MODEL_CONFIG_LAYER_GROUPS_H_
#define POSENC_LIB_MODEL_CONFIG_LAYER_GROUPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/model_config/layer_rules.h"

namespace posenc {

// Indexes of the layers whose type is `name`, or (wanted false) is not.
std::vector<int64_t> LayersOf(const std::vector<std::string>& types, absl::string_view name,
                              bool wanted = true);

// The layers of one type.
LayerGroup GroupOf(const std::vector<std::string>& types, absl::string_view name,
                   const RopeKeys& keys);

// The layers of one type, which rotate, beside others that do not.
std::vector<LayerGroup> OnlyOf(const std::vector<std::string>& types, absl::string_view name,
                               const RopeKeys& keys);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_LAYER_GROUPS_H_
