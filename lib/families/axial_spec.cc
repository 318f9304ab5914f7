#include "lib/families/axial_spec.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/families/axial_presets.h"
#include "lib/families/checks.h"
#include "lib/families/grid_selection.h"
#include "lib/families/token_order.h"

namespace posenc {
namespace {

constexpr int64_t kMaxHeadDim = 65536;
constexpr int kMaxAxes = 8;
constexpr int64_t kMaxIdentityRows = int64_t{1} << 20;

std::string Path(absl::string_view field) { return absl::StrCat("axial_rope.", field); }

void FillFromPreset(const AxialPreset& preset, v1::AxialRopeSpec* spec) {
  if (spec->axes().empty()) {
    for (v1::AxialRopeAxis& axis : preset.axes(spec->head_dim())) *spec->add_axes() = axis;
  }
  if (!spec->has_rope_theta()) spec->set_rope_theta(preset.rope_theta);
  if (spec->frequency_rule() == 0) spec->set_frequency_rule(preset.frequency_rule);
  if (spec->arrangement() == 0) spec->set_arrangement(preset.arrangement);
  if (spec->pairing() == 0) spec->set_pairing(preset.pairing);
  if (spec->coordinate_rule() == 0) spec->set_coordinate_rule(preset.coordinate_rule);
  if (!spec->has_coordinate_offset()) spec->set_coordinate_offset(preset.coordinate_offset);
  if (!spec->has_coordinate_scale()) spec->set_coordinate_scale(preset.coordinate_scale);
  if (spec->token_order() == 0) spec->set_token_order(preset.token_order);
  if (!spec->has_prefix_identity_rows()) spec->set_prefix_identity_rows(0);
  if (!spec->has_suffix_identity_rows()) {
    spec->set_suffix_identity_rows(preset.suffix_identity_rows);
  }
  if (spec->arithmetic() == 0) spec->set_arithmetic(preset.arithmetic);
}

absl::Status CheckEnums(const v1::AxialRopeSpec& spec) {
  RETURN_IF_ERROR(CheckEnumUpTo(Path("frequency_rule"), spec.frequency_rule(),
                                v1::AXIAL_FREQUENCY_RULE_LOG_BANDS));
  RETURN_IF_ERROR(
      CheckEnumUpTo(Path("arrangement"), spec.arrangement(), v1::AXIAL_ARRANGEMENT_ALTERNATING));
  RETURN_IF_ERROR(CheckEnumUpTo(Path("pairing"), spec.pairing(), v1::AXIAL_PAIRING_HALF_PER_AXIS));
  RETURN_IF_ERROR(CheckEnumUpTo(Path("coordinate_rule"), spec.coordinate_rule(),
                                v1::AXIAL_COORDINATE_RULE_REGION));
  RETURN_IF_ERROR(
      CheckEnumUpTo(Path("token_order"), spec.token_order(), v1::GRID_TOKEN_ORDER_MERGE_WINDOWS));
  return CheckEnumUpTo(Path("arithmetic"), spec.arithmetic(), v1::ARITHMETIC_EXACT);
}

absl::Status CheckNumbers(const v1::AxialRopeSpec& spec) {
  RETURN_IF_ERROR(CheckFrequencyBase(Path("rope_theta"), spec.rope_theta()));
  RETURN_IF_ERROR(CheckInRange(Path("coordinate_offset"), spec.coordinate_offset(), -kMaxCoordinate,
                               kMaxCoordinate));
  RETURN_IF_ERROR(CheckCoordinateScale(Path("coordinate_scale"), spec.coordinate_scale()));
  RETURN_IF_ERROR(CheckInRange(Path("prefix_identity_rows"), spec.prefix_identity_rows(),
                               int64_t{0}, kMaxIdentityRows));
  return CheckInRange(Path("suffix_identity_rows"), spec.suffix_identity_rows(), int64_t{0},
                      kMaxIdentityRows);
}

// Fills in or refuses a field that only some choice of another one reads.
absl::Status OnlyWhen(bool is_read, absl::string_view field, bool is_set, absl::string_view when) {
  if (is_read || !is_set) return absl::OkStatus();
  return FieldError(field, absl::StrCat("has no effect without ", when));
}

absl::Status CanonicalizeOrder(v1::AxialRopeSpec* spec) {
  const bool windows = spec->token_order() == v1::GRID_TOKEN_ORDER_MERGE_WINDOWS;
  const bool merges = windows || spec->token_order() == v1::GRID_TOKEN_ORDER_MERGE_BLOCKS;
  RETURN_IF_ERROR(
      OnlyWhen(merges, Path("merge_size"), spec->has_merge_size(), "a token_order that merges"));
  RETURN_IF_ERROR(
      OnlyWhen(windows, Path("window_size"), spec->has_window_size(), "token_order merge_windows"));
  if (merges && !spec->has_merge_size()) spec->set_merge_size(2);
  if (windows && !spec->has_window_size()) spec->set_window_size(4);
  if (merges) {
    RETURN_IF_ERROR(CheckInRange(Path("merge_size"), spec->merge_size(), int64_t{1}, kMaxGridSide));
  }
  if (!windows) return absl::OkStatus();
  return CheckInRange(Path("window_size"), spec->window_size(), int64_t{1}, kMaxGridSide);
}

absl::Status CanonicalizeBands(v1::AxialRopeSpec* spec) {
  const bool bands = spec->frequency_rule() == v1::AXIAL_FREQUENCY_RULE_LINEAR_BANDS ||
                     spec->frequency_rule() == v1::AXIAL_FREQUENCY_RULE_LOG_BANDS;
  RETURN_IF_ERROR(OnlyWhen(bands, Path("max_resolution"), spec->has_max_resolution(),
                           "a frequency_rule of bands"));
  if (!bands) return absl::OkStatus();
  if (!spec->has_max_resolution()) spec->set_max_resolution(224);
  return CheckInRange(Path("max_resolution"), spec->max_resolution(), int64_t{2}, kMaxGridSide);
}

absl::Status CanonicalizeRegion(const std::string& path, const v1::AxialRopeSpec& spec,
                                v1::AxialRopeAxis* axis) {
  const bool region = spec.coordinate_rule() == v1::AXIAL_COORDINATE_RULE_REGION;
  const bool rescaled = spec.coordinate_rule() == v1::AXIAL_COORDINATE_RULE_RESCALED;
  const bool counts = axis->axis() == v1::GRID_AXIS_T;
  const std::string start = absl::StrCat(path, ".start");
  const std::string stop = absl::StrCat(path, ".stop");
  RETURN_IF_ERROR(OnlyWhen(region && !counts, start, axis->has_start(),
                           "coordinate_rule region, or on frames"));
  RETURN_IF_ERROR(OnlyWhen((region || rescaled) && !counts, stop, axis->has_stop(),
                           "coordinate_rule region or rescaled, or on frames"));
  if (counts || !(region || rescaled)) return absl::OkStatus();
  if (!axis->has_stop()) return FieldError(stop, "is required for this coordinate_rule");
  if (region && !axis->has_start()) axis->set_start(0);
  RETURN_IF_ERROR(CheckInRange(start, axis->start(), -kMaxCoordinate, kMaxCoordinate));
  return CheckInRange(stop, axis->stop(), -kMaxCoordinate, kMaxCoordinate);
}

absl::Status CanonicalizeAxes(v1::AxialRopeSpec* spec) {
  if (spec->axes_size() > kMaxAxes) {
    return FieldError(Path("axes"),
                      absl::StrCat("must be at most ", kMaxAxes, ", got ", spec->axes_size()));
  }
  int64_t left = spec->head_dim();
  for (int i = 0; i < spec->axes_size(); ++i) {
    v1::AxialRopeAxis& axis = *spec->mutable_axes(i);
    const std::string path = absl::StrCat("axial_rope.axes[", i, "]");
    RETURN_IF_ERROR(CheckGridAxis(absl::StrCat(path, ".axis"), axis.axis()));
    if (axis.dim() < 2 || axis.dim() % 2 != 0 || axis.dim() > left) {
      return FieldError(absl::StrCat(path, ".dim"),
                        absl::StrCat("must be even, at least 2 and fit in what is left of "
                                     "head_dim (",
                                     left, "), got ", axis.dim()));
    }
    left -= axis.dim();
    RETURN_IF_ERROR(CanonicalizeRegion(path, *spec, &axis));
  }
  return absl::OkStatus();
}

// Choices that only make sense together.
absl::Status CheckArrangement(const v1::AxialRopeSpec& spec) {
  const bool shared = spec.frequency_rule() == v1::AXIAL_FREQUENCY_RULE_SHARED;
  const bool alternating = spec.arrangement() == v1::AXIAL_ARRANGEMENT_ALTERNATING;
  if (alternating && spec.pairing() == v1::AXIAL_PAIRING_HALF_PER_AXIS) {
    return FieldError(Path("pairing"), "half_per_axis needs arrangement blocks");
  }
  if (!shared && !alternating) return absl::OkStatus();
  for (int i = 1; i < spec.axes_size(); ++i) {
    if (spec.axes(i).dim() == spec.axes(0).dim()) continue;
    return FieldError(absl::StrCat("axial_rope.axes[", i, "].dim"),
                      absl::StrCat("must equal that of axes[0] (", spec.axes(0).dim(), ") for ",
                                   shared ? "frequency_rule shared" : "arrangement alternating",
                                   ", got ", spec.axes(i).dim()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CanonicalizeAxialRope(v1::AxialRopeSpec* spec) {
  if (spec->preset() == 0) spec->set_preset(v1::AXIAL_ROPE_PRESET_QWEN_VL);
  RETURN_IF_ERROR(
      CheckEnumUpTo(Path("preset"), spec->preset(), static_cast<int>(AxialPresets().size())));
  if (!spec->has_head_dim()) return FieldError(Path("head_dim"), "is required");
  RETURN_IF_ERROR(CheckInRange(Path("head_dim"), spec->head_dim(), int64_t{2}, kMaxHeadDim));
  FillFromPreset(AxialPresets()[static_cast<size_t>(spec->preset() - 1)], spec);
  RETURN_IF_ERROR(CheckEnums(*spec));
  RETURN_IF_ERROR(CheckNumbers(*spec));
  RETURN_IF_ERROR(CanonicalizeOrder(spec));
  RETURN_IF_ERROR(CanonicalizeBands(spec));
  RETURN_IF_ERROR(CanonicalizeAxes(spec));
  return CheckArrangement(*spec);
}

}  // namespace posenc
