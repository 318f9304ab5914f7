#include "lib/model_config/rope_keys.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/base/status.h"
#include "lib/model_config/default_maps.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/misspelt_keys.h"

namespace posenc {
namespace {

struct RopeTypeRow {
  absl::string_view name;
  absl::string_view keys;  // beside those of every type
};
constexpr std::array kRopeTypes = {
    RopeTypeRow{"default", ""},
    RopeTypeRow{"linear", "factor"},
    RopeTypeRow{"dynamic", "factor alpha scaling_factor"},
    RopeTypeRow{"ntk", "factor alpha mixed_b"},
    RopeTypeRow{"yarn",
                "factor original_max_position_embeddings beta_fast beta_slow truncate "
                "attention_factor attn_factor mscale mscale_all_dim llama_4_scaling_beta"},
    RopeTypeRow{"longrope",
                "factor original_max_position_embeddings short_factor long_factor "
                "attention_factor short_mscale long_mscale"},
    RopeTypeRow{"llama3",
                "factor original_max_position_embeddings low_freq_factor high_freq_factor"},
    RopeTypeRow{"proportional", "factor"},
};
constexpr absl::string_view kKeysOfEveryType =
    "rope_type type rope_theta partial_rotary_factor mrope_section mrope_interleaved "
    "xdrope_section base";

struct Alias {
  absl::string_view name;
  absl::string_view rope_type;
};
// su: Phi-3 before it was named longrope. Those after xdrope are other stacks' names.
constexpr std::array kAliases = {
    Alias{"su", "longrope"},        Alias{"mrope", "default"},       Alias{"xdrope", "dynamic"},
    Alias{"deepseek_yarn", "yarn"}, Alias{"telechat3-yarn", "yarn"}, Alias{"none", "default"},
    Alias{"openpangu", "default"},
};

// Keys that mean a scaling: beside one of them a missing type is a mistake.
constexpr absl::string_view kScalingKeys =
    "factor alpha short_factor long_factor low_freq_factor high_freq_factor beta_fast beta_slow "
    "attention_factor mscale mscale_all_dim";

// No map comes near; it bounds the work on a hostile one.
constexpr size_t kMaxMapKeys = 128;

bool IsScalingKey(absl::string_view key) {
  const std::vector<absl::string_view> keys = absl::StrSplit(kScalingKeys, ' ');
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::string WithoutAlias(absl::string_view type) {
  for (const Alias& alias : kAliases) {
    if (alias.name == type) return std::string(alias.rope_type);
  }
  return std::string(type);
}

// The name in one map, in its new or old spelling; absent when neither.
absl::StatusOr<JsonValue> TypeIn(const Tower& tower, const JsonValue& map) {
  const JsonValue rope_type = map["rope_type"];
  const JsonValue type = map["type"];
  ASSIGN_OR_RETURN(const std::optional<std::string> new_name, ReadString(rope_type));
  ASSIGN_OR_RETURN(const std::optional<std::string> old_name, ReadString(type));
  if (!new_name.has_value()) return old_name.has_value() ? type : JsonValue();
  if (!old_name.has_value() || WithoutAlias(*new_name) == WithoutAlias(*old_name)) {
    return rope_type;
  }
  if (tower.compat() == v1::COMPAT_LATEST) {
    return FieldError(type.field(), absl::StrCat("contradicts rope_type, its other spelling: ",
                                                 type.Text(), " against ", rope_type.Text()));
  }
  const bool old_wins = tower.compat() == v1::COMPAT_V4_57;
  tower.findings.Add(Rule::kCompatDiffers, type,
                     {.message = "type and rope_type differ: transformers 4 reads type, "
                                 "transformers 5 reads rope_type.",
                      .expected = rope_type.Text(),
                      .fix = MemberText("type", rope_type.Text())});
  return old_wins ? type : rope_type;
}

// A map, or absent for null, {} and no key at all.
absl::StatusOr<JsonValue> MapAt(const JsonValue& value) {
  if (!value.has_value()) return JsonValue();
  if (!value.is_object()) {
    return FieldError(value.field(),
                      absl::StrCat("must be an object or null, got ", value.Describe()));
  }
  if (value.size() > kMaxMapKeys) {
    return FieldError(value.field(),
                      absl::StrCat("must have at most ", kMaxMapKeys, " keys, has ", value.size()));
  }
  return value.size() == 0 ? JsonValue() : value;
}

// What rope_parameters alone says, beside a rope_scaling that replaces it.
void NoteLostKeys(const Tower& tower, const JsonValue& scaling, const JsonValue& parameters) {
  for (const JsonValue& value : parameters.children()) {
    const absl::string_view key = value.key();
    const JsonValue beside = tower.keys[key];
    const bool said_beside =
        value.is_number() && beside.is_number() && value.number() == beside.number();
    if (!value.has_value() || key == "rope_type" || key == "type" || said_beside ||
        scaling[key].has_value()) {
      continue;
    }
    // Readers of the old form look for the base beside the map.
    const bool beside_map = key == "rope_theta";
    tower.findings.Add(
        Rule::kTwoRopeMaps, value,
        {.message = absl::StrCat("rope_scaling replaces rope_parameters whole, so this ", key,
                                 " is lost."),
         .expected =
             absl::StrCat(key, beside_map ? " beside rope_scaling" : " inside rope_scaling"),
         // Another base beside it may be the one that is meant.
         .fix = value.is_object() || value.is_shortened() || (beside_map && beside.has_value())
                    ? ""
                    : MemberText(key, value.Text()),
         .fix_object = beside_map ? tower.keys : scaling});
  }
}

// Whether the map says what stands neither beside it nor in every map.
bool SaysMore(const Tower& tower, const JsonValue& parameters) {
  const std::vector<JsonValue> members = parameters.children();
  return std::any_of(members.begin(), members.end(), [&](const JsonValue& member) {
    if (!member.has_value()) return false;
    const JsonValue beside = tower.keys[member.key()];
    const bool said_beside =
        member.is_number() && beside.is_number() && member.number() == beside.number();
    return !said_beside && !(member.is_string() && member.string() == "default");
  });
}

// transformers 4 keeps rope_parameters as a key that nobody reads.
bool IsUnreadMap(const Tower& tower, const JsonValue& parameters) {
  if (!tower.reads_as_v4() || !parameters.present()) return false;
  if (SaysMore(tower, parameters)) {
    tower.findings.Add(
        Rule::kCompatDiffers, parameters,
        {.message = "transformers 4 does not know rope_parameters and takes the base "
                    "and the scaling beside it, or its defaults, as here; "
                    "transformers 5 reads it.",
         .expected = "rope_theta and rope_scaling"});
  }
  return true;
}

// Both forms in one file: rope_scaling replaces the other, as in transformers 5.
absl::StatusOr<RopeKeys> BothMaps(const Tower& tower, const JsonValue& scaling,
                                  const JsonValue& parameters) {
  // 5.16 does not look at what it replaces.
  const bool scaling_wins = tower.compat() == v1::COMPAT_V5_16;
  ASSIGN_OR_RETURN(const JsonValue old_type, TypeIn(tower, scaling));
  ASSIGN_OR_RETURN(const JsonValue new_type, TypeIn(tower, parameters));
  if (old_type.present() && new_type.present()) {
    const std::string old_name = WithoutAlias(old_type.string());
    const std::string new_name = WithoutAlias(new_type.string());
    if (old_name != new_name && new_name != "default" && !scaling_wins) {
      return FieldError(scaling.field(), absl::StrCat("contradicts rope_parameters: rope_type ",
                                                      old_name, " against ", new_name));
    }
    if (old_name != new_name) {
      tower.findings.Add(
          Rule::kTwoRopeMaps, scaling,
          {.message = absl::StrCat("rope_scaling says ", old_name, ", rope_parameters says ",
                                   new_name, "; the former replaces the latter whole."),
           .found = old_name,
           .expected = new_name});
    }
  }
  for (const JsonValue& value : scaling.children()) {
    const JsonValue other = parameters[value.key()];
    if (!AreOtherNumbers(value, other)) continue;
    if (!scaling_wins) {
      return FieldError(value.field(), absl::StrCat("contradicts ", other.field(), ": ",
                                                    value.Text(), " against ", other.Text()));
    }
    tower.findings.Add(
        Rule::kTwoRopeMaps, value,
        {.message = absl::StrCat("rope_scaling says ", value.key(), " ", value.Text(),
                                 ", rope_parameters says ", other.Text(),
                                 "; the former replaces the latter whole."),
         .expected = std::string(other.Text())});
  }
  NoteLostKeys(tower, scaling, parameters);
  return RopeKeys{scaling};
}

// Phi-3's first files called a LongRoPE yarn: its lists tell them apart.
std::string TypeInFamily(const Tower& tower, const RopeKeys& keys, std::string rope_type) {
  const bool has_lists = keys.Find("short_factor").present() && keys.Find("long_factor").present();
  const bool longrope = tower.family.rope.rope_types == kDefaultOrLongRope;
  return longrope && rope_type == "yarn" && has_lists ? "longrope" : rope_type;
}

// A type that the family's own class refuses: nobody has run the model with it. Only classes with
// M-RoPE take its name for default; others find no such rope_type.
void NoteForeignType(const Tower& tower, const JsonValue& type, absl::string_view rope_type) {
  const bool known_family = !tower.family.model_types.empty();
  if (type.string() == "mrope" && known_family && tower.family.rope.mrope_scheme.empty()) {
    tower.findings.Add(
        Rule::kRopeTypeForeign, type,
        {.message = "transformers fails on rope_type mrope in this family, which has "
                    "no M-RoPE; it is read as default.",
         .expected = "default"});
    return;
  }
  const absl::string_view allowed = tower.family.rope.rope_types;
  const std::vector<absl::string_view> names = absl::StrSplit(allowed, ' ', absl::SkipEmpty());
  if (names.empty() || std::find(names.begin(), names.end(), rope_type) != names.end()) return;
  tower.findings.Add(Rule::kRopeTypeForeign, type,
                     {.message = absl::StrCat("transformers refuses rope_type ", rope_type,
                                              " in this family; it is read as in others."),
                      .expected = absl::StrCat("one of ", absl::StrJoin(names, ", "))});
}

// FoPE multiplies cos and sin by learned matrices (vLLM, LMDeploy): no config gives its table.
// Some files have the switch, InternS1's only what the matrices were made with.
absl::Status RefuseFope(const RopeKeys& keys) {
  constexpr absl::string_view kReason =
      ": Fourier RoPE (FoPE) multiplies cos and sin by matrices of the checkpoint, got ";
  const JsonValue fope = keys.Find("use_fope");
  ASSIGN_OR_RETURN(const std::optional<bool> use_fope, ReadBool(fope));
  if (use_fope.has_value()) {
    return *use_fope ? FieldError(fope.field(), absl::StrCat("must be false", kReason, "true"))
                     : absl::OkStatus();
  }
  for (absl::string_view key : {"fope_init_factor", "fope_sep_head", "num_inv_freq"}) {
    const JsonValue value = keys.Find(key);
    if (!value.has_value()) continue;
    return FieldError(value.field(), absl::StrCat("must be null", kReason, value.Text()));
  }
  return absl::OkStatus();
}

}  // namespace

JsonValue RopeKeys::Find(absl::string_view key) const {
  const JsonValue value = map[key];
  return value.has_value() ? value : JsonValue();
}

absl::StatusOr<RopeKeys> FindRopeKeys(const Tower& tower) {
  const RopeTraits& traits = tower.family.rope;
  ASSIGN_OR_RETURN(JsonValue scaling, MapAt(tower.keys["rope_scaling"]));
  ASSIGN_OR_RETURN(JsonValue parameters, MapAt(tower.keys["rope_parameters"]));
  if (traits.map_key == "-") {
    for (const JsonValue& map : {scaling, parameters}) {
      if (!map.present()) continue;
      tower.findings.Add(Rule::kRopeKeyIgnored, map,
                         {.message = "This family has a fixed RoPE; no reader applies this map."});
    }
    return RopeKeys();
  }
  if (IsUnreadMap(tower, parameters)) parameters = JsonValue();
  if (!scaling.present() && !traits.map_key.empty()) {
    ASSIGN_OR_RETURN(scaling, MapAt(tower.keys[traits.map_key]));
  }
  if (scaling.present() && parameters.present()) return BothMaps(tower, scaling, parameters);
  if (scaling.present()) return RopeKeys{scaling};
  if (parameters.present()) return RopeKeys{parameters};
  if (!traits.default_map.empty()) return RopeKeys{DefaultMap(traits.default_map)};
  return RopeKeys();
}

absl::StatusOr<RopeTypeName> RopeTypeOf(const Tower& tower, const RopeKeys& keys) {
  if (!keys.present()) return RopeTypeName();
  RETURN_IF_ERROR(RefuseFope(keys));
  ASSIGN_OR_RETURN(JsonValue type, TypeIn(tower, keys.map));
  if (!type.present()) {
    if (const JsonValue scaling = FirstOf(keys.map, kScalingKeys); scaling.present()) {
      return FieldError(keys.map.FieldOf("rope_type"),
                        absl::StrCat("is required beside ", scaling.key(),
                                     ": without it the scaling would be ignored"));
    }
    return RopeTypeName();
  }
  const std::string rope_type = TypeInFamily(tower, keys, WithoutAlias(type.string()));
  std::vector<absl::string_view> known;
  for (const RopeTypeRow& row : kRopeTypes) known.push_back(row.name);
  if (std::find(known.begin(), known.end(), rope_type) == known.end()) {
    return FieldError(type.field(), absl::StrCat("must be one of ", absl::StrJoin(known, ", "),
                                                 ", got ", type.Describe()));
  }
  NoteForeignType(tower, type, rope_type);
  return RopeTypeName{rope_type, std::string(type.string())};
}

void NoteUnusedKeys(const Tower& tower, const RopeKeys& keys, absl::string_view rope_type) {
  const auto row = std::find_if(kRopeTypes.begin(), kRopeTypes.end(),
                                [&](const RopeTypeRow& r) { return r.name == rope_type; });
  std::vector<absl::string_view> used = absl::StrSplit(kKeysOfEveryType, ' ');
  for (absl::string_view key : absl::StrSplit(row->keys, ' ')) used.push_back(key);
  // Latent attention scales its softmax by it whatever the type (MlaSoftmaxScale).
  if (tower.family.rope.mla_softmax_scale && rope_type != "default") {
    used.push_back("mscale_all_dim");
  }
  for (const JsonValue& value : keys.map.children()) {
    if (std::find(used.begin(), used.end(), value.key()) != used.end()) continue;
    // A factor that is not applied, or a map of layers of a misspelt type, is worse than a key
    // that nobody knows.
    if (NoteMisspeltInMap(tower, keys.map, value, used)) continue;
    const bool lost = value.is_object() || (rope_type == "default" && IsScalingKey(value.key()));
    tower.findings.Add(
        lost ? Rule::kRopeKeyIgnored : Rule::kRopeKeyUnknown, value,
        {.message = absl::StrCat("rope_type ", rope_type, " does not use ", value.key(), ".")});
  }
}

}  // namespace posenc
