// The rope_parameters that a family has where its config has none.
#ifndef POSENC_LIB_MODEL_CONFIG_DEFAULT_MAPS_H_
#define POSENC_LIB_MODEL_CONFIG_DEFAULT_MAPS_H_

#include "absl/strings/string_view.h"
#include "lib/model_config/json_document.h"

namespace posenc {

// The JSON object in `text`, which must be one of the table's; parsed once and
// kept until the process ends. Its values point to /rope_parameters. Thread-safe.
JsonValue DefaultMap(absl::string_view text);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_DEFAULT_MAPS_H_
