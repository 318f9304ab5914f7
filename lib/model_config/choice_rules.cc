#include "lib/model_config/choice_rules.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/axial_rules.h"
#include "lib/model_config/bias_rules.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/relative_rules.h"
#include "lib/model_config/rope_rules.h"
#include "lib/model_config/table_rules.h"

namespace posenc {
namespace {

// Of every distance between two of `length` frames, farthest key to the left first.
absl::Status AddRelativeSinusoid(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const int64_t d_model, RequiredHiddenSize(tower));
  ASSIGN_OR_RETURN(const std::optional<int64_t> length,
                   ReadPositiveInt(tower.keys["max_source_positions"]));
  v1::ResolvedEncoding encoding = NewEncoding(tower, "sinusoidal");
  encoding.set_max_position_embeddings(length.value_or(5000));
  v1::SinusoidalSpec& spec = *encoding.mutable_spec()->mutable_sinusoidal();
  spec.set_preset(v1::SINUSOIDAL_PRESET_CONFORMER);
  spec.set_d_model(d_model);
  spec.set_arithmetic(tower.model.arithmetic());
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

// A row for each clipped distance of a key before (left) or after the query.
absl::Status AddClippedKeys(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> left,
                   ReadInt(tower.keys["left_max_position_embeddings"]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> right,
                   ReadInt(tower.keys["right_max_position_embeddings"]));
  v1::ResolvedEncoding encoding = NewEncoding(tower, "relative_key");
  v1::ClippedScheme& clipped =
      *encoding.mutable_spec()->mutable_relative_index()->mutable_clipped();
  clipped.set_left(left.value_or(64));
  clipped.set_right(right.value_or(8));
  v1::RelativeTable& table = *encoding.mutable_relative();
  table.set_entries(clipped.left() + clipped.right() + 1);
  table.set_per_layer(true);
  table.set_bidirectional(true);
  table.add_terms("key");
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

// A bucket table of `kind` positions where its switch, on by default, is on.
struct Buckets {
  absl::string_view enabled_key;
  absl::string_view count_key;
  int64_t count;
  absl::string_view distance_key;
  int64_t distance;
  absl::string_view layer_type;
};

absl::Status AddBuckets(const Tower& tower, const Buckets& keys,
                        v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::optional<bool> enabled, ReadBool(tower.keys[keys.enabled_key]));
  if (!enabled.value_or(true)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<int64_t> count, ReadPositiveInt(tower.keys[keys.count_key]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> distance,
                   ReadPositiveInt(tower.keys[keys.distance_key]));
  ASSIGN_OR_RETURN(const int64_t heads, RequiredHeads(tower));
  v1::ResolvedEncoding encoding = T5Encoding(
      tower, {count.value_or(keys.count), distance.value_or(keys.distance), true, false}, heads);
  encoding.set_layer_type(std::string(keys.layer_type));
  // v3 adds the bias to scores that it divides with them.
  if (tower.family.table.bias_over_sqrt_head_dim) {
    ASSIGN_OR_RETURN(const int64_t head_dim, HiddenOverHeads(tower));
    encoding.set_bias_scale(1.0 / std::sqrt(static_cast<double>(head_dim)));
  }
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveConformer(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  const JsonValue value = tower.keys["position_embeddings_type"];
  if (value.is_null()) return ResolveNone(tower, response);
  ASSIGN_OR_RETURN(const std::optional<std::string> given, ReadString(value));
  const std::string type = given.value_or(std::string(tower.family.table.default_type));
  if (type == "relative") return AddRelativeSinusoid(tower, response);
  if (type == "rotary") return ResolveRope(tower, response);
  if (type == "relative_key") return AddClippedKeys(tower, response);
  return FieldError(
      value.field(),
      absl::StrCat("must be relative, relative_key, rotary or null, got string \"", type, "\""));
}

absl::Status ResolveTrocr(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::optional<bool> learned,
                   ReadBool(tower.keys["use_learned_position_embeddings"]));
  return learned.value_or(true) ? ResolveLearned(tower, response)
                                : ResolveSinusoidal(tower, response);
}

absl::Status ResolveLayoutLm(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  RETURN_IF_ERROR(ResolveLearned(tower, response));
  RETURN_IF_ERROR(AddBuckets(
      tower, {"has_relative_attention_bias", "rel_pos_bins", 32, "max_rel_pos", 128, "all"},
      response));
  return AddBuckets(
      tower,
      {"has_spatial_attention_bias", "rel_2d_pos_bins", 64, "max_rel_2d_pos", 256, "spatial"},
      response);
}

absl::Status ResolveCogVideoX(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::optional<bool> rotary,
                   ReadBool(tower.keys["use_rotary_positional_embeddings"]));
  if (rotary.value_or(false)) return ResolveAxialRope(tower, response);
  ASSIGN_OR_RETURN(const std::optional<int64_t> heads,
                   ReadPositiveInt(tower.keys["num_attention_heads"]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> head_dim,
                   ReadPositiveInt(tower.keys["attention_head_dim"]));
  ASSIGN_OR_RETURN(const std::optional<double> spatial,
                   ReadPositiveNumber(tower.keys["spatial_interpolation_scale"]));
  ASSIGN_OR_RETURN(const std::optional<double> temporal,
                   ReadPositiveNumber(tower.keys["temporal_interpolation_scale"]));
  v1::ResolvedEncoding encoding = NewEncoding(tower, "sinusoidal");
  v1::SinusoidalGridSpec& grid = *encoding.mutable_spec()->mutable_sinusoidal_grid();
  grid.set_preset(v1::SINUSOIDAL_GRID_PRESET_COGVIDEOX);
  grid.set_d_model(heads.value_or(30) * head_dim.value_or(64));
  grid.set_interpolation_scale(spatial.value_or(1.875));
  grid.set_temporal_interpolation_scale(temporal.value_or(1.0));
  grid.set_arithmetic(tower.model.arithmetic());
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

}  // namespace posenc
