#include "lib/model_config/rope_scaling.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/length_scaling.h"

namespace posenc {
namespace {

absl::Status SetLinear(const ScalingInput& input, v1::LinearScaling* linear) {
  ASSIGN_OR_RETURN(const double factor, RequiredFactor(input, "factor"));
  NoteSmallFactor(input, factor);
  linear->set_factor(factor);
  if (input.tower.family.rope.divide_positions) linear->set_divide_positions(true);
  return absl::OkStatus();
}

// p-RoPE: all of the head is in the table, the last of its pairs stand still.
absl::Status SetProportional(const ScalingInput& input, v1::ProportionalScaling* proportional) {
  ASSIGN_OR_RETURN(const std::optional<double> factor,
                   ReadPositiveNumber(input.keys.Find("factor")));
  if (factor.has_value()) proportional->set_factor(*factor);
  if (factor.value_or(1) != 1) {
    input.tower.findings.Add(
        Rule::kProportionalFactor, input.keys.Find("factor"),
        {.message = "transformers divides the frequencies by factor, as here, and calls the key "
                    "unrecognized; vLLM and SGLang do not.",
         .expected = "no factor"});
  }
  constexpr absl::string_view kPartial = "partial_rotary_factor";
  for (const JsonValue& value : {input.keys.Find(kPartial), input.tower.keys[kPartial]}) {
    ASSIGN_OR_RETURN(const std::optional<double> partial, ReadNumber(value));
    if (!partial.has_value()) continue;
    proportional->set_partial_rotary_factor(*partial);
    return absl::OkStatus();
  }
  input.tower.findings.AddMissing(
      Rule::kPartialMissing, input.keys.map, kPartial,
      {.message = "rope_type proportional without partial_rotary_factor rotates the whole head.",
       .expected = "1",
       .fix = MemberText(kPartial, "1")});
  return absl::OkStatus();
}

absl::Status SetLlama3(const ScalingInput& input, v1::Llama3Scaling* llama3) {
  ASSIGN_OR_RETURN(const double factor, RequiredFactor(input, "factor"));
  ASSIGN_OR_RETURN(const double low, RequiredFactor(input, "low_freq_factor"));
  ASSIGN_OR_RETURN(const double high, RequiredFactor(input, "high_freq_factor"));
  ASSIGN_OR_RETURN(const int64_t original, OriginalLength(input));
  if (high < low) {
    return FieldError(input.keys.Find("high_freq_factor").field(),
                      absl::StrCat("must be at least low_freq_factor (", NumberText(low), "), got ",
                                   NumberText(high)));
  }
  if (high == low) {
    input.tower.findings.Add(
        Rule::kBandsWithoutRamp, input.keys.Find("high_freq_factor"),
        {.message = "high_freq_factor equals low_freq_factor: frequencies are divided or kept, "
                    "with no ramp between. transformers warns of it.",
         .expected = absl::StrCat("above ", NumberText(low))});
  }
  NoteSmallFactor(input, factor);
  NoteLengthNotExtended(input, original, false);
  llama3->set_factor(factor);
  llama3->set_low_freq_factor(low);
  llama3->set_high_freq_factor(high);
  llama3->set_original_max_position_embeddings(original);
  return absl::OkStatus();
}

// A number that null or 0 leaves at its default, as Python's `or` does.
absl::StatusOr<std::optional<double>> NonZero(const JsonValue& value) {
  ASSIGN_OR_RETURN(std::optional<double> number, ReadNumber(value));
  if (number.has_value() && *number == 0) number.reset();
  return number;
}

// An explicit null is what the lengths imply; a missing factor is refused.
absl::StatusOr<double> YarnFactor(const ScalingInput& input, int64_t original) {
  const JsonValue written = input.keys.map["factor"];
  if (written.is_null() && input.max_position_embeddings != 0) {
    const double implied =
        static_cast<double>(input.max_position_embeddings) / static_cast<double>(original);
    input.tower.findings.Add(Rule::kYarnFactorImplied, written,
                             {.message = absl::StrCat("factor is null; max_position_embeddings / "
                                                      "original_max_position_embeddings, ",
                                                      NumberText(implied), ", is used."),
                              .expected = NumberText(implied),
                              .fix = implied < 1 ? "" : MemberText("factor", NumberText(implied))});
    if (implied < 1) NoteLengthNotExtended(input, original, true);
    return implied;
  }
  return RequiredFactor(input, "factor");
}

void NoteSwappedBetas(const ScalingInput& input, std::optional<double> fast,
                      std::optional<double> slow) {
  if (fast.value_or(32) >= slow.value_or(1)) return;
  const JsonValue value = input.keys.Find(fast.has_value() ? "beta_fast" : "beta_slow");
  const std::string high = NumberText(slow.value_or(1));
  const std::string low = NumberText(fast.value_or(32));
  input.tower.findings.Add(
      Rule::kBetasSwapped, value,
      {.message = absl::StrCat("beta_fast (", NumberText(fast.value_or(32)),
                               ") is below beta_slow (", NumberText(slow.value_or(1)),
                               "): the ramp runs the other way, from interpolated to kept "
                               "frequencies. Some codes have the two names swapped."),
       .expected = absl::StrCat("beta_fast ", high, ", beta_slow ", low),
       .fix = absl::StrCat(MemberText("beta_fast", high), ", ", MemberText("beta_slow", low))});
}

// attn_factor, another stack's key, multiplies what is computed; transformers
// knows only attention_factor, the final value, and ignores it.
absl::Status SetAttnFactor(const ScalingInput& input, v1::YarnScaling* yarn) {
  const JsonValue value = input.keys.Find("attn_factor");
  ASSIGN_OR_RETURN(const std::optional<double> factor, ReadPositiveNumber(value));
  if (!factor.has_value()) return absl::OkStatus();
  const bool ignored = yarn->has_attention_factor();
  const std::string without = MapText(input.keys.map, "attn_factor");
  input.tower.findings.Add(
      Rule::kAttnFactor, value,
      {.message = ignored ? "attn_factor would multiply the computed attention factor, but "
                            "attention_factor, the final value, is given: attn_factor is ignored, "
                            "as transformers always does."
                          : "attn_factor multiplies the computed attention factor, as here; "
                            "transformers does not read it. attention_factor, the final value, is "
                            "read by all: `posenc resolve` prints it.",
       .expected = ignored ? "attention_factor alone" : "attention_factor",
       .fix = ignored && !without.empty() ? MemberText(input.keys.map.key(), without) : "",
       .fix_object = input.keys.map.parent()});
  if (!ignored) yarn->set_attn_factor(*factor);
  return absl::OkStatus();
}

// TeleChat 3 has 0.07 where YaRN has 0.1. As a ratio of the two m(factor, k): 0.7
// above, and a k below that is too small to leave 1.
void SetTelechatCoefficient(const ScalingInput& input, v1::YarnScaling* yarn) {
  if (input.type.written != "telechat3-yarn") return;
  yarn->set_mscale(0.7);
  yarn->set_mscale_all_dim(1e-300);
}

// Readers ask for the key with a default of true, and whether what they get is true: null is not.
absl::StatusOr<std::optional<bool>> Truncate(const ScalingInput& input) {
  const JsonValue written = input.keys.map["truncate"];
  if (!written.is_null()) return ReadBool(written);
  input.tower.findings.Add(Rule::kTruncateNull, written,
                           {.message = "truncate is null, which readers take for false, as here; "
                                       "without the key it is true.",
                            .expected = "true or false",
                            .fix = R"("truncate": false)"});
  return false;
}

absl::Status SetYarn(const ScalingInput& input, v1::YarnScaling* yarn) {
  const RopeKeys& keys = input.keys;
  ASSIGN_OR_RETURN(const int64_t original, OriginalLength(input));
  ASSIGN_OR_RETURN(const double factor, YarnFactor(input, original));
  NoteSmallFactor(input, factor);
  NoteFactorMismatch(input, factor, original);
  yarn->set_factor(factor);
  yarn->set_original_max_position_embeddings(original);
  ASSIGN_OR_RETURN(const std::optional<double> fast, NonZero(keys.Find("beta_fast")));
  if (fast.has_value()) yarn->set_beta_fast(*fast);
  ASSIGN_OR_RETURN(const std::optional<double> slow, NonZero(keys.Find("beta_slow")));
  if (slow.has_value()) yarn->set_beta_slow(*slow);
  NoteSwappedBetas(input, fast, slow);
  ASSIGN_OR_RETURN(const std::optional<bool> truncate, Truncate(input));
  if (truncate.has_value()) yarn->set_truncate(*truncate);
  ASSIGN_OR_RETURN(const std::optional<double> attention_factor, AttentionFactor(input));
  if (attention_factor.has_value()) yarn->set_attention_factor(*attention_factor);
  RETURN_IF_ERROR(SetAttnFactor(input, yarn));
  ASSIGN_OR_RETURN(const std::optional<double> mscale, NonZero(keys.Find("mscale")));
  if (mscale.has_value()) yarn->set_mscale(*mscale);
  ASSIGN_OR_RETURN(const std::optional<double> all_dim, NonZero(keys.Find("mscale_all_dim")));
  if (all_dim.has_value()) yarn->set_mscale_all_dim(*all_dim);
  SetTelechatCoefficient(input, yarn);
  return absl::OkStatus();
}

}  // namespace

absl::Status SetScaling(const ScalingInput& input, v1::RopeSpec* spec) {
  const std::string& type = input.type.rope_type;
  NoteUnusedKeys(input.tower, input.keys, type);
  if (type == "default") return absl::OkStatus();
  if (type == "linear") return SetLinear(input, spec->mutable_linear());
  if (type == "yarn") return SetYarn(input, spec->mutable_yarn());
  if (type == "llama3") return SetLlama3(input, spec->mutable_llama3());
  if (type == "proportional") return SetProportional(input, spec->mutable_proportional());
  if (type == "dynamic") return SetDynamic(input, spec);
  if (type == "ntk") return SetNtk(input, spec->mutable_ntk());
  if (type == "longrope") return SetLongRope(input, spec->mutable_longrope());
  return absl::InternalError(absl::StrCat("rope_scaling: no rule for ", type));
}

double MlaSoftmaxScale(const ScalingInput& input) {
  const RopeTraits& traits = input.tower.family.rope;
  const JsonValue all_dim = input.keys.Find("mscale_all_dim");
  const JsonValue factor = input.keys.Find("factor");
  if (!traits.mla_softmax_scale || input.type.rope_type == "default" || !all_dim.is_number() ||
      !factor.is_number() || all_dim.number() == 0 || factor.number() <= 1) {
    return 1;
  }
  if (traits.mla_softmax_since_v5) {
    const bool left_out = input.tower.compat() == v1::COMPAT_V4_57;
    input.tower.findings.Add(
        Rule::kCompatDiffers, all_dim,
        {.message = left_out ? "mscale_all_dim scales the softmax too in transformers 5; "
                               "transformers 4 leaves that out in this family, as here."
                             : "mscale_all_dim scales the softmax too, as here and in transformers "
                               "5; transformers 4 leaves that out in this family."});
    if (left_out) return 1;
  }
  const double m = 0.1 * all_dim.number() * std::log(factor.number()) + 1.0;
  return m * m;
}

}  // namespace posenc
