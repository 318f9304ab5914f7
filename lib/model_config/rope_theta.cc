#include "lib/model_config/rope_theta.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"

namespace posenc {
namespace {

// The name of the map that holds `value`: /text_config/rope_parameters/rope_theta is in
// text_config/rope_parameters.
std::string MapName(const JsonValue& value) {
  const std::string pointer = value.pointer();
  return pointer.substr(1, pointer.rfind('/') - 1);
}

class ThetaRule {
 public:
  ThetaRule(const Tower& tower, const LayerGroup& group)
      : tower_(tower),
        group_(group),
        keys_(group.theta_keys.empty() ? tower.family.rope.theta_keys : group.theta_keys),
        default_(group.theta != 0 ? group.theta : tower.family.rope.theta) {}

  absl::StatusOr<double> Resolve() {
    ASSIGN_OR_RETURN(const JsonValue outer, Outer());
    const JsonValue inner = group_.keys.Find("rope_theta");
    ASSIGN_OR_RETURN(const std::optional<double> outer_theta, ReadPositiveNumber(outer));
    ASSIGN_OR_RETURN(const std::optional<double> inner_theta, ReadPositiveNumber(inner));
    RETURN_IF_ERROR(CheckOtherNames(inner, outer));
    if (inner_theta.has_value() && !IsUnread(inner)) {
      if (!outer_theta.has_value() && *inner_theta != default_) NoteNewFormOnly(inner);
      return *inner_theta;
    }
    if (outer_theta.has_value()) return *outer_theta;
    if (inner_theta.has_value()) NoteNewFormOnly(inner);
    return Default();
  }

 private:
  absl::StatusOr<JsonValue> Outer() const {
    if (group_.theta_value.has_value()) return group_.theta_value;
    return OneOf(tower_.keys, keys_);
  }

  // Transformers 4 takes a base from beside the map alone.
  bool IsUnread(const JsonValue& inner) const { return tower_.reads_as_v4() && IsGiven(inner); }

  // One reader takes this name, another that one (PaddlePaddle/PaddleFleet#2026). Layers with a
  // base of their own have a name of their own for it.
  absl::Status CheckOtherNames(const JsonValue& inner, const JsonValue& outer) const {
    JsonValue beside = outer;
    if (group_.theta_keys.empty() && !group_.theta_value.has_value() && !keys_.empty()) {
      RETURN_IF_ERROR(OneOf(group_.keys.map, kBaseNames).status());
      for (const absl::string_view name : absl::StrSplit(kBaseNames, ' ')) {
        const JsonValue other = tower_.keys[name];
        if (AreOtherNumbers(other, outer)) return Contradiction(other, outer);
      }
      ASSIGN_OR_RETURN(const JsonValue any, OneOf(tower_.keys, kBaseNames));
      if (!outer.has_value()) beside = any;
    }
    if (AreOtherNumbers(inner, beside)) {
      NoteTwoBases(inner, beside);
    }
    return absl::OkStatus();
  }

  // Where a base beside the map stands, or would.
  struct BasePlace {
    JsonValue object;
    absl::string_view key;
    absl::string_view inner = "";  // of the object that `key` would be
  };
  BasePlace PlaceOfBase() const {
    const absl::string_view first = keys_.substr(0, keys_.find(' '));
    const size_t slash = first.find('/');
    if (slash == absl::string_view::npos) return {tower_.keys, first};
    const absl::string_view inner = first.substr(slash + 1);
    const JsonValue object = tower_.keys[first.substr(0, slash)];
    if (object.is_object()) return {object, inner};
    return {tower_.keys, first.substr(0, slash), inner};
  }
  static std::string BaseMember(const BasePlace& place, absl::string_view value) {
    if (place.inner.empty()) return MemberText(place.key, value);
    return MemberText(place.key, absl::StrCat("{", MemberText(place.inner, value), "}"));
  }

  // Whether the key beside the map is of the layers that the map is for, and of no others.
  bool IsKeyOfMap() const {
    const LayerRule rule = tower_.family.rope.layers;
    const JsonValue& map = group_.keys.map;
    const bool own_map = IsGiven(map) && map.parent().pointer() != tower_.keys.pointer();
    if (own_map) return !group_.theta_keys.empty() || rule == LayerRule::kGemma3;
    return group_.theta_keys.empty() &&
           (group_.layer_type == "all" || rule == LayerRule::kFullOnly);
  }

