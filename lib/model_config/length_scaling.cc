#include "lib/model_config/length_scaling.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"

namespace posenc {
namespace {

// The length that these scalings are measured against.
absl::StatusOr<int64_t> RequiredLength(const ScalingInput& input) {
  if (input.max_position_embeddings > 0) return input.max_position_embeddings;
  return FieldError(input.tower.keys.FieldOf("max_position_embeddings"),
                    absl::StrCat("is required for rope_type ", input.type.rope_type));
}

// d/(d - 2) has no value at 2 channels.
absl::Status CheckGrowingWidth(const ScalingInput& input) {
  if (input.rotary_dim >= 4) return absl::OkStatus();
  return FieldError(input.tower.keys.FieldOf("head_dim"),
                    absl::StrCat("gives ", input.rotary_dim,
                                 " rotary channels, must be at least "
                                 "4 for rope_type ",
                                 input.type.rope_type));
}

// InternLM 1 names its factor otherwise, and has one by default.
absl::StatusOr<double> DynamicFactor(const ScalingInput& input) {
  // HunYuan's name of dynamic with an alpha; what is missing is called by what the file says.
  if (input.type.written == "xdrope" && !input.keys.Find("factor").has_value()) {
    return FieldError(input.keys.map.FieldOf("alpha"), "is required for rope_type xdrope");
  }
  if (input.keys.map.key() != "rotary") return RequiredFactor(input, "factor");
  ASSIGN_OR_RETURN(const std::optional<double> factor,
                   ReadPositiveNumber(input.keys.map["scaling_factor"]));
  return factor.value_or(1);
}

// One list of factors, a number above 0 a frequency.
absl::StatusOr<std::vector<double>> FactorList(const ScalingInput& input, absl::string_view key) {
  const JsonValue list = input.keys.Find(key);
  if (!list.has_value()) {
    return FieldError(input.keys.map.FieldOf(key),
                      absl::StrCat("is required for rope_type ", input.type.rope_type));
  }
  ASSIGN_OR_RETURN(const std::vector<double> factors, ReadNumbers(list));
  const size_t frequencies = static_cast<size_t>(input.rotary_dim / 2);
  if (factors.size() != frequencies) {
    // transformers uses a single number for all; no other reader does.
    return FieldError(list.field(),
                      absl::StrCat("must have rotary_dim/2 (", frequencies,
                                   ") numbers, one a frequency, has ", factors.size(),
                                   factors.size() == 1 ? "; one for all must be written out" : ""));
  }
  for (const JsonValue& factor : list.children()) {
    RETURN_IF_ERROR(ReadPositiveNumber(factor).status());
  }
  return factors;
}

// What multiplies cos and sin of one list, where the file has it or the family must.
absl::StatusOr<std::optional<double>> Mscale(const ScalingInput& input, absl::string_view key) {
  if (input.tower.family.rope.mscales_required) return RequiredFactor(input, key);
  return ReadPositiveNumber(input.keys.Find(key));
}

// transformers 4 compares a factor that nobody gives with 1, and fails; it needs none where the
// attention factor is given.
absl::Status CheckFactorInV4(const ScalingInput& input) {
  if (!input.tower.reads_as_v4() || HasLengthInV4(input) ||
      input.tower.family.rope.length_in_map_in_v4 ||
      input.keys.Find("attention_factor").has_value()) {
    return absl::OkStatus();
  }
  return FieldError(input.keys.map.FieldOf("factor"),
                    "is required: transformers 4 fails on a LongRoPE without it where "
                    "original_max_position_embeddings does not stand beside the map");
}

// max_position_embeddings / original, unless the file has a factor of its own.
absl::StatusOr<double> LengthFactor(const ScalingInput& input, int64_t original) {
  const JsonValue value = input.keys.Find("factor");
  ASSIGN_OR_RETURN(const std::optional<double> given, ReadPositiveNumber(value));
  ASSIGN_OR_RETURN(const int64_t length, RequiredLength(input));
  const double implied = static_cast<double>(length) / static_cast<double>(original);
  if (!given.has_value()) {
    RETURN_IF_ERROR(CheckFactorInV4(input));
    input.tower.findings.AddMissing(
        Rule::kLongropeFactorImplied, input.keys.map, "factor",
        {.message = absl::StrCat("factor is not given; max_position_embeddings / "
                                 "original_max_position_embeddings, ",
                                 NumberText(implied), ", is used."),
         .expected = NumberText(implied),
         // Phi-3's class refuses a map with more keys than it knows.
         .fix = input.tower.family.rope.rope_types == kDefaultOrLongRope || implied < 1
                    ? ""
                    : MemberText("factor", NumberText(implied))});
    return implied;
  }
  NoteSmallFactor(input, *given);
  NoteFactorMismatch(input, *given, original);
  if (*given == implied || !HasLengthInV4(input)) return *given;
  input.tower.findings.Add(
      Rule::kCompatDiffers, value,
      {.message =
           absl::StrCat("transformers 4 uses max_position_embeddings / "
                        "original_max_position_embeddings, ",
                        NumberText(implied), ", whatever factor says; transformers 5 uses factor."),
       .expected = NumberText(implied)});
  return input.tower.compat() == v1::COMPAT_V4_57 ? implied : *given;
}

}  // namespace

absl::Status SetDynamic(const ScalingInput& input, v1::RopeSpec* spec) {
  RETURN_IF_ERROR(CheckGrowingWidth(input));
  ASSIGN_OR_RETURN(const std::optional<double> alpha, ReadNumber(input.keys.Find("alpha")));
  if (alpha.value_or(0) != 0) return SetNtk(input, spec->mutable_ntk());
  ASSIGN_OR_RETURN(const double factor, DynamicFactor(input));
  ASSIGN_OR_RETURN(const int64_t length, RequiredLength(input));
  NoteSmallFactor(input, factor);
  v1::DynamicScaling& dynamic = *spec->mutable_dynamic();
  dynamic.set_factor(factor);
  dynamic.set_max_position_embeddings(length);
  dynamic.set_growth(input.tower.family.rope.growth);
  if (input.tower.model.has_sequence_length()) {
    dynamic.set_sequence_length(input.tower.model.sequence_length());
  }
  return absl::OkStatus();
}

absl::Status SetNtk(const ScalingInput& input, v1::NtkScaling* ntk) {
  RETURN_IF_ERROR(CheckGrowingWidth(input));
  const JsonValue value = input.keys.Find("alpha");
  ASSIGN_OR_RETURN(const std::optional<double> alpha, ReadPositiveNumber(value));
  if (alpha.has_value()) {
    if (*alpha < 1) {
      return FieldError(value.field(), absl::StrCat("must be at least 1, got ", value.Text()));
    }
    ntk->set_alpha(*alpha);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const double factor, RequiredFactor(input, "factor"));
  if (factor < 1) {
    return FieldError(
        input.keys.Find("factor").field(),
        absl::StrCat("must be at least 1 for rope_type ntk, got ", NumberText(factor)));
  }
  ntk->set_factor(factor);
  ASSIGN_OR_RETURN(const std::optional<double> mixed_b,
                   ReadPositiveNumber(input.keys.Find("mixed_b")));
  if (mixed_b.has_value()) ntk->set_mixed_b(*mixed_b);
  return absl::OkStatus();
}

absl::Status SetLongRope(const ScalingInput& input, v1::LongRopeScaling* longrope) {
  ASSIGN_OR_RETURN(const int64_t original, OriginalLength(input));
  ASSIGN_OR_RETURN(const std::vector<double> short_factor, FactorList(input, "short_factor"));
  ASSIGN_OR_RETURN(const std::vector<double> long_factor, FactorList(input, "long_factor"));
  ASSIGN_OR_RETURN(const std::optional<double> attention_factor, AttentionFactor(input));
  ASSIGN_OR_RETURN(const double factor, LengthFactor(input, original));
  NoteLengthNotExtended(input, original, !input.keys.Find("factor").has_value());
  longrope->mutable_short_factor()->Assign(short_factor.begin(), short_factor.end());
  longrope->mutable_long_factor()->Assign(long_factor.begin(), long_factor.end());
  longrope->set_original_max_position_embeddings(original);
  longrope->set_factor(factor);
  if (attention_factor.has_value()) longrope->set_attention_factor(*attention_factor);
  if (input.tower.model.has_sequence_length()) {
    longrope->set_sequence_length(input.tower.model.sequence_length());
  }
  ASSIGN_OR_RETURN(const std::optional<double> short_mscale, Mscale(input, "short_mscale"));
  ASSIGN_OR_RETURN(const std::optional<double> long_mscale, Mscale(input, "long_mscale"));
  if (short_mscale.has_value()) longrope->set_short_mscale(*short_mscale);
  if (long_mscale.has_value()) longrope->set_long_mscale(*long_mscale);
  if (!attention_factor.has_value() && !short_mscale.has_value() && factor > 1 && original < 2) {
    return FieldError(
        input.keys.map.FieldOf("original_max_position_embeddings"),
        absl::StrCat("must be at least 2, since its logarithm divides, got ", original));
  }
  return absl::OkStatus();
}

namespace {

// The length that TeleChat's base grows from: a key, before which it was a number in the code of
// each size.
absl::StatusOr<int64_t> BaseLength(const ScalingInput& input) {
  const Tower& tower = input.tower;
  const RopeTraits& traits = tower.family.rope;
  ASSIGN_OR_RETURN(const std::optional<int64_t> given,
                   ReadPositiveInt(tower.keys[traits.base_length_key]));
  if (given.has_value()) return *given;
  ASSIGN_OR_RETURN(const int64_t hidden_size, RequiredHiddenSize(tower));
  for (const auto& [width, length] : traits.base_lengths) {
    if (width == hidden_size) return length;
  }
  return FieldError(tower.keys.FieldOf(traits.base_length_key),
                    absl::StrCat("is required for a model whose hidden_size is ", hidden_size,
                                 ": its code's own number is not known here"));
}

// reference/hf-rope.md, section 5.3. The code rounds cos and sin to 16 bits, and what it has
// multiplied again.
absl::StatusOr<std::string> SetTelechat(const ScalingInput& input, v1::RopeSpec* spec) {
  const Tower& tower = input.tower;
  const RopeTraits& traits = tower.family.rope;
  RETURN_IF_ERROR(CheckGrowingWidth(input));
  ASSIGN_OR_RETURN(const int64_t base_length, BaseLength(input));
  ASSIGN_OR_RETURN(const std::optional<int64_t> trained,
                   ReadPositiveInt(tower.keys[traits.trained_length_key]));
  v1::DynamicScaling& dynamic = *spec->mutable_dynamic();
  dynamic.set_max_position_embeddings(base_length);
  dynamic.set_growth(v1::DYNAMIC_GROWTH_POWER_OF_TWO);
  dynamic.set_trained_length(trained.value_or(traits.trained_length));
  if (tower.model.has_sequence_length()) {
    dynamic.set_sequence_length(tower.model.sequence_length());
  }
  spec->set_scale_after_rounding(tower.model.arithmetic() != v1::ARITHMETIC_EXACT);
  return "dynamic";
}

}  // namespace

absl::StatusOr<std::string> SetOwnScaling(const ScalingInput& input, v1::RopeSpec* spec) {
  const Tower& tower = input.tower;
  if (!tower.family.rope.base_length_key.empty()) return SetTelechat(input, spec);
  if (const absl::string_view key = tower.family.rope.position_scale_key; !key.empty()) {
    ASSIGN_OR_RETURN(const std::optional<double> scale, ReadPositiveNumber(tower.keys[key]));
    if (scale.value_or(1) == 1) return "";
    spec->mutable_linear()->set_factor(*scale);
    return "linear";
  }
  ASSIGN_OR_RETURN(const bool dynamic_ntk, ReadQwenSwitch(tower, "use_dynamic_ntk"));
  if (!dynamic_ntk) return "";
  RETURN_IF_ERROR(CheckGrowingWidth(input));
  ASSIGN_OR_RETURN(const std::optional<int64_t> trained, ReadPositiveInt(tower.keys["seq_length"]));
  if (!trained.has_value()) {
    return FieldError(
        tower.keys.FieldOf("seq_length"),
        "is required beside use_dynamic_ntk, which Qwen 1 has on unless it says false");
  }
  v1::DynamicScaling& dynamic = *spec->mutable_dynamic();
  dynamic.set_max_position_embeddings(*trained);
  dynamic.set_growth(v1::DYNAMIC_GROWTH_POWER_OF_TWO);
  if (tower.model.has_sequence_length()) {
    dynamic.set_sequence_length(tower.model.sequence_length());
  }
  return "dynamic";
}

}  // namespace posenc
