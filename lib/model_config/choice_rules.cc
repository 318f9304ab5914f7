#include "lib/model_config/choice_rules.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/axial_rules.h"
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

// CogVideoX's image models: beside the rotation, a stored row for each token of the text and of
// the video that it was trained on (CogVideoXPatchEmbed).
absl::Status AddVideoRows(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  struct Size {
    absl::string_view key;
    int64_t by_class;
  };
  std::vector<int64_t> sizes;
  for (const Size& size :
       {Size{"max_text_seq_length", 226}, Size{"sample_frames", 49},
        Size{"temporal_compression_ratio", 4}, Size{"sample_height", 60}, Size{"sample_width", 90},
        Size{"patch_size", 2}, Size{"num_attention_heads", 30}, Size{"attention_head_dim", 64}}) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> given, ReadPositiveInt(tower.keys[size.key]));
    sizes.push_back(given.value_or(size.by_class));
    // A product of four of these is an int64.
    if (sizes.back() > kMaxGridSide) {
      return FieldError(tower.keys[size.key].field(),
                        absl::StrCat("must be at most ", kMaxGridSide, ", got ", sizes.back()));
    }
  }
  const int64_t frames = (sizes[1] - 1) / sizes[2] + 1;
  v1::ResolvedEncoding encoding = NewEncoding(tower, "learned");
  encoding.set_layer_type("tokens");
  v1::LearnedTable& table = *encoding.mutable_learned();
  table.set_rows(sizes[0] + frames * (sizes[3] / sizes[5]) * (sizes[4] / sizes[5]));
  table.set_usable(table.rows());
  table.set_dim(sizes[6] * sizes[7]);
  table.set_prefix_tokens(sizes[0]);
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

absl::Status ResolveCogVideoX(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::optional<bool> rotary,
                   ReadBool(tower.keys["use_rotary_positional_embeddings"]));
  ASSIGN_OR_RETURN(const std::optional<bool> learned,
                   ReadBool(tower.keys["use_learned_positional_embeddings"]));
  if (rotary.value_or(false)) {
    RETURN_IF_ERROR(ResolveAxialRope(tower, response));
    return learned.value_or(false) ? AddVideoRows(tower, response) : absl::OkStatus();
  }
  if (learned.value_or(false)) {
    return FieldError(tower.keys["use_learned_positional_embeddings"].field(),
                      "must be false without use_rotary_positional_embeddings, got true");
  }
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
