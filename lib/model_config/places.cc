#include "lib/model_config/places.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/message.h"
#include "lib/base/status.h"
#include "lib/model_config/fact_place.h"
#include "lib/model_config/fields.h"
#include "posenc/v1/error_details.pb.h"

namespace posenc {
namespace {

constexpr absl::string_view kBadRequest = "type.googleapis.com/google.rpc.BadRequest";

// Stacks build other tables where the file has it (profile.h).
constexpr absl::string_view kDualChunk = "dual_chunk_attention_config";

constexpr absl::string_view kOverrides = "overrides_json";

constexpr absl::string_view kMaps = "rope_scaling rope_parameters";

// What decides which layers are alike, in the families that have layers of several kinds.
constexpr absl::string_view kLayerKeys =
    "layer_types layers_block_type hybrid_layer_pattern no_rope_layers rope_layout "
    "layer_rope_theta use_rope_layers attn_type_list cross_attention_layers compress_ratios "
    "attn_layer_indices hybrid_layer_ids block_types full_attn_idxs "
    "linear_attn_config/full_attn_layers sliding_window_pattern _sliding_window_pattern "
    "global_attn_every_n_layers full_attention_interval no_rope_layer_interval "
    "num_hidden_layers";

constexpr absl::string_view kHeadsKeys = "num_attention_heads n_head n_heads num_heads";

constexpr absl::string_view kLengthKeys =
    "max_position_embeddings n_positions max_seq_len n_ctx seq_length model_max_length "
    "max_seq_length max_source_positions max_target_positions image_size";

absl::string_view FirstName(absl::string_view names) { return names.substr(0, names.find(' ')); }

v1::FactPlace* NewPlace(absl::string_view fact, v1::ResolvedEncoding* encoding) {
  v1::FactPlace* place = encoding->add_places();
  place->set_fact(std::string(fact));
  return place;
}

void SetPlace(const JsonValue& value, v1::FactPlace* place) {
  place->set_line(value.line());
  place->set_column(value.column());
  place->set_in_overrides(value.in_overrides());
}

void AddValue(absl::string_view fact, const JsonValue& value, v1::ResolvedEncoding* encoding) {
  v1::FactPlace* place = NewPlace(fact, encoding);
  place->set_pointer(value.pointer());
  place->set_found(value.Text());
  SetPlace(value, place);
}

// In the map that is in use, else beside it, where the first of `names` would stand.
void AddInMapOrBeside(absl::string_view fact, const Tower& tower, const LayerGroup& group,
                      absl::string_view inner, absl::string_view names,
                      v1::ResolvedEncoding* encoding) {
  if (const JsonValue value = group.keys.Find(inner); value.has_value()) {
    return AddValue(fact, value, encoding);
  }
  AddPlace(fact, tower.keys, names, encoding);
}

absl::string_view Or(absl::string_view first, absl::string_view second) {
  return first.empty() ? second : first;
}

void AddWidthPlaces(const Tower& tower, const LayerGroup& group, const JsonValue& partial,
                    v1::ResolvedEncoding* encoding) {
  const RopeTraits& traits = tower.family.rope;
  const absl::string_view head_keys = Or(group.head_dim_key, traits.head_dim_keys);
  // Without a key of its own the width of a head is a quotient.
  const JsonValue head = FirstOf(tower.keys, head_keys);
  const JsonValue hidden = FirstOf(tower.keys, "hidden_size n_embd d_model dim");
  const JsonValue width = head.has_value() ? head : hidden;
  if (!head.has_value()) AddPlace("num_attention_heads", tower.keys, kHeadsKeys, encoding);
  if (width.has_value()) {
    AddValue("head_dim", width, encoding);
  } else {
    AddPlace("head_dim", tower.keys, head_keys, encoding);
  }
  JsonValue rotary = partial;
  if (!rotary.has_value()) {
    rotary = tower.keys[Or(traits.rotary_dim_key, traits.halved_width_key)];
  }
  if (!rotary.has_value()) rotary = width;
  if (rotary.has_value()) AddValue("rotary_dim", rotary, encoding);
}

// Where a parameter of the scaling comes from: the map, or what stands for it beside it.
JsonValue ParameterOf(const Tower& tower, const RopeKeys& keys, absl::string_view name) {
  const RopeTraits& traits = tower.family.rope;
  if (const JsonValue value = keys.Find(name); value.has_value()) return value;
  if (name == "factor") {
    const JsonValue own = keys.map["scaling_factor"];
    return own.has_value() ? own : tower.keys[traits.position_scale_key];
  }
  if (name == "max_position_embeddings") return FirstOf(tower.keys, kLengthKeys);
  const bool beside = name == "original_max_position_embeddings" || name == "partial_rotary_factor";
  return beside ? tower.keys[name] : JsonValue();
}

// A place for each parameter of the scaling that the file has.
void AddScalingPlaces(const Tower& tower, const RopeKeys& keys, v1::ResolvedEncoding* encoding) {
  const v1::RopeSpec& rope = encoding->spec().rope();
  const auto* reflection = v1::RopeSpec::GetReflection();
  const auto* scaling = reflection->GetOneofFieldDescriptor(
      rope, v1::RopeSpec::descriptor()->FindOneofByName("scaling"));
  if (scaling == nullptr) return;
  const auto* parameters = scaling->message_type();
  for (int i = 0; i < parameters->field_count(); ++i) {
    const std::string& name = parameters->field(i)->name();
    const JsonValue value = ParameterOf(tower, keys, name);
    if (value.has_value()) AddValue(absl::StrCat(scaling->name(), ".", name), value, encoding);
  }
}

// What a refusal is about, of its BadRequest; nothing where the status has none.
std::optional<v1::BadRequest::FieldViolation> ViolationOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kBadRequest);
  v1::BadRequest detail;
  if (!payload || !detail.ParseFromString(std::string(*payload)) ||
      detail.field_violations().empty()) {
    return std::nullopt;
  }
  return detail.field_violations(0);
}

