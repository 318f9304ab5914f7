// One part of a model while its config is read: the object that holds its keys,
// and what the family adds to them.
#ifndef POSENC_LIB_MODEL_CONFIG_TOWER_H_
#define POSENC_LIB_MODEL_CONFIG_TOWER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "lib/model_config/family_table.h"
#include "lib/model_config/findings.h"
#include "lib/model_config/json_document.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

struct Tower {
  std::string name;  // text, encoder, ...
  JsonValue keys;    // an object
  const ModelFamily& family;
  const v1::ModelSource& model;
  Findings& findings;
};

// Names of the common sizes, the same thing in every family.
absl::StatusOr<std::optional<int64_t>> NumAttentionHeads(const Tower& tower);
absl::StatusOr<std::optional<int64_t>> HiddenSize(const Tower& tower);
absl::StatusOr<std::optional<int64_t>> NumLayers(const Tower& tower);
// 0 where the model has no limit or does not say.
absl::StatusOr<int64_t> MaxPositionEmbeddings(const Tower& tower);

// The first of `names` as a required whole number above 0.
absl::StatusOr<int64_t> RequiredInt(const Tower& tower, absl::string_view names);

// A new encoding of the tower, its layer type `all`.
v1::ResolvedEncoding NewEncoding(const Tower& tower, absl::string_view kind);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_TOWER_H_
