#include "lib/model_config/rope_partial.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"

namespace posenc {
namespace {

class PartialRule {
 public:
  PartialRule(const Tower& tower, const LayerGroup& group, absl::string_view rope_type)
      : tower_(tower),
        traits_(tower.family.rope),
        group_(group),
        scaled_(rope_type != "default"),
        v4_(tower.reads_as_v4()),
        v5_16_(tower.compat() == v1::COMPAT_V5_16) {}

  absl::StatusOr<PartialRotary> Resolve() {
    inner_ = group_.keys.Find("partial_rotary_factor");
    ASSIGN_OR_RETURN(const JsonValue beside_map, OneOf(tower_.keys, traits_.partial_keys));
    outer_ = group_.partial_value.has_value() ? group_.partial_value : beside_map;
    NoteForced();
    ASSIGN_OR_RETURN(inside_, ReadPositiveNumber(inner_));
    ASSIGN_OR_RETURN(beside_, ReadPositiveNumber(outer_));
    const PartialRotary partial = Honoured(InsideOrBeside());
    if (partial.factor > 1) {
      return FieldError(partial.value.field(),
                        absl::StrCat("must be at most 1, got ", partial.value.Text()));
    }
    return partial;
  }

 private:
  PartialRotary InsideOrBeside() const {
    PartialRotary partial = {traits_.partial, JsonValue()};
    if (beside_.has_value()) partial = {*beside_, outer_};
    if (!inside_.has_value() || *inside_ == partial.factor) {
      return inside_.has_value() ? PartialRotary{*inside_, inner_} : partial;
    }
    if (beside_.has_value()) {
      NoteTwoFactors();
      if (v4_ || OuterWinsInV5_16()) return partial;
      return {*inside_, inner_};
    }
    // The default map of a class is read by the version that has it; a map by layer type is as a
    // whole what transformers 4 does not know.
    const bool flat = HasName("rope_scaling rope_parameters", group_.keys.map.key());
    const bool unread = flat && IsGiven(inner_) && !tower_.family.since_v5;
    const bool overwritten = traits_.partial_beside_map && scaled_;
    if (unread || overwritten) NoteUnreadInside(unread, overwritten);
    if ((unread && v4_) || (overwritten && v5_16_)) return partial;
    return {*inside_, inner_};
  }

  // gpt_neox takes rotary_pct as a default of the map's alone.
  bool OuterWinsInV5_16() const { return v5_16_ && scaled_ && outer_.key() != "rotary_pct"; }

  // Since 5.0 only some classes honour it without a scaling.
  bool IgnoredInV5() const { return !scaled_ && !traits_.partial_in_v5; }

  PartialRotary Honoured(PartialRotary partial) const {
    if (partial.factor == 1 || !partial.value.present() || !IgnoredInV5()) return partial;
    tower_.findings.Add(
        Rule::kCompatDiffers, partial.value,
        {.message = absl::StrCat("transformers 5 ignores partial_rotary_factor in this family and "
                                 "rotates the whole head",
                                 v5_16_ ? ", as here; transformers 4 honours it."
                                        : "; transformers 4 honours it, as here.")});
    return v5_16_ ? PartialRotary{1, JsonValue()} : partial;
  }

  // A class that overwrites what the file says beside the map (Bamba).
  void NoteForced() const {
    const JsonValue value = tower_.keys["partial_rotary_factor"];
    if (!traits_.partial_keys.empty() || traits_.map_key == "-" || !value.is_number() ||
        value.number() == traits_.partial) {
      return;
    }
    tower_.findings.Add(Rule::kRopeKeyIgnored, value,
                        {.message = absl::StrCat("The class of this family overwrites ",
                                                 "partial_rotary_factor with ",
                                                 NumberText(traits_.partial), ", as here."),
                         .expected = NumberText(traits_.partial),
                         .fix = MemberText(value.key(), NumberText(traits_.partial))});
  }

  void NoteTwoFactors() const {
    const absl::string_view used =
        OuterWinsInV5_16() ? "the former is used, as transformers 5.16 does for scaled types."
        : v5_16_ && IgnoredInV5() ? "neither is used, as in transformers 5.16 without a scaling."
        : v4_                     ? "the former is used, as in transformers 4."
              : "the latter is used. transformers 4 uses the former, transformers 5.16 for scaled "
                "types.";
    tower_.findings.Add(
        Rule::kPartialMismatch, outer_,
        {.message = absl::StrCat(outer_.pointer(), " and ", inner_.pointer(), " differ; ", used),
         .expected = inner_.Text(),
         .fix = MemberText(outer_.key(), inner_.Text())});
  }

  // Once for a place: what Honoured would say of it too is in it.
  void NoteUnreadInside(bool unread, bool overwritten) const {
    const bool in_v5 = overwritten || IgnoredInV5();
    const absl::string_view by = unread && in_v5 ? "transformers 4 and 5.16 take"
                                 : unread        ? "transformers 4 takes"
                                                 : "transformers 5.16 takes";
    const bool used = !(unread && v4_) && !(in_v5 && v5_16_);
    tower_.findings.Add(
        Rule::kCompatDiffers, inner_,
        {.message = absl::StrCat(
             by, " the class's default, ", NumberText(traits_.partial), ", whatever the map says",
             used ? "; the latest reading is that of the map, as here." : ", as here."),
         .expected = "beside the map too",
         // A class that ignores it inside the map does so beside it; so does one that overwrites
         // it.
         .fix = IgnoredInV5() || traits_.partial_keys.empty()
                    ? ""
                    : MemberText("partial_rotary_factor", inner_.Text()),
         .fix_object = tower_.keys});
  }

  const Tower& tower_;
  const RopeTraits& traits_;
  const LayerGroup& group_;
  const bool scaled_;
  const bool v4_;
  const bool v5_16_;
  JsonValue inner_;
  JsonValue outer_;
  std::optional<double> inside_;
  std::optional<double> beside_;
};

}  // namespace

absl::StatusOr<PartialRotary> PartialRotaryOf(const Tower& tower, const LayerGroup& group,
                                              absl::string_view rope_type) {
  return PartialRule(tower, group, rope_type).Resolve();
}

}  // namespace posenc
