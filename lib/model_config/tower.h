// One part of a model while its config is read: the object that holds its keys,
// and what the family adds to them.
#ifndef POSENC_LIB_MODEL_CONFIG_TOWER_H_
#define POSENC_LIB_MODEL_CONFIG_TOWER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/model_config/family_table.h"
#include "lib/model_config/findings.h"
#include "lib/model_config/json_document.h"
#include "posenc/v1/model_config.pb.h"

namespace posenc {

// Bounds of what a model has of each, far above any real one.
inline constexpr int64_t kMaxLayers = 4096;
inline constexpr int64_t kMaxGridSide = 4096;  // patches
inline constexpr size_t kMaxStages = 64;

struct Tower {
  std::string name;  // text, encoder, decoder, vision, audio, transformer
  JsonValue keys;    // an object: the config, or one nested in it
  const ModelFamily& family;
  bool nested;  // class defaults stand in for sizes that are not given
  const v1::ModelSource& model;
  Findings& findings;

  v1::Compat compat() const;  // never unspecified
  // Whether it is read as transformers 4.57 does, which has the family: rope_parameters is no key
  // of it, and a map of rope_scaling holds neither base nor partial_rotary_factor.
  bool reads_as_v4() const;
};

// The towers of a config: of a composite one each for text, vision and audio, of
// anything else one. Refuses a family that is not known, unless the keys say
// RoPE in the standard names: then it says so in a finding.
absl::StatusOr<std::vector<Tower>> FindTowers(const JsonValue& config, const v1::ModelSource& model,
                                              Findings& findings);

// Names of the common sizes, the same thing in every family. Absent where neither
// the file nor (for a nested config) the class has one.
absl::StatusOr<std::optional<int64_t>> NumAttentionHeads(const Tower& tower);
absl::StatusOr<std::optional<int64_t>> HiddenSize(const Tower& tower);
absl::StatusOr<std::optional<int64_t>> NumLayers(const Tower& tower);
// 0 where the model has no limit or does not say.
absl::StatusOr<int64_t> MaxPositionEmbeddings(const Tower& tower);

// The same, refused where there is none.
absl::StatusOr<int64_t> RequiredHeads(const Tower& tower);
absl::StatusOr<int64_t> RequiredHiddenSize(const Tower& tower);

// `times` * hidden_size / num_attention_heads, whole, where the file has no key for it.
absl::StatusOr<int64_t> HiddenOverHeads(const Tower& tower, int64_t times = 1);

// A new encoding of the tower, its layer type `all`.
v1::ResolvedEncoding NewEncoding(const Tower& tower, absl::string_view kind);

}  // namespace posenc

#endif  // POSENC_LIB_MODEL_CONFIG_TOWER_H_
