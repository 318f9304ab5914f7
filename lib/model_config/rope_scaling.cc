#include "lib/model_config/rope_scaling.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"

namespace posenc {
namespace {

// Beside rope_theta and partial_rotary_factor, which every type may have.
struct RopeTypeRow {
  absl::string_view name;
  absl::string_view keys;
};
constexpr std::array kRopeTypes = {
    RopeTypeRow{"default", "mrope_section mrope_interleaved"},
    RopeTypeRow{"linear", "factor mrope_section mrope_interleaved"},
    RopeTypeRow{"yarn",
                "factor original_max_position_embeddings beta_fast beta_slow truncate "
                "attention_factor mscale mscale_all_dim mrope_section mrope_interleaved"},
    RopeTypeRow{"llama3",
                "factor original_max_position_embeddings low_freq_factor high_freq_factor"},
};

struct Alias {
  absl::string_view name;
  absl::string_view rope_type;
};
constexpr std::array kAliases = {Alias{"su", "longrope"}, Alias{"mrope", "default"},
                                 Alias{"xdrope", "dynamic"}};

// Keys that mean a scaling: beside one of them a missing type is a mistake.
constexpr absl::string_view kScalingKeys =
    "factor alpha short_factor long_factor low_freq_factor high_freq_factor beta_fast beta_slow "
    "attention_factor mscale mscale_all_dim";

std::string WithoutAlias(absl::string_view type) {
  for (const Alias& alias : kAliases) {
    if (alias.name == type) return std::string(alias.rope_type);
  }
  return std::string(type);
}

// The type that one map names, in its new or old spelling; absent when neither.
absl::StatusOr<std::optional<std::string>> TypeOf(const JsonValue& map) {
  ASSIGN_OR_RETURN(std::optional<std::string> rope_type, ReadString(map["rope_type"]));
  ASSIGN_OR_RETURN(std::optional<std::string> type, ReadString(map["type"]));
  if (rope_type.has_value()) rope_type = WithoutAlias(*rope_type);
  if (type.has_value()) type = WithoutAlias(*type);
  if (rope_type.has_value() && type.has_value() && *rope_type != *type) {
    return FieldError(map.FieldOf("type"),
                      absl::StrCat("contradicts rope_type, its other spelling: ",
                                   map["type"].Text(), " against ", map["rope_type"].Text()));
  }
  return rope_type.has_value() ? rope_type : type;
}

// A map, or absent for null, {} and no key at all.
absl::StatusOr<JsonValue> MapAt(const JsonValue& value) {
  if (!value.has_value()) return JsonValue();
  if (!value.is_object()) {
    return FieldError(value.field(),
                      absl::StrCat("must be an object or null, got ", value.Describe()));
  }
  return value.size() == 0 ? JsonValue() : value;
}

}  // namespace

JsonValue RopeKeys::Find(absl::string_view key) const {
  const JsonValue value = map[key];
  return value.has_value() ? value : fallback[key];
}

absl::StatusOr<RopeKeys> FindRopeKeys(const Tower& tower) {
  ASSIGN_OR_RETURN(const JsonValue scaling, MapAt(tower.keys["rope_scaling"]));
  ASSIGN_OR_RETURN(const JsonValue parameters, MapAt(tower.keys["rope_parameters"]));
  if (!scaling.present()) return RopeKeys{parameters, JsonValue()};
  if (!parameters.present()) return RopeKeys{scaling, JsonValue()};
  ASSIGN_OR_RETURN(const std::optional<std::string> old_type, TypeOf(scaling));
  ASSIGN_OR_RETURN(const std::optional<std::string> new_type, TypeOf(parameters));
  const std::string other = new_type.value_or("default");
  if (other != "default" && old_type.has_value() && *old_type != other) {
    return FieldError(scaling.field(), absl::StrCat("contradicts rope_parameters: rope_type ",
                                                    *old_type, " against ", other));
  }
  return RopeKeys{scaling, parameters};
}

absl::StatusOr<std::string> RopeType(const RopeKeys& keys) {
  if (!keys.present()) return "default";
  ASSIGN_OR_RETURN(const std::optional<std::string> type, TypeOf(keys.map));
  if (!type.has_value()) {
    const JsonValue scaling = FirstOf(keys.map, kScalingKeys);
    if (!scaling.present()) return "default";
    return FieldError(keys.map.FieldOf("rope_type"),
                      absl::StrCat("is required beside ", scaling.key(),
                                   ": without it the scaling would be ignored"));
  }
  std::vector<absl::string_view> known;
  for (const RopeTypeRow& row : kRopeTypes) known.push_back(row.name);
  if (std::find(known.begin(), known.end(), *type) == known.end()) {
    const absl::string_view key = keys.map["rope_type"].has_value() ? "rope_type" : "type";
    return FieldError(keys.map.FieldOf(key),
                      absl::StrCat("must be one of ", absl::StrJoin(known, ", "), ", got ",
                                   keys.map[key].Describe()));
  }
  return *type;
}

namespace {

absl::StatusOr<double> RequiredFactor(const ScalingInput& input, absl::string_view key) {
  const JsonValue value = input.keys.Find(key);
  ASSIGN_OR_RETURN(const std::optional<double> factor, ReadPositiveNumber(value));
  if (factor.has_value()) return *factor;
  return FieldError(input.keys.map.FieldOf(key),
                    absl::StrCat("is required for rope_type ", input.rope_type));
}

void NoteSmallFactor(const ScalingInput& input, double factor) {
  if (factor >= 1) return;
  input.tower.findings.Add(
      Rule::kFactorBelowOne, input.keys.Find("factor"),
      {.message = "A factor below 1 makes positions turn faster, which no training used.",
       .expected = "1 or more"});
}

// The context that the unscaled model was trained on: inside the map, else beside
// it, else the length that the file has, said aloud.
absl::StatusOr<int64_t> OriginalLength(const ScalingInput& input) {
  constexpr absl::string_view kKey = "original_max_position_embeddings";
  for (const JsonValue& value : {input.keys.Find(kKey), input.tower.keys[kKey]}) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> length, ReadPositiveInt(value));
    if (length.has_value()) return *length;
  }
  if (input.max_position_embeddings == 0 || input.rope_type == "llama3") {
    return FieldError(input.keys.map.FieldOf(kKey),
                      absl::StrCat("is required for rope_type ", input.rope_type));
  }
  input.tower.findings.AddMissing(
      Rule::kOriginalLengthMissing, input.keys.map, kKey,
      {.message = absl::StrCat("The training length is not given; max_position_embeddings (",
                               input.max_position_embeddings,
                               ") stands in, which is wrong if it was raised by factor already."),
       .expected = "the length before scaling",
       .fix = absl::StrCat("\"", kKey, "\": ", input.max_position_embeddings)});
  return input.max_position_embeddings;
}

