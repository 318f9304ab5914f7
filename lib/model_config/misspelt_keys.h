// Keys that nobody reads but for a letter, in files that lack the key that was meant.
#ifndef POSENC_LIB_MODEL_CONFIG_MISSPELT_KEYS_H_
#define POSENC_LIB_MODEL_CONFIG_MISSPELT_KEYS_H_

#include <span>

#include "absl/strings/string_view.h"
#include "lib/model_config/json_document.h"
#include "lib/model_config/tower.h"

namespace posenc {

// Of the tower's own keys: near misses of those that its family reads of its positions.
void NoteMisspeltKeys(const Tower& tower);

// Of a map of RoPE: whether `key`, which its type does not use, is a near miss of one of `used`
// that the map lacks; then a finding says so.
bool NoteMisspeltInMap(const Tower& tower, const JsonValue& map, const JsonValue& key,
                       std::span<const absl::string_view> used);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_MISSPELT_KEYS_H_
