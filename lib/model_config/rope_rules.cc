#include "lib/model_config/rope_rules.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/layer_rules.h"
#include "lib/model_config/length_scaling.h"
#include "lib/model_config/places.h"
#include "lib/model_config/rope_beside.h"
#include "lib/model_config/rope_keys.h"
#include "lib/model_config/rope_lints.h"
#include "lib/model_config/rope_scaling.h"
#include "lib/model_config/rope_theta.h"
#include "lib/model_config/rope_width.h"

namespace posenc {
namespace {

// Which code's variant of the type it is.
std::string VariantOf(const Tower& tower, const RopeTypeName& type, const v1::RopeSpec& rope) {
  if (type.written == "telechat3-yarn") return "yarn_telechat3";
  if (rope.ntk().has_alpha()) return "dynamic_alpha";
  const absl::string_view of_family = tower.family.rope.variant;
  if (rope.dynamic().growth() == v1::DYNAMIC_GROWTH_POWER_OF_TWO) {
    return of_family.empty() ? "dynamic_qwen1" : std::string(of_family);
  }
  if (rope.linear().divide_positions()) return "divided_positions";
  return std::string(of_family);
}

absl::Status AddGroup(const Tower& tower, const LayerGroup& group, int64_t max_position,
                      v1::ResolveModelConfigResponse* response) {
  const RopeTraits& traits = tower.family.rope;
  ASSIGN_OR_RETURN(const RopeTypeName type, RopeTypeOf(tower, group.keys));
  ASSIGN_OR_RETURN(const RopeWidth width, WidthOf(tower, group, type.rope_type));
  ASSIGN_OR_RETURN(const double theta, RopeTheta(tower, group));
  NoteMisplacedKeys(tower, group.keys);
  if (group.theta_keys.empty()) NoteUnreadBase(tower, theta);
  NoteUnreadKeys(tower);

  v1::ResolvedEncoding encoding = NewEncoding(tower, "rope");
  encoding.set_layer_type(group.layer_type);
  encoding.mutable_layers()->Assign(group.layers.begin(), group.layers.end());
  encoding.mutable_nope_layers()->Assign(group.nope_layers.begin(), group.nope_layers.end());
  encoding.set_rope_type(type.rope_type);
  encoding.set_max_position_embeddings(max_position);
  encoding.set_rotation(std::string(RotationName(width.rotation)));
  encoding.set_rotary_channels_last(width.channels_last);
  v1::RopeSpec& rope = *encoding.mutable_spec()->mutable_rope();
  rope.set_head_dim(width.head_dim);
  rope.set_rotary_dim(width.rotary_dim);
  rope.set_rope_theta(theta);
  rope.set_pairing(width.rotation == Rotation::kHalf ? v1::PAIRING_HALF : v1::PAIRING_INTERLEAVED);
  rope.set_arithmetic(tower.model.arithmetic() != v1::ARITHMETIC_UNSPECIFIED
                          ? tower.model.arithmetic()
                          : traits.arithmetic);
  const ScalingInput input = {tower,
                              group.keys,
                              type,
                              max_position,
                              width.head_dim,
                              width.rotary_dim,
                              group.attention_factor};
  ASSIGN_OR_RETURN(const std::string own_type, SetOwnScaling(input, &rope));
  if (own_type.empty()) {
    RETURN_IF_ERROR(SetScaling(input, &rope));
  } else {
    encoding.set_rope_type(own_type);
  }
  encoding.set_variant(VariantOf(tower, type, rope));
  RETURN_IF_ERROR(SetMrope(input, &encoding));
  RETURN_IF_ERROR(SetQueryScale(input, &encoding));
  if (width.channels_last) encoding.set_softmax_scale_multiplier(MlaSoftmaxScale(input));
  NoteLostScaling(tower, encoding);
  NoteForeignBase(tower, group.keys, encoding.spec().rope());
  NoteScalingOnlyNewForm(tower, group.keys, encoding.rope_type());
  AddRopePlaces(tower, group, width.partial, &encoding);
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

// Kimi's linear models keep the rope part of a head without turning it; others
// have a switch.
absl::StatusOr<bool> Disabled(const Tower& tower) {
  ASSIGN_OR_RETURN(const std::optional<bool> mla_nope, ReadBool(tower.keys["mla_use_nope"]));
  if (mla_nope.value_or(false)) return true;
  if (tower.family.rope.enabled_by_theta) {
    return !FirstOf(tower.keys, "rope_theta rope_parameters/rope_theta rope_scaling/rope_theta")
                .present();
  }
  if (const absl::string_view key = tower.family.rope.enabled_key; !key.empty()) {
    ASSIGN_OR_RETURN(const std::optional<bool> enabled, ReadBool(tower.keys[key]));
    return !enabled.value_or(tower.family.rope.enabled_by_default);
  }
  if (tower.family.rope.layers != LayerRule::kGraniteHybrid) return false;
  const JsonValue type = tower.keys["position_embedding_type"];
  return !type.is_string() || type.string() != "rope";
}

// Zamba 2: its class multiplies the base when it is made, and saves the product.
absl::Status CheckRefusedSwitch(const Tower& tower) {
  const absl::string_view key = tower.family.rope.refused_switch_key;
  if (key.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<bool> on, ReadBool(tower.keys[key]));
  if (!on.value_or(false)) return absl::OkStatus();
  return FieldError(tower.keys[key].field(),
                    "must be false: whether the base of the file is multiplied for it already is "
                    "not said; give the base that is meant as rope_theta");
}

v1::ResolvedEncoding NoRotation(const Tower& tower, int64_t num_layers, int64_t max_position) {
  v1::ResolvedEncoding encoding = NewEncoding(tower, "none");
  encoding.set_max_position_embeddings(max_position);
  for (int64_t i = 0; i < num_layers; ++i) encoding.add_nope_layers(i);
  return encoding;
}

}  // namespace

absl::string_view RotationName(Rotation rotation) {
  switch (rotation) {
    case Rotation::kHalf:
      return "half";
    case Rotation::kInterleaved:
      return "interleaved";
    case Rotation::kInterleavedToHalf:
      return "interleaved_to_half";
    case Rotation::kComplex:
      return "complex";
    case Rotation::kHalfPerAxis:
      return "half_per_axis";
  }
  return "";
}

absl::Status ResolveRope(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const bool disabled, Disabled(tower));
  ASSIGN_OR_RETURN(const std::optional<int64_t> num_layers, NumLayers(tower));
  ASSIGN_OR_RETURN(const int64_t max_position, MaxPositionEmbeddings(tower));
  if (disabled) {
    *response->add_encodings() = NoRotation(tower, num_layers.value_or(0), max_position);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckRefusedSwitch(tower));
  ASSIGN_OR_RETURN(const RopeKeys keys, FindRopeKeys(tower));
  ASSIGN_OR_RETURN(const std::vector<LayerGroup> groups, GroupLayers(tower, keys));
  NotePositionType(tower);
  NoteUnevenHeads(tower);
  NoteUnreadParameters(tower);
  if (groups.empty()) {
    *response->add_encodings() = NoRotation(tower, num_layers.value_or(0), max_position);
  }
  for (const LayerGroup& group : groups) {
    RETURN_IF_ERROR(AddGroup(tower, group, max_position, response));
  }
  return absl::OkStatus();
}

}  // namespace posenc
