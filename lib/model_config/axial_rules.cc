#include "lib/model_config/axial_rules.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/places.h"
#include "lib/model_config/rope_rules.h"

namespace posenc {
namespace {

constexpr absl::string_view kThetaKeys =
    "rope_parameters/rope_theta rope_theta theta memory_attention_rope_theta";

// Qwen2.5-VL's, in pixels, where the file has none.
constexpr int64_t kPatchSize = 14;

v1::GridAxis AxisOf(absl::string_view name) {
  if (name == "t") return v1::GRID_AXIS_T;
  return name == "h" || name == "y" ? v1::GRID_AXIS_Y : v1::GRID_AXIS_X;
}

// Channels of each axis that the file gives (diffusers); empty where it does not.
absl::StatusOr<std::vector<int64_t>> GivenDims(const Tower& tower, size_t axes, int64_t head_dim) {
  const JsonValue list = FirstOf(tower.keys, "axes_dims_rope rope_axes_dim");
  if (!list.has_value()) return std::vector<int64_t>();
  ASSIGN_OR_RETURN(std::vector<int64_t> dims, ReadInts(list));
  const int64_t sum = std::accumulate(dims.begin(), dims.end(), int64_t{0});
  const bool even =
      std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim > 0 && dim % 2 == 0; });
  if (dims.size() != axes || sum != head_dim || !even) {
    return FieldError(list.field(),
                      absl::StrCat("must be ", axes, " even numbers that sum to the ", "head's ",
                                   head_dim, " channels, are ", dims.size(), " that sum to ", sum));
  }
  return dims;
}

// The d of each axis where the family's rule is a plain share of the head.
std::vector<int64_t> SharedDims(const AxialTraits& traits, size_t axes, int64_t head_dim) {
  if (traits.head_parts > 0) return std::vector<int64_t>(axes, head_dim / traits.head_parts);
  if (traits.axes_dim[0] == 0 || head_dim != traits.head_dim) return {};
  return {traits.axes_dim.begin(), traits.axes_dim.end()};
}