void NoteFactorMismatch(const ScalingInput& input, double factor, int64_t original) {
  if (input.max_position_embeddings == 0 || input.max_position_embeddings == original) return;
  const double implied =
      static_cast<double>(input.max_position_embeddings) / static_cast<double>(original);
  if (implied == factor) return;
  input.tower.findings.Add(
      Rule::kFactorMismatch, input.keys.Find("factor"),
      {.message = absl::StrCat("factor is ", factor,
                               ", but max_position_embeddings / "
                               "original_max_position_embeddings is ",
                               implied,
                               "; factor is used, transformers 4.52 to 4.55 would use the ratio."),
       .expected = absl::StrCat(implied)});
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
                      absl::StrCat("must be at least low_freq_factor (", low, "), got ", high));
  }
  NoteSmallFactor(input, factor);
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

absl::Status SetYarn(const ScalingInput& input, v1::YarnScaling* yarn) {
  const RopeKeys& keys = input.keys;
  ASSIGN_OR_RETURN(const double factor, RequiredFactor(input, "factor"));
  ASSIGN_OR_RETURN(const int64_t original, OriginalLength(input));
  NoteSmallFactor(input, factor);
  NoteFactorMismatch(input, factor, original);
  yarn->set_factor(factor);
  yarn->set_original_max_position_embeddings(original);
  ASSIGN_OR_RETURN(const std::optional<double> beta_fast, NonZero(keys.Find("beta_fast")));
  if (beta_fast.has_value()) yarn->set_beta_fast(*beta_fast);
  ASSIGN_OR_RETURN(const std::optional<double> beta_slow, NonZero(keys.Find("beta_slow")));
  if (beta_slow.has_value()) yarn->set_beta_slow(*beta_slow);
  ASSIGN_OR_RETURN(const std::optional<bool> truncate, ReadBool(keys.Find("truncate")));
  if (truncate.has_value()) yarn->set_truncate(*truncate);
  ASSIGN_OR_RETURN(const std::optional<double> attention_factor,
                   ReadNumber(keys.Find("attention_factor")));
  if (attention_factor.has_value()) yarn->set_attention_factor(*attention_factor);
  ASSIGN_OR_RETURN(const std::optional<double> mscale, NonZero(keys.Find("mscale")));
  if (mscale.has_value()) yarn->set_mscale(*mscale);
  ASSIGN_OR_RETURN(const std::optional<double> all_dim, NonZero(keys.Find("mscale_all_dim")));
  if (all_dim.has_value()) yarn->set_mscale_all_dim(*all_dim);
  return absl::OkStatus();
}

// Keys of the map that its rope_type does not use: a note each, since a misspelt
// key looks the same.
void NoteUnknownKeys(const ScalingInput& input) {
  const auto row = std::find_if(kRopeTypes.begin(), kRopeTypes.end(),
                                [&](const RopeTypeRow& r) { return r.name == input.rope_type; });
  const std::vector<absl::string_view> used = absl::StrSplit(row->keys, ' ');
  for (const JsonValue& value : input.keys.map.children()) {
    const absl::string_view key = value.key();
    if (key == "rope_type" || key == "type" || key == "rope_theta" ||
        key == "partial_rotary_factor" || std::find(used.begin(), used.end(), key) != used.end()) {
      continue;
    }
    input.tower.findings.Add(
        Rule::kRopeKeyUnknown, value,
        {.message = absl::StrCat("rope_type ", input.rope_type, " does not use ", key, ".")});
  }
}

}  // namespace

absl::Status SetScaling(const ScalingInput& input, v1::RopeSpec* spec) {
  NoteUnknownKeys(input);
  if (input.rope_type == "linear") return SetLinear(input, spec->mutable_linear());
  if (input.rope_type == "yarn") return SetYarn(input, spec->mutable_yarn());
  if (input.rope_type == "llama3") return SetLlama3(input, spec->mutable_llama3());
  return absl::OkStatus();
}

}  // namespace posenc
