// Which family a text config is of.
#ifndef POSENC_LIB_MODEL_CONFIG_TEXT_FAMILY_H_
#define POSENC_LIB_MODEL_CONFIG_TEXT_FAMILY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/model_config/family_table.h"
#include "lib/model_config/findings.h"
#include "lib/model_config/json_document.h"

namespace posenc {

// What means RoPE in a file whose family is not known.
inline constexpr absl::string_view kStandardRopeKeys = "rope_parameters rope_scaling rope_theta";

// The config of a text part in the file: the file itself, or nested in it.
struct TextConfig {
  std::string type;  // its model_type, or the file's where it has none; empty: nobody says
  JsonValue typed;   // the object that says `type`, or would
  JsonValue keys;
  JsonValue file;
};

// By model_type, else by the class that the file names, else by generic rules where the
// standard keys say RoPE: then a finding says so. INVALID_ARGUMENT when none of them
// does, or other keys contradict.
absl::StatusOr<const ModelFamily*> FindTextFamily(const TextConfig& config, Findings& findings);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_TEXT_FAMILY_H_