// A head that is a quotient of three keys; nothing where the file has no width.
absl::StatusOr<std::optional<int64_t>> QuotientHeadDim(const Tower& tower) {
  const AxialTraits& traits = tower.family.axial;
  if (traits.width_key.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(const std::optional<int64_t> width,
                   ReadPositiveInt(tower.keys[traits.width_key]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> heads,
                   ReadPositiveInt(tower.keys[traits.heads_key]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> divisor,
                   ReadPositiveInt(tower.keys[traits.divisor_key]));
  if (!width.has_value()) return std::nullopt;
  return *width / divisor.value_or(1) / heads.value_or(1);
}

// A rope_parameters of a tower says that it is over axes, or nothing.
absl::Status CheckAxialType(const Tower& tower) {
  const JsonValue type = FirstOf(tower.keys,
                                 "rope_parameters/rope_type rope_parameters/type "
                                 "rope_scaling/rope_type rope_scaling/type");
  ASSIGN_OR_RETURN(const std::optional<std::string> name, ReadString(type));
  if (!name.has_value() || *name == "default" || *name == "axial" || *name == "mrope") {
    return absl::OkStatus();
  }
  return FieldError(type.field(), absl::StrCat("must be axial or default for a RoPE over a grid, ",
                                               "got ", type.Describe()));
}

absl::StatusOr<int64_t> AxialHeadDim(const Tower& tower) {
  const JsonValue value = FirstOf(tower.keys, "head_dim attention_head_dim");
  ASSIGN_OR_RETURN(std::optional<int64_t> given, ReadPositiveInt(value));
  if (!given.has_value()) {
    ASSIGN_OR_RETURN(given, QuotientHeadDim(tower));
  }
  int64_t head_dim = given.value_or(tower.family.axial.head_dim);
  if (head_dim == 0) {
    ASSIGN_OR_RETURN(head_dim, HiddenOverHeads(tower));
  }
  // Two axes of whole pairs, or the table has no place for the last channels.
  if (head_dim < 4 || head_dim % 4 != 0) {
    return FieldError(
        value.present() ? value.field() : tower.keys.FieldOf("head_dim"),
        absl::StrCat("must be a multiple of 4 to hold pairs of two axes, got ", head_dim));
  }
  return head_dim;
}

// Side of a window in merged squares: of a key of the family's, or of window_size, which
// Qwen2.5-VL has in pixels. Absent where the file does not say.
absl::StatusOr<std::optional<int64_t>> WindowSize(const Tower& tower, int64_t merge_size) {
  const AxialTraits& traits = tower.family.axial;
  if (!traits.window_key.empty()) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> own,
                     ReadPositiveInt(tower.keys[traits.window_key]));
    return own.value_or(traits.window_size);
  }
  ASSIGN_OR_RETURN(const std::optional<int64_t> pixels, ReadPositiveInt(tower.keys["window_size"]));
  ASSIGN_OR_RETURN(const std::vector<int64_t> patch, ReadSides(tower.keys["patch_size"]));
  if (!pixels.has_value()) return std::nullopt;
  const int64_t squares = *pixels / (patch.empty() ? kPatchSize : patch[0]) / merge_size;
  if (squares >= 1) return squares;
  return FieldError(tower.keys["window_size"].field(),
                    absl::StrCat("must hold a square of merged patches, got ", *pixels));
}

// Squares of patches that one token of the language model stands for, and windows of them.
absl::Status SetTokenOrder(const Tower& tower, v1::AxialRopeSpec* spec, v1::AxialRope* facts) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> merge,
                   ReadPositiveInt(tower.keys["spatial_merge_size"]));
  const v1::AxialRopePreset preset = spec->preset();
  const bool windows = preset == v1::AXIAL_ROPE_PRESET_QWEN2_5_VL;
  if (tower.family.axial.row_major) {
    spec->set_token_order(v1::GRID_TOKEN_ORDER_ROW_MAJOR);
    facts->set_spatial_merge_size(1);
    return absl::OkStatus();
  }
  if (!windows && preset != v1::AXIAL_ROPE_PRESET_QWEN_VL &&
      preset != v1::AXIAL_ROPE_PRESET_MINIMAX_M3) {
    facts->set_spatial_merge_size(merge.value_or(1));
    return absl::OkStatus();
  }
  spec->set_merge_size(merge.value_or(tower.family.axial.merge_size));
  facts->set_spatial_merge_size(spec->merge_size());
  if (!windows) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<int64_t> window, WindowSize(tower, spec->merge_size()));
  if (window.has_value()) spec->set_window_size(*window);
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveAxialRope(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  const AxialTraits& traits = tower.family.axial;
  RETURN_IF_ERROR(CheckAxialType(tower));
  ASSIGN_OR_RETURN(const int64_t head_dim, AxialHeadDim(tower));
  const std::vector<std::string> axes = absl::StrSplit(traits.axes, ' ');
  ASSIGN_OR_RETURN(const std::vector<int64_t> given, GivenDims(tower, axes.size(), head_dim));
  const std::vector<int64_t> dims =
      given.empty() ? SharedDims(traits, axes.size(), head_dim) : given;
  ASSIGN_OR_RETURN(const std::optional<double> theta,
                   ReadPositiveNumber(FirstOf(tower.keys, kThetaKeys)));

  v1::ResolvedEncoding encoding = NewEncoding(tower, "rope");
  encoding.set_rope_type(std::string(traits.rope_type));
  encoding.set_rotation(std::string(RotationName(traits.rotation)));
  encoding.set_variant(std::string(traits.variant));
  v1::AxialRope& facts = *encoding.mutable_axial();
  facts.mutable_axes()->Assign(axes.begin(), axes.end());
  facts.mutable_axis_dim()->Assign(dims.begin(), dims.end());
  facts.set_head_dim(head_dim);
  facts.set_rotary_dim(head_dim);
  facts.set_rope_theta(theta.value_or(traits.theta));

  v1::AxialRopeSpec& spec = *encoding.mutable_spec()->mutable_axial_rope();
  spec.set_preset(traits.preset);
  spec.set_head_dim(head_dim);
  if (theta.has_value()) spec.set_rope_theta(*theta);
  spec.set_arithmetic(tower.model.arithmetic());
  if (traits.coordinate_offset != 0) spec.set_coordinate_offset(traits.coordinate_offset);
  for (size_t i = 0; i < dims.size() && (!given.empty() || traits.own_axes); ++i) {
    v1::AxialRopeAxis& axis = *spec.add_axes();
    axis.set_axis(AxisOf(axes[i]));
    axis.set_dim(dims[i]);
  }
  RETURN_IF_ERROR(SetTokenOrder(tower, &spec, &facts));
  AddPlace("rope_theta", tower.keys, kThetaKeys, &encoding);
  AddPlace("head_dim", tower.keys, "head_dim attention_head_dim hidden_size embed_dim", &encoding);
  AddPlace("merge_size", tower.keys, "spatial_merge_size", &encoding);
  AddPlace("window_size", tower.keys, "window_size", &encoding);
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

}  // namespace posenc