// What a rule asks for, by the grammar of FieldError: "must be a number, got true" asks for
// "a number", "contradicts ...: 8 against 4" for the 4 that was there first.
std::string ExpectedBy(absl::string_view rule) {
  const auto after = [&](absl::string_view words) {
    const size_t at = rule.rfind(words);
    return at == absl::string_view::npos ? "" : rule.substr(at + words.size());
  };
  if (absl::StartsWith(rule, "contradicts ")) return std::string(after(" against "));
  absl::string_view wanted = absl::StartsWith(rule, "must ") ? rule.substr(5) : after(", must ");
  absl::ConsumePrefix(&wanted, "be ");
  for (absl::string_view found : {", got ", ", has ", ", sums to "}) {
    wanted = wanted.substr(0, wanted.find(found));
  }
  return std::string(wanted);
}

// The deepest value that a pointer leads to: itself, or the object that lacks the rest.
JsonValue Nearest(JsonValue value, absl::string_view pointer) {
  absl::ConsumePrefix(&pointer, "/");
  if (pointer.empty()) return value;
  for (absl::string_view token : absl::StrSplit(pointer, '/')) {
    const std::string key = absl::StrReplaceAll(token, {{"~1", "/"}, {"~0", "~"}});
    JsonValue next = value[key];
    uint32_t index = 0;
    if (value.is_array() && absl::SimpleAtoi(key, &index) && index < value.size()) {
      next = value.children()[index];
    }
    if (!next.present()) return value;
    value = next;
  }
  return value;
}

}  // namespace

void AddPlace(absl::string_view fact, const JsonValue& object, absl::string_view names,
              v1::ResolvedEncoding* encoding) {
  if (!object.present()) return;
  JsonValue value = FirstOf(object, names);
  // A null is where the value would stand.
  if (!value.present()) value = object[FirstName(names)];
  if (value.present()) return AddValue(fact, value, encoding);
  v1::FactPlace* place = NewPlace(fact, encoding);
  place->set_pointer(absl::StrCat(object.pointer(), "/", FirstName(names)));
  SetPlace(object, place);
}

namespace {

// Where a scale of the queries comes from (SetQueryScale), and its numbers.
void AddQueryScalePlaces(const Tower& tower, const RopeKeys& keys, v1::ResolvedEncoding* encoding) {
  constexpr absl::string_view kSwitch = "query_scale";
  constexpr absl::string_view kBeta = "query_scale.beta";
  constexpr absl::string_view kLength = "query_scale.length";
  switch (tower.family.rope.query_scale) {
    case QueryScaleRule::kNone:
      return;
    case QueryScaleRule::kQwen:
      AddPlace(kSwitch, tower.keys, "use_logn_attn", encoding);
      return AddPlace(kLength, tower.keys, "seq_length", encoding);
    case QueryScaleRule::kLlama4:
      AddPlace(kSwitch, tower.keys, "attn_temperature_tuning", encoding);
      AddPlace(kBeta, tower.keys, "attn_scale", encoding);
      return AddPlace(kLength, tower.keys, "floor_scale", encoding);
    case QueryScaleRule::kMinistral:
      AddPlace(kSwitch, keys.map, "llama_4_scaling_beta", encoding);
      AddPlace(kBeta, keys.map, "llama_4_scaling_beta", encoding);
      const JsonValue length = ParameterOf(tower, keys, "original_max_position_embeddings");
      if (length.has_value()) AddValue(kLength, length, encoding);
      return;
  }
}

}  // namespace

