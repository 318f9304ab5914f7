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
#include "lib/model_config/rope_rules.h"

namespace posenc {
namespace {

// Channels of each axis: the file's list (diffusers), the family's, or equal parts.
absl::StatusOr<std::vector<int64_t>> AxisDims(const Tower& tower, size_t axes, int64_t head_dim) {
  const AxialTraits& traits = tower.family.axial;
  const int64_t equal = traits.rope_type == "multi_axis" ? head_dim / static_cast<int64_t>(axes)
                                                         : head_dim / traits.head_parts;
  std::vector<int64_t> dims(axes, equal);
  const JsonValue list = tower.keys["axes_dims_rope"];
  if (list.has_value()) {
    ASSIGN_OR_RETURN(dims, ReadInts(list));
  } else if (traits.axes_dim[0] != 0) {
    dims.assign(traits.axes_dim.begin(), traits.axes_dim.end());
  }
  const int64_t sum = std::accumulate(dims.begin(), dims.end(), int64_t{0});
  if (dims.size() != axes || (traits.rope_type == "multi_axis" && sum != head_dim)) {
    return FieldError(list.present() ? list.field() : tower.keys.FieldOf("attention_head_dim"),
                      absl::StrCat("must be ", axes, " axes that sum to the head's ", head_dim,
                                   " channels, are ", dims.size(), " that sum to ", sum));
  }
  return dims;
}

absl::StatusOr<double> AxialTheta(const Tower& tower) {
  ASSIGN_OR_RETURN(
      const std::optional<double> theta,
      ReadPositiveNumber(FirstOf(tower.keys, "rope_parameters/rope_theta rope_theta theta")));
  return theta.value_or(tower.family.axial.theta);
}

v1::GridAxis AxisOf(absl::string_view name) {
  return name == "t"                  ? v1::GRID_AXIS_T
         : name == "h" || name == "y" ? v1::GRID_AXIS_Y
                                      : v1::GRID_AXIS_X;
}

// Patches on a side of a window of attention, in merged squares (Qwen2.5-VL).
absl::StatusOr<int64_t> WindowSize(const Tower& tower, int64_t merge_size) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> window, ReadPositiveInt(tower.keys["window_size"]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> patch, ReadPositiveInt(tower.keys["patch_size"]));
  return std::max<int64_t>(1, window.value_or(112) / merge_size / patch.value_or(14));
}

// The encoding itself: the family's preset with what the file says otherwise.
absl::Status SetSpec(const Tower& tower, const v1::AxialRope& axial, std::optional<int64_t> merge,
                     v1::AxialRopeSpec* spec) {
  const AxialTraits& traits = tower.family.axial;
  spec->set_preset(traits.preset);
  spec->set_head_dim(axial.head_dim());
  spec->set_rope_theta(axial.rope_theta());
  spec->set_arithmetic(tower.model.arithmetic());
  const bool windows = traits.preset == v1::AXIAL_ROPE_PRESET_QWEN2_5_VL;
  const bool merges = windows || traits.preset == v1::AXIAL_ROPE_PRESET_QWEN_VL;
  if (merges && merge.has_value()) spec->set_merge_size(*merge);
  if (windows) {
    ASSIGN_OR_RETURN(const int64_t window_size, WindowSize(tower, merge.value_or(2)));
    spec->set_window_size(window_size);
  }
  if (traits.rope_type != "multi_axis") return absl::OkStatus();
  for (int i = 0; i < axial.axes_size(); ++i) {
    v1::AxialRopeAxis* axis = spec->add_axes();
    axis->set_axis(AxisOf(axial.axes(i)));
    axis->set_dim(axial.axis_dim(i));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveAxialRope(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  const AxialTraits& traits = tower.family.axial;
  const JsonValue head_key = FirstOf(tower.keys, "head_dim attention_head_dim");
  ASSIGN_OR_RETURN(const std::optional<int64_t> given, ReadPositiveInt(head_key));
  int64_t head_dim = given.value_or(0);
  if (head_dim == 0) {
    ASSIGN_OR_RETURN(head_dim, HiddenOverHeads(tower));
  }
  // Two axes of whole pairs, or the table has no place for the last channels.
  if (head_dim % 4 != 0) {
    return FieldError(
        head_key.present() ? head_key.field() : tower.keys.FieldOf("head_dim"),
        absl::StrCat("must be a multiple of 4 to hold pairs of two axes, got ", head_dim));
  }
  const std::vector<std::string> axes = absl::StrSplit(traits.axes, ' ');
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims, AxisDims(tower, axes.size(), head_dim));
  ASSIGN_OR_RETURN(const double theta, AxialTheta(tower));
  ASSIGN_OR_RETURN(const std::optional<int64_t> merge,
                   ReadPositiveInt(tower.keys["spatial_merge_size"]));
  v1::ResolvedEncoding encoding = NewEncoding(tower, "rope");
  encoding.set_rope_type(std::string(traits.rope_type));
  encoding.set_rotation(std::string(RotationName(traits.rotation)));
  v1::AxialRope& axial = *encoding.mutable_axial();
  axial.mutable_axes()->Assign(axes.begin(), axes.end());
  axial.mutable_axis_dim()->Assign(dims.begin(), dims.end());
  axial.set_head_dim(head_dim);
  axial.set_rotary_dim(head_dim);
  axial.set_rope_theta(theta);
  axial.set_spatial_merge_size(merge.value_or(1));
  RETURN_IF_ERROR(SetSpec(tower, axial, merge, encoding.mutable_spec()->mutable_axial_rope()));
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

}  // namespace posenc
