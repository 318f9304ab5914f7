#include "lib/model_config/rope_width.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"

namespace posenc {
namespace {

struct HeadDim {
  int64_t channels;
  bool latent;  // it is the separate rope part of a latent-attention head
};

// A latent-attention family whose file switches it off, or leaves no rope part,
// has ordinary heads.
absl::StatusOr<bool> LatentAttention(const Tower& tower) {
  if (tower.family.rope.head_dim_keys != "qk_rope_head_dim") return false;
  ASSIGN_OR_RETURN(const std::optional<bool> use_mla, ReadBool(tower.keys["use_mla"]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> rope_part, ReadInt(tower.keys["qk_rope_head_dim"]));
  return use_mla.value_or(true) && rope_part.value_or(1) != 0;
}

// Its own key (0 and null say nothing), else the family's, else hidden_size /
// num_attention_heads, whole.
absl::StatusOr<HeadDim> ReadHeadDim(const Tower& tower, const LayerGroup& group) {
  const RopeTraits& traits = tower.family.rope;
  ASSIGN_OR_RETURN(const bool latent, LatentAttention(tower));
  absl::string_view keys = traits.head_dim_keys;
  if (keys == "qk_rope_head_dim" && !latent) keys = "head_dim";
  if (!group.head_dim_key.empty()) keys = group.head_dim_key;
  ASSIGN_OR_RETURN(const JsonValue value, OneOf(tower.keys, keys));
  ASSIGN_OR_RETURN(const std::optional<int64_t> given, ReadInt(value));
  if (given.value_or(0) > 0) return HeadDim{*given, latent};
  const bool absent = !tower.keys[keys.substr(0, keys.find(' '))].present();
  int64_t by_family = group.head_dim != 0 ? group.head_dim : traits.head_dim;
  if (traits.head_dim_keys == "qk_rope_head_dim" && !latent) by_family = 0;
  if (by_family != 0 && (absent || latent)) return HeadDim{by_family, latent};
  ASSIGN_OR_RETURN(const int64_t channels, HiddenOverHeads(tower, traits.hidden_sizes));
  return HeadDim{channels, false};
}

// partial_rotary_factor: inside the map, else beside it, else the family's.
// `value` is where it stands, absent for the family's.
struct Partial {
  double factor;
  JsonValue value;
};

// A class that overwrites what the file says beside the map (Bamba).
void NoteForcedPartial(const Tower& tower) {
  const RopeTraits& traits = tower.family.rope;
  const JsonValue value = tower.keys["partial_rotary_factor"];
  if (!traits.partial_keys.empty() || traits.map_key == "-" || !value.is_number() ||
      value.number() == traits.partial) {
    return;
  }
  tower.findings.Add(Rule::kRopeKeyIgnored, value,
                     {.message = absl::StrCat("The class of this family overwrites ",
                                              "partial_rotary_factor with ",
                                              NumberText(traits.partial), ", as here."),
                      .expected = NumberText(traits.partial),
                      .fix = MemberText(value.key(), NumberText(traits.partial))});
}

absl::StatusOr<Partial> ReadPartial(const Tower& tower, const LayerGroup& group,
                                    absl::string_view rope_type) {
  const RopeTraits& traits = tower.family.rope;
  const JsonValue inner = group.keys.Find("partial_rotary_factor");
  ASSIGN_OR_RETURN(const JsonValue beside_map, OneOf(tower.keys, traits.partial_keys));
  const JsonValue outer = group.partial_value.has_value() ? group.partial_value : beside_map;
  NoteForcedPartial(tower);
  ASSIGN_OR_RETURN(const std::optional<double> inside, ReadPositiveNumber(inner));
  ASSIGN_OR_RETURN(const std::optional<double> beside, ReadPositiveNumber(outer));
  Partial partial = {traits.partial, JsonValue()};
  if (beside.has_value()) partial = {*beside, outer};
  if (inside.has_value()) partial = {*inside, inner};
  if (partial.factor > 1) {
    return FieldError(partial.value.field(),
                      absl::StrCat("must be at most 1, got ", partial.value.Text()));
  }
  const bool v5_16 = tower.compat() == v1::COMPAT_V5_16;
  // Since 5.0 only some classes honour it without a scaling.
  const bool v5_ignores = rope_type == "default" && !traits.partial_in_v5;
  if (inside.has_value() && beside.has_value() && *inside != *beside) {
    const bool outer_wins = v5_16 && rope_type != "default";
    if (outer_wins) partial = {*beside, outer};
    const absl::string_view used =
        outer_wins            ? "the former is used, as transformers 5.16 does for scaled types."
        : v5_16 && v5_ignores ? "neither is used, as in transformers 5.16 without a scaling."
                              : "the latter is used. transformers 5.16 uses the former for scaled "
                                "types.";
    tower.findings.Add(
        Rule::kPartialMismatch, outer,
        {.message = absl::StrCat(outer.pointer(), " and ", inner.pointer(), " differ; ", used),
         .expected = inner.Text(),
         .fix = MemberText(outer.key(), inner.Text())});
  }
  if (partial.factor != 1 && partial.value.present() && v5_ignores) {
    tower.findings.Add(
        Rule::kCompatDiffers, partial.value,
        {.message = absl::StrCat("transformers 5 ignores partial_rotary_factor in this family and "
                                 "rotates the whole head",
                                 v5_16 ? ", as here; transformers 4 honours it."
                                       : "; transformers 4 honours it, as here.")});
    if (v5_16) partial = {1, JsonValue()};
  }
  return partial;
}

// CLVP: half of what a head would have of the projection, and no less than rotary_dim.
absl::StatusOr<int64_t> HalvedWidth(const Tower& tower) {
  const RopeTraits& traits = tower.family.rope;
  ASSIGN_OR_RETURN(const std::optional<int64_t> width,
                   ReadPositiveInt(tower.keys[traits.halved_width_key]));
  ASSIGN_OR_RETURN(const int64_t heads, RequiredHeads(tower));
  return std::max(width.value_or(traits.halved_width) / (2 * heads), traits.rotary_dim);
}

// The family's own key for the width, where it has one.
absl::StatusOr<std::optional<int64_t>> ReadRotaryDim(const Tower& tower) {
  if (!tower.family.rope.halved_width_key.empty()) return HalvedWidth(tower);
  const absl::string_view key = tower.family.rope.rotary_dim_key;
  if (key.empty()) return std::nullopt;
  const JsonValue value = tower.keys[key];
  ASSIGN_OR_RETURN(const std::optional<int64_t> given, ReadPositiveInt(value));
  if (given.has_value() || value.is_null()) return given;
  if (tower.family.rope.rotary_dim == 0) return std::nullopt;
  return tower.family.rope.rotary_dim;
}

absl::Status CheckWidth(int64_t rotary_dim, int64_t head_dim, const std::string& field,
                        absl::string_view origin) {
  if (rotary_dim >= 2 && rotary_dim % 2 == 0 && rotary_dim <= head_dim) return absl::OkStatus();
  return FieldError(field,
                    absl::StrCat("gives ", rotary_dim, " rotary channels", origin,
                                 ", must be even, at least 2 and at most the head's ", head_dim));
}

// How many channels rotate: trunc(head_dim * partial_rotary_factor), a double
// product as in the frameworks (100 * 0.29 gives 28).
absl::StatusOr<int64_t> RotaryDim(const Tower& tower, const LayerGroup& group,
                                  absl::string_view rope_type, const HeadDim& head) {
  if (head.latent && tower.family.rope.rotary_dim_key.empty()) {
    // The rope part rotates whole; a factor beside it is meant for other layers.
    const JsonValue factor = group.keys.Find("partial_rotary_factor");
    if (factor.is_number() && factor.number() != 1) {
      tower.findings.Add(Rule::kRopeKeyIgnored, factor,
                         {.message = "qk_rope_head_dim is the rotary width itself; "
                                     "partial_rotary_factor does not shrink it."});
    }
    RETURN_IF_ERROR(
        CheckWidth(head.channels, head.channels, tower.keys.FieldOf("qk_rope_head_dim"), ""));
    return head.channels;
  }
  ASSIGN_OR_RETURN(const Partial partial, ReadPartial(tower, group, rope_type));
  ASSIGN_OR_RETURN(std::optional<int64_t> own, ReadRotaryDim(tower));
  // Every channel is in the table of p-RoPE; those that stand still have frequency 0.
  const double factor = rope_type == "proportional" ? 1 : partial.factor;
  const int64_t by_factor = static_cast<int64_t>(static_cast<double>(head.channels) * factor);
  const JsonValue value = tower.keys[tower.family.rope.rotary_dim_key];
  // The family's default gives way to what the file says.
  if (!value.has_value() && partial.value.present()) own.reset();
  if (own.has_value()) {
    const RopeTraits& traits = tower.family.rope;
    const absl::string_view key =
        traits.halved_width_key.empty() ? traits.rotary_dim_key : traits.halved_width_key;
    if (partial.value.present() && by_factor != *own) {
      return FieldError(value.field(), absl::StrCat("contradicts ", partial.value.field(), ": ",
                                                    *own, " against ", by_factor, " channels"));
    }
    RETURN_IF_ERROR(CheckWidth(*own, head.channels, tower.keys.FieldOf(key), ""));
    return *own;
  }
  RETURN_IF_ERROR(CheckWidth(
      by_factor, head.channels,
      partial.value.present() ? partial.value.field() : tower.keys.FieldOf("head_dim"),
      factor == 1 ? "" : absl::StrCat(" (", NumberText(factor), " of ", head.channels, ")")));
  return by_factor;
}

}  // namespace

absl::StatusOr<RopeWidth> WidthOf(const Tower& tower, const LayerGroup& group,
                                  absl::string_view rope_type) {
  const RopeTraits& traits = tower.family.rope;
  ASSIGN_OR_RETURN(const HeadDim head, ReadHeadDim(tower, group));
  ASSIGN_OR_RETURN(const int64_t rotary_dim, RotaryDim(tower, group, rope_type, head));
  RopeWidth width = {head.channels, rotary_dim, traits.rotation, traits.channels_last};
  if (traits.head_dim_keys == "qk_rope_head_dim" && !head.latent) {
    width.rotation = Rotation::kHalf;
    width.channels_last = false;
  }
  ASSIGN_OR_RETURN(const std::optional<bool> interleave, ReadBool(tower.keys["rope_interleave"]));
  if (width.rotation == Rotation::kInterleavedToHalf && !interleave.value_or(true)) {
    width.rotation = Rotation::kHalf;
  }
  return width;
}

}  // namespace posenc
