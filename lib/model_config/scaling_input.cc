#include "lib/model_config/scaling_input.h"

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"

namespace posenc {
namespace {

constexpr absl::string_view kOriginalLength = "original_max_position_embeddings";

// Of two lengths the one beside the map: transformers 5 does so in every type, transformers 4
// reads no other in a LongRoPE.
bool OuterLengthWins(const ScalingInput& input) {
  const v1::Compat compat = input.tower.compat();
  return compat == v1::COMPAT_V5_16 ||
         (compat == v1::COMPAT_V4_57 && input.type.rope_type == "longrope");
}

// The length is in two places and they differ.
void NoteTwoLengths(const ScalingInput& input, const JsonValue& inner, const JsonValue& outer) {
  const bool outer_wins = OuterLengthWins(input);
  const std::string fix = MemberText(kOriginalLength, inner.Text());
  input.tower.findings.Add(
      Rule::kOriginalLengthMismatch, outer,
      {.message = absl::StrCat(outer.pointer(), " and ", inner.pointer(), " differ; ",
                               outer_wins ? "the former" : "the latter",
                               " is used. transformers 5 lets the one beside the map win."),
       .expected = inner.Text(),
       .fix = fix});
  if (input.type.rope_type != "longrope") return;
  input.tower.findings.Add(
      Rule::kCompatDiffers, outer,
      {.message = "transformers 4 and 5 use this length, whatever the map of a LongRoPE says; "
                  "the latest reading is that of the map.",
       .expected = inner.Text(),
       .fix = fix});
}

// A length beside the map alone, of a YaRN: transformers 4 does not see it.
void NoteLengthBesideYarn(const ScalingInput& input, const JsonValue& outer) {
  const bool v4 = input.tower.compat() == v1::COMPAT_V4_57;
  input.tower.findings.Add(
      Rule::kCompatDiffers, outer,
      {.message = absl::StrCat("transformers 4 looks for the training length of a YaRN inside the "
                               "map and takes max_position_embeddings (",
                               input.max_position_embeddings, ") without it",
                               v4 ? ", as here; transformers 5 uses this one."
                                  : "; transformers 5 uses this one, as here."),
       .expected = "inside the map too",
       .fix = MemberText(kOriginalLength, outer.Text()),
       .fix_object = input.keys.map});
}

// The length of a LongRoPE that stands in the map alone: transformers 4 does not see it there.
void NoteLengthInsideLongRope(const ScalingInput& input, const JsonValue& inner, int64_t in_v4) {
  input.tower.findings.Add(
      Rule::kCompatDiffers, inner,
      {.message =
           absl::StrCat("transformers 4 looks for the training length of a LongRoPE beside "
                        "the map and takes ",
                        in_v4, " without it",
                        input.tower.reads_as_v4() ? ", as here; transformers 5 uses this one."
                                                  : "; transformers 5 uses this one, as "
                                                    "here."),
       .expected = "beside the map too",
       .fix = MemberText(kOriginalLength, inner.Text()),
       .fix_object = input.tower.keys});
}

// The validator of transformers wants a whole number of llama3 alone; its arithmetic does not.
void NoteLengthWithPoint(const ScalingInput& input, const JsonValue& value, int64_t length) {
  if (input.type.rope_type != "llama3" || value.Text().find_first_of(".eE") == std::string::npos) {
    return;
  }
  input.tower.findings.Add(
      Rule::kOriginalLengthFloat, value,
      {.message = "transformers warns of a training length with a point, and uses it.",
       .expected = absl::StrCat(length),
       .fix = MemberText(kOriginalLength, absl::StrCat(length))});
}

}  // namespace

bool HasLengthInV4(const ScalingInput& input) {
  const RopeTraits& traits = input.tower.family.rope;
  return input.tower.keys[kOriginalLength].has_value() || traits.original_length != 0 ||
         (traits.mscales_required && input.keys.Find(kOriginalLength).has_value());
}

absl::StatusOr<double> RequiredFactor(const ScalingInput& input, absl::string_view key) {
  ASSIGN_OR_RETURN(const std::optional<double> factor, ReadPositiveNumber(input.keys.Find(key)));
  if (factor.has_value()) return *factor;
  return FieldError(input.keys.map.FieldOf(key),
                    absl::StrCat("is required for rope_type ", input.type.rope_type));
}

absl::StatusOr<bool> ReadQwenSwitch(const Tower& tower, absl::string_view key) {
  const JsonValue value = tower.keys[key];
  if (!value.present()) return tower.family.rope.query_scale == QueryScaleRule::kQwen;
  ASSIGN_OR_RETURN(const std::optional<bool> on, ReadBool(value));
  return on.value_or(false);
}

absl::StatusOr<int64_t> OriginalLength(const ScalingInput& input) {
  const JsonValue inner = input.keys.Find(kOriginalLength);
  const JsonValue outer = input.tower.keys[kOriginalLength];
  ASSIGN_OR_RETURN(const std::optional<int64_t> inside, ReadPositiveInt(inner));
  ASSIGN_OR_RETURN(const std::optional<int64_t> beside, ReadPositiveInt(outer));
  if (inside.has_value() && beside.has_value() && *inside != *beside) {
    NoteTwoLengths(input, inner, outer);
    if (OuterLengthWins(input)) return *beside;
  }
  const RopeTraits& traits = input.tower.family.rope;
  if (inside.has_value() && !beside.has_value() && input.type.rope_type == "longrope" &&
      !traits.length_in_map_in_v4 && !input.tower.family.since_v5 && IsGiven(inner)) {
    const int64_t in_v4 =
        traits.original_length != 0 ? traits.original_length : input.max_position_embeddings;
    if (in_v4 != 0 && in_v4 != *inside) {
      NoteLengthInsideLongRope(input, inner, in_v4);
      if (input.tower.reads_as_v4()) return in_v4;
    }
  }
  if (inside.has_value()) {
    NoteLengthWithPoint(input, inner, *inside);
    return *inside;
  }
  if (beside.has_value() && input.type.rope_type == "yarn" && input.max_position_embeddings != 0 &&
      input.max_position_embeddings != *beside) {
    NoteLengthBesideYarn(input, outer);
    if (input.tower.compat() == v1::COMPAT_V4_57) return input.max_position_embeddings;
  }
  if (beside.has_value()) return *beside;
  if (traits.original_length != 0) return traits.original_length;
  if (input.max_position_embeddings == 0 || input.type.rope_type == "llama3") {
    return FieldError(input.keys.map.FieldOf(kOriginalLength),
                      absl::StrCat("is required for rope_type ", input.type.rope_type));
  }
  // The other map, which this one replaces, may be right; a LongRoPE would extend nothing.
  const bool lost = input.tower.keys["rope_parameters"][kOriginalLength].has_value();
  input.tower.findings.AddMissing(
      Rule::kOriginalLengthMissing, input.keys.map, kOriginalLength,
      {.message = absl::StrCat("The training length is not given; max_position_embeddings (",
                               input.max_position_embeddings,
                               ") stands in, which is wrong if it was raised by factor already."),
       .expected = "the length before scaling",
       .fix = input.type.rope_type == "longrope" || lost
                  ? ""
                  : MemberText(kOriginalLength, absl::StrCat(input.max_position_embeddings))});
  return input.max_position_embeddings;
}

absl::StatusOr<std::optional<double>> AttentionFactor(const ScalingInput& input) {
  const JsonValue value = input.keys.Find("attention_factor");
  ASSIGN_OR_RETURN(const std::optional<double> given, ReadNumber(value));
  if (!given.has_value()) return input.attention_factor;
  if (*given <= 0) {
    return FieldError(value.field(),
                      absl::StrCat("must be above 0, ",
                                   *given == 0 ? "which makes all of the table 0"
                                               : "a negative one turns every score round",
                                   "; without it the scaling's own is used, got ", value.Text()));
  }
  if (value.Text().find_first_of(".eE") == std::string::npos) {
    input.tower.findings.Add(
        Rule::kAttentionFactorInteger, value,
        {.message = "transformers warns of an attention_factor without a point, and uses it.",
         .expected = absl::StrCat(value.Text(), ".0"),
         .fix = MemberText("attention_factor", absl::StrCat(value.Text(), ".0"))});
  }
  return given;
}

void NoteSmallFactor(const ScalingInput& input, double factor) {
  if (factor >= 1) return;
  input.tower.findings.Add(
      Rule::kFactorBelowOne, input.keys.Find("factor"),
      {.message = "A factor below 1 makes positions turn faster, which no training used.",
       .expected = "1 or more"});
}

void NoteFactorMismatch(const ScalingInput& input, double factor, int64_t original) {
  if (input.max_position_embeddings == 0 || input.max_position_embeddings == original) return;
  const double implied =
      static_cast<double>(input.max_position_embeddings) / static_cast<double>(original);
  if (implied == factor || (factor == 1 && implied < 1)) return;
  const JsonValue value = input.keys.Find("factor");
  if (!IsGiven(value)) return;
  const bool longrope = input.type.rope_type == "longrope";
  // transformers 4 lets the length beside the map decide a LongRoPE (SetLongRope).
  const bool ratio_used =
      longrope && input.tower.compat() == v1::COMPAT_V4_57 && HasLengthInV4(input);
  const absl::string_view used =
      ratio_used ? "the ratio is used, as in transformers 4, vLLM and SGLang."
      : longrope ? "factor is used, vLLM and SGLang use the ratio."
                 : "factor is used, transformers 4.52 to 4.55 would use the ratio.";
  input.tower.findings.Add(
      Rule::kFactorMismatch, value,
      {.message = absl::StrCat("factor is ", NumberText(factor),
                               ", but max_position_embeddings / original_max_position_embeddings "
                               "is ",
                               NumberText(implied), "; ", used),
       .expected = NumberText(implied)});
}

void NoteLengthNotExtended(const ScalingInput& input, int64_t original, bool factor_implied) {
  if (input.max_position_embeddings == 0 || original < input.max_position_embeddings) return;
  JsonValue value = input.keys.Find(kOriginalLength);
  if (!value.present()) value = input.tower.keys[kOriginalLength];
  if (!value.present()) return;
  if (factor_implied && original > input.max_position_embeddings) {
    input.tower.findings.Add(
        Rule::kLengthsSwapped, value,
        {.message =
             absl::StrCat("The training length is above max_position_embeddings (",
                          input.max_position_embeddings,
                          "): the factor that follows is below 1, and cos and sin are "
                          "multiplied by 1. No model was trained so; are the two exchanged?"),
         .expected = absl::StrCat("below ", input.max_position_embeddings)});
    return;
  }
  input.tower.findings.Add(
      Rule::kOriginalLengthTooLong, value,
      {.message = absl::StrCat("The training length is not below max_position_embeddings (",
                               input.max_position_embeddings, "), so nothing is extended."),
       .expected = absl::StrCat("below ", input.max_position_embeddings)});
}

}  // namespace posenc