  // A scaling of the file whose models were mostly given a larger base too. (Those of Llama 2,
  // trained with 10000 for 4096 positions, were given YaRN alone.)
  bool IsScaledFar() const {
    constexpr double kLengthOfLlama2 = 4096;
    const JsonValue type = FirstOf(group_.keys.map, "rope_type type");
    if (!IsGiven(type) || !type.is_string()) return false;
    const JsonValue trained = group_.keys.map["original_max_position_embeddings"];
    const bool is_short = trained.is_number() && trained.number() <= kLengthOfLlama2;
    return HasName("llama3 longrope su", type.string()) ||
           (HasName("yarn deepseek_yarn telechat3-yarn", type.string()) && !is_short);
  }

  absl::StatusOr<double> Default() {
    if (!tower_.family.rope.theta_ratio_key.empty()) {
      ASSIGN_OR_RETURN(const std::optional<double> ratio,
                       ReadPositiveNumber(tower_.keys[tower_.family.rope.theta_ratio_key]));
      return default_ * ratio.value_or(1);
    }
    if (keys_.empty()) return default_;  // no file of the family has a base
    const BasePlace place = PlaceOfBase();
    const JsonValue null_theta = place.object[place.key];
    const double old = tower_.family.rope.theta_v4;
    const bool old_wins = tower_.compat() == v1::COMPAT_V4_57 && old != 0;
    const double used = old_wins ? old : default_;
    const bool scaled = used == 10000 && IsScaledFar();
    const FindingText text = {
        .message =
            absl::StrCat("The base (", keys_.substr(0, keys_.find(' ')), ") is ",
                         null_theta.present() ? "null" : "not given", "; the default of the family",
                         old_wins ? " in transformers 4" : "", ", ", NumberText(used), ", is used",
                         scaled ? "; few models with such a scaling have it." : "."),
        .expected = scaled ? "the base of the model" : NumberText(used)};
    if (null_theta.present()) {
      tower_.findings.Add(Rule::kThetaNull, null_theta, text);
    } else {
      tower_.findings.AddMissing(scaled ? Rule::kThetaDefaultedScaled : Rule::kThetaDefaulted,
                                 place.object, place.key, text);
      NoteOldDefault(place);
    }
    return used;
  }

  void NoteOldDefault(const BasePlace& place) const {
    const double old = tower_.family.rope.theta_v4;
    if (old == 0) return;
    tower_.findings.AddMissing(
        Rule::kCompatDiffers, place.object, place.key,
        {.message = absl::StrCat("Without a base transformers 4 takes ", NumberText(old),
                                 ", transformers 5 takes ", NumberText(default_), "."),
         .expected = NumberText(default_)});
  }

  void NoteTwoBases(const JsonValue& inner, const JsonValue& outer) const {
    tower_.findings.Add(
        Rule::kThetaMismatch, outer,
        {.message = absl::StrCat(outer.pointer(), " and ", inner.pointer(),
                                 IsUnread(inner)
                                     ? " differ; readers of the old form use the former, as here, "
                                       "readers of the new form the latter."
                                     : " differ; readers of the new form use the latter, as here, "
                                       "readers of the old form the former."),
         .expected = inner.Text(),
         // One key does not hold the bases of several maps.
         .fix = IsKeyOfMap() ? MemberText(outer.key(), inner.Text()) : ""});
  }

  // A file that an old reader takes for base 10000: it looks for it beside the map.
  void NoteNewFormOnly(const JsonValue& inner) const {
    const double of_old_reader = tower_.family.rope.theta_v4;
    if (inner.line() == 0 || tower_.family.since_v5 ||
        inner.number() == (of_old_reader != 0 ? of_old_reader : default_)) {
      return;
    }
    const bool pasted = IsKeyOfMap() && !keys_.empty();
    const BasePlace place = PlaceOfBase();
    tower_.findings.Add(
        Rule::kThetaOnlyNewForm, inner,
        {.message = absl::StrCat("The base stands only inside ", MapName(inner),
                                 "; a reader of the old form takes its default instead",
                                 IsUnread(inner) ? ", as here." : "."),
         .expected = "the same beside it",
         .fix = pasted ? BaseMember(place, inner.Text()) : "",
         .fix_object = place.object});
  }

  const Tower& tower_;
  const LayerGroup& group_;
  const absl::string_view keys_;
  const double default_;
};

}  // namespace

absl::StatusOr<double> RopeTheta(const Tower& tower, const LayerGroup& group) {
  return ThetaRule(tower, group).Resolve();
}

}  // namespace posenc
