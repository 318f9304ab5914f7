#include "lib/model_config/rope_width.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/rope_partial.h"

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

// MiniMax M2: 5.16 lost the key on the way to its config class (huggingface/transformers#48241).
// Returns whether that version is asked for.
bool IsUnreadInV5_16(const Tower& tower, const JsonValue& rotary_dim, int64_t head_dim) {
  const bool as_here = tower.compat() == v1::COMPAT_V5_16;
  tower.findings.Add(
      Rule::kCompatDiffers, rotary_dim,
      {.message = absl::StrCat("transformers 5.16 does not read rotary_dim in this family and "
                               "rotates the whole head",
                               as_here ? ", as here; later versions and other stacks read it."
                                       : "; later versions and other stacks read it, as here."),
       .expected = "partial_rotary_factor too",
       .fix = absl::StrCat("\"partial_rotary_factor\": ",
                           NumberText(rotary_dim.number() / static_cast<double>(head_dim)))});
  return as_here;
}

struct RotaryDim {
  int64_t channels;
  JsonValue partial = {};  // RopeWidth::partial
};

// How many channels rotate: trunc(head_dim * partial_rotary_factor), a double
// product as in the frameworks (100 * 0.29 gives 28).
absl::StatusOr<RotaryDim> ReadRotary(const Tower& tower, const LayerGroup& group,
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
    return RotaryDim{head.channels};
  }
  ASSIGN_OR_RETURN(const PartialRotary partial, PartialRotaryOf(tower, group, rope_type));
  ASSIGN_OR_RETURN(std::optional<int64_t> own, ReadRotaryDim(tower));
  // Every channel is in the table of p-RoPE; those that stand still have frequency 0.
  const double factor = rope_type == "proportional" ? 1 : partial.factor;
  const int64_t by_factor = static_cast<int64_t>(static_cast<double>(head.channels) * factor);
  const RopeTraits& traits = tower.family.rope;
  const JsonValue value = tower.keys[traits.rotary_dim_key];
  // The family's default gives way to what the file says.
  if (!value.has_value() && partial.value.present()) own.reset();
  if (traits.rotary_dim_unread_in_v5_16 && own.has_value() && !partial.value.present() &&
      *own != head.channels && IsUnreadInV5_16(tower, value, head.channels)) {
    own.reset();
  }
  if (own.has_value()) {
    const absl::string_view key =
        traits.halved_width_key.empty() ? traits.rotary_dim_key : traits.halved_width_key;
    if (partial.value.present() && by_factor != *own) {
      return FieldError(value.field(), absl::StrCat("contradicts ", partial.value.field(), ": ",
                                                    *own, " against ", by_factor, " channels"));
    }
    RETURN_IF_ERROR(CheckWidth(*own, head.channels, tower.keys.FieldOf(key), ""));
    return RotaryDim{*own, partial.value};
  }
  RETURN_IF_ERROR(CheckWidth(
      by_factor, head.channels,
      partial.value.present() ? partial.value.field() : tower.keys.FieldOf("head_dim"),
      factor == 1 ? "" : absl::StrCat(" (", NumberText(factor), " of ", head.channels, ")")));
  return RotaryDim{by_factor, partial.value};
}

}  // namespace

absl::StatusOr<RopeWidth> WidthOf(const Tower& tower, const LayerGroup& group,
                                  absl::string_view rope_type) {
  const RopeTraits& traits = tower.family.rope;
  ASSIGN_OR_RETURN(const HeadDim head, ReadHeadDim(tower, group));
  ASSIGN_OR_RETURN(const RotaryDim rotary, ReadRotary(tower, group, rope_type, head));
  RopeWidth width = {head.channels, rotary.channels, traits.rotation, traits.channels_last,
                     rotary.partial};
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
