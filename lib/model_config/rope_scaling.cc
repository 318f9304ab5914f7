#include "lib/model_config/rope_scaling.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"

namespace posenc {
namespace {

constexpr absl::string_view kOriginalLength = "original_max_position_embeddings";

absl::StatusOr<double> RequiredFactor(const ScalingInput& input, absl::string_view key) {
  ASSIGN_OR_RETURN(const std::optional<double> factor, ReadPositiveNumber(input.keys.Find(key)));
  if (factor.has_value()) return *factor;
  return FieldError(input.keys.map.FieldOf(key),
                    absl::StrCat("is required for rope_type ", input.type.rope_type));
}

void NoteSmallFactor(const ScalingInput& input, double factor) {
  if (factor >= 1) return;
  input.tower.findings.Add(
      Rule::kFactorBelowOne, input.keys.Find("factor"),
      {.message = "A factor below 1 makes positions turn faster, which no training used.",
       .expected = "1 or more"});
}

// The length is in two places and they differ.
void NoteTwoLengths(const ScalingInput& input, const JsonValue& inner, const JsonValue& outer) {
  const bool outer_wins = input.tower.compat() == v1::COMPAT_V5_16;
  input.tower.findings.Add(
      Rule::kOriginalLengthMismatch, outer,
      {.message = absl::StrCat(outer.pointer(), " and ", inner.pointer(), " differ; ",
                               outer_wins ? "the former" : "the latter",
                               " is used. transformers 5 lets the one beside the map win."),
       .expected = inner.Text()});
}

void NoteFactorMismatch(const ScalingInput& input, double factor, int64_t original) {
  if (input.max_position_embeddings == 0 || input.max_position_embeddings == original) return;
  const double implied =
      static_cast<double>(input.max_position_embeddings) / static_cast<double>(original);
  if (implied == factor) return;
  input.tower.findings.Add(
      Rule::kFactorMismatch, input.keys.Find("factor"),
      {.message = absl::StrCat("factor is ", NumberText(factor),
                               ", but max_position_embeddings / original_max_position_embeddings "
                               "is ",
                               NumberText(implied),
                               "; factor is used, transformers 4.52 to 4.55 would use the ratio."),
       .expected = NumberText(implied)});
}

absl::Status SetLinear(const ScalingInput& input, v1::LinearScaling* linear) {
  ASSIGN_OR_RETURN(const double factor, RequiredFactor(input, "factor"));
  NoteSmallFactor(input, factor);
  linear->set_factor(factor);
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
  NoteSmallFactor(input, factor);
  if (input.max_position_embeddings != 0 && original >= input.max_position_embeddings) {
    input.tower.findings.Add(
        Rule::kOriginalLengthTooLong, input.keys.Find(kOriginalLength),
        {.message = absl::StrCat("The training length is not below max_position_embeddings (",
                                 input.max_position_embeddings, "), so nothing is extended."),
         .expected = absl::StrCat("below ", input.max_position_embeddings)});
  }
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

// The final multiplier of cos and sin where the file or the family gives it.
absl::StatusOr<std::optional<double>> AttentionFactor(const ScalingInput& input) {
  const JsonValue value = input.keys.Find("attention_factor");
  ASSIGN_OR_RETURN(const std::optional<double> given, ReadNumber(value));
  if (!given.has_value()) return input.attention_factor;
  if (*given < 0) {
    input.tower.findings.Add(Rule::kAttentionFactorNegative, value,
                             {.message = "A negative attention_factor turns every score round.",
                              .expected = "0 or more"});
  }
  return given;
}

// The factor, or for yarn with an explicit null what the lengths imply.
absl::StatusOr<double> YarnFactor(const ScalingInput& input, int64_t original) {
  const JsonValue written = input.keys.map["factor"];
  if (written.is_null() && input.max_position_embeddings != 0) {
    return static_cast<double>(input.max_position_embeddings) / static_cast<double>(original);
  }
  return RequiredFactor(input, "factor");
}

void NoteSwappedBetas(const ScalingInput& input, std::optional<double> fast,
                      std::optional<double> slow) {
  if (fast.value_or(32) >= slow.value_or(1)) return;
  const JsonValue value = input.keys.Find(fast.has_value() ? "beta_fast" : "beta_slow");
  input.tower.findings.Add(
      Rule::kBetasSwapped, value,
      {.message = absl::StrCat("beta_fast (", NumberText(fast.value_or(32)),
                               ") is below beta_slow (", NumberText(slow.value_or(1)),
                               "); some codes name them the other way round."),
       .expected = "beta_fast 32, beta_slow 1",
       .fix = absl::StrCat("\"beta_fast\": ", NumberText(slow.value_or(1)),
                           ", \"beta_slow\": ", NumberText(fast.value_or(32)))});
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
  ASSIGN_OR_RETURN(const std::optional<bool> truncate, ReadBool(keys.Find("truncate")));
  if (truncate.has_value()) yarn->set_truncate(*truncate);
  ASSIGN_OR_RETURN(const std::optional<double> attention_factor, AttentionFactor(input));
  if (attention_factor.has_value()) yarn->set_attention_factor(*attention_factor);
  ASSIGN_OR_RETURN(const std::optional<double> mscale, NonZero(keys.Find("mscale")));
  if (mscale.has_value()) yarn->set_mscale(*mscale);
  ASSIGN_OR_RETURN(const std::optional<double> all_dim, NonZero(keys.Find("mscale_all_dim")));
  if (all_dim.has_value()) yarn->set_mscale_all_dim(*all_dim);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> OriginalLength(const ScalingInput& input) {
  const JsonValue inner = input.keys.Find(kOriginalLength);
  const JsonValue outer = input.tower.keys[kOriginalLength];
  ASSIGN_OR_RETURN(const std::optional<int64_t> inside, ReadPositiveInt(inner));
  ASSIGN_OR_RETURN(const std::optional<int64_t> beside, ReadPositiveInt(outer));
  if (inside.has_value() && beside.has_value() && *inside != *beside) {
    NoteTwoLengths(input, inner, outer);
    if (input.tower.compat() == v1::COMPAT_V5_16) return *beside;
  }
  if (inside.has_value()) return *inside;
  if (beside.has_value()) return *beside;
  if (input.tower.family.rope.original_length != 0) {
    return input.tower.family.rope.original_length;
  }
  if (input.max_position_embeddings == 0 || input.type.rope_type == "llama3") {
    return FieldError(input.keys.map.FieldOf(kOriginalLength),
                      absl::StrCat("is required for rope_type ", input.type.rope_type));
  }
  input.tower.findings.AddMissing(
      Rule::kOriginalLengthMissing, input.keys.map, kOriginalLength,
      {.message = absl::StrCat("The training length is not given; max_position_embeddings (",
                               input.max_position_embeddings,
                               ") stands in, which is wrong if it was raised by factor already."),
       .expected = "the length before scaling",
       .fix = absl::StrCat("\"", kOriginalLength, "\": ", input.max_position_embeddings)});
  return input.max_position_embeddings;
}

absl::Status SetScaling(const ScalingInput& input, v1::RopeSpec* spec) {
  const std::string& type = input.type.rope_type;
  NoteUnusedKeys(input.tower, input.keys, type);
  if (type == "default") return absl::OkStatus();
  if (type == "linear") return SetLinear(input, spec->mutable_linear());
  if (type == "yarn") return SetYarn(input, spec->mutable_yarn());
  if (type == "llama3") return SetLlama3(input, spec->mutable_llama3());
  return FieldError(input.keys.map.FieldOf("rope_type"),
                    absl::StrCat(type, " is not supported yet"));
}

double MlaSoftmaxScale(const ScalingInput& input) {
  const JsonValue all_dim = input.keys.Find("mscale_all_dim");
  const JsonValue factor = input.keys.Find("factor");
  if (input.type.rope_type == "default" || !all_dim.is_number() || !factor.is_number() ||
      all_dim.number() == 0 || factor.number() <= 1) {
    return 1;
  }
  const double m = 0.1 * all_dim.number() * std::log(factor.number()) + 1.0;
  return m * m;
}

}  // namespace posenc