void AddRopePlaces(const Tower& tower, const LayerGroup& group, const JsonValue& partial,
                   v1::ResolvedEncoding* encoding) {
  AddWidthPlaces(tower, group, partial, encoding);
  if (const JsonValue interleave = tower.keys["rope_interleave"]; interleave.has_value()) {
    AddValue("rotation", interleave, encoding);
  }
  const absl::string_view thetas = Or(group.theta_keys, tower.family.rope.theta_keys);
  const absl::string_view ratio_key = tower.family.rope.theta_ratio_key;
  if (!ratio_key.empty() && !group.keys.Find("rope_theta").has_value()) {
    AddPlace("rope_theta", tower.keys, ratio_key, encoding);
  } else if (group.theta_value.has_value() && !group.keys.Find("rope_theta").has_value()) {
    AddValue("rope_theta", group.theta_value, encoding);
  } else if (tower.reads_as_v4()) {
    AddPlace("rope_theta", tower.keys, Or(thetas, "rope_theta"), encoding);
  } else {
    AddInMapOrBeside("rope_theta", tower, group, "rope_theta", Or(thetas, "rope_theta"), encoding);
  }
  if (const JsonValue chunks = tower.keys[kDualChunk]; chunks.truthy()) {
    AddValue(kDualChunk, chunks, encoding);
  }
  const bool in_file = group.keys.present() && IsGiven(group.keys.map);
  AddScalingPlaces(tower, in_file ? group.keys : RopeKeys{}, encoding);
  AddQueryScalePlaces(tower, in_file ? group.keys : RopeKeys{}, encoding);
  if (in_file) {
    AddPlace("rope_type", group.keys.map, "rope_type type", encoding);
    AddValue("scaling", group.keys.map, encoding);
  } else {
    // A scaling would stand in one of these.
    AddPlace("rope_type", tower.keys, kMaps, encoding);
    AddPlace("scaling", tower.keys, kMaps, encoding);
  }
  if (!encoding->has_mrope()) return;
  const JsonValue sections = group.keys.Find("mrope_section");
  if (sections.has_value()) return AddValue("mrope_section", sections, encoding);
  AddPlace("mrope_section", in_file ? group.keys.map : tower.keys,
           in_file ? "xdrope_section mrope_section" : kMaps, encoding);
}

void AddCommonPlaces(const Tower& tower, v1::ResolvedEncoding* encoding) {
  AddPlace("kind", tower.keys, "model_type", encoding);
  for (absl::string_view pair : absl::StrSplit(tower.family.switches, ' ', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> name_and_key =
        absl::StrSplit(pair, absl::MaxSplits('=', 1));
    AddPlace(absl::StrCat("with:", name_and_key.first), tower.keys, name_and_key.second, encoding);
  }
  if (encoding->spec().has_sinusoidal()) {
    AddPlace("d_model", tower.keys, "embed_dim d_model hidden_size n_embd dim", encoding);
  }
  if (encoding->spec().has_alibi()) {
    AddPlace("num_heads", tower.keys, kHeadsKeys, encoding);
    AddPlace("alibi_bias_max", tower.keys["attn_config"], "alibi_bias_max", encoding);
  }
  AddPlace("layers", tower.keys, kLayerKeys, encoding);
  AddPlace("max_position_embeddings", tower.keys, kLengthKeys, encoding);
}

absl::Status WithPlace(absl::Status status, const JsonValue& root) {
  const auto violation = ViolationOf(status);
  if (!violation.has_value()) return status;
  absl::string_view pointer = violation->field();
  const bool in_overrides = absl::ConsumePrefix(&pointer, kOverrides);
  if (!in_overrides && !absl::ConsumePrefix(&pointer, root.field())) return status;
  const JsonValue nearest = Nearest(root, pointer);
  v1::FactPlace place;
  place.set_fact("refused");
  place.set_expected(ExpectedBy(violation->description()));
  place.set_pointer(std::string(pointer));
  place.set_in_overrides(in_overrides);
  if (in_overrides == nearest.in_overrides()) {
    SetPlace(nearest, &place);
    if (nearest.pointer() == pointer) place.set_found(nearest.Text());
  }
  return WithFactPlace(std::move(status), place);
}

absl::Status AtConfigKey(absl::Status status, const v1::ResolvedEncoding& encoding) {
  const auto violation = ViolationOf(status);
  if (!violation.has_value()) return status;
  // rope.longrope.long_factor[3] and mrope.rope.longrope.long_factor are longrope.long_factor.
  absl::string_view fact = violation->field();
  const size_t dot = fact.find('.');
  if (dot == absl::string_view::npos) return status;
  fact.remove_prefix(dot + 1);
  absl::ConsumePrefix(&fact, "rope.");
  fact = fact.substr(0, fact.find('['));
  // A length that nobody asked for is the model's own: what it raises too far is the base.
  if (fact == "dynamic.sequence_length" &&
      !encoding.spec().rope().dynamic().has_sequence_length()) {
    fact = "rope_theta";
  }
  for (const v1::FactPlace& found : encoding.places()) {
    if (found.fact() != fact) continue;
    v1::FactPlace place = found;
    place.set_fact("refused");
    place.set_expected(ExpectedBy(violation->description()));
    const absl::string_view document = found.in_overrides() ? kOverrides : "config_json";
    return WithFactPlace(
        FieldError(absl::StrCat(document, found.pointer()), violation->description()), place);
  }
  return status;
}

}  // namespace posenc
