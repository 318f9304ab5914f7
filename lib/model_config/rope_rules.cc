#include "lib/model_config/rope_rules.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/layer_rules.h"
#include "lib/model_config/rope_keys.h"
#include "lib/model_config/rope_scaling.h"
#include "lib/model_config/rope_width.h"

namespace posenc {
namespace {

// Inside the map, else beside it, else the family's default.
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
    if (inner_theta.has_value()) {
      if (outer_theta.has_value() && *outer_theta != *inner_theta) NoteTwoBases(inner, outer);
      if (!outer_theta.has_value() && *inner_theta != 10000) NoteNewFormOnly(inner);
      return *inner_theta;
    }
    if (outer_theta.has_value()) return *outer_theta;
    return Default();
  }

 private:
  absl::StatusOr<JsonValue> Outer() const {
    if (group_.theta_value.has_value()) return group_.theta_value;
    return OneOf(tower_.keys, keys_);
  }

  absl::StatusOr<double> Default() {
    if (!tower_.family.rope.theta_ratio_key.empty()) {
      ASSIGN_OR_RETURN(const std::optional<double> ratio,
                       ReadPositiveNumber(tower_.keys[tower_.family.rope.theta_ratio_key]));
      return default_ * ratio.value_or(1);
    }
    if (keys_.empty()) return default_;  // no file of the family has a base
    const std::string first(std::string(keys_.substr(0, keys_.find(' '))));
    const JsonValue null_theta = tower_.keys[first];
    const FindingText text = {
        .message =
            absl::StrCat("The base is ", null_theta.present() ? "null" : "not given",
                         "; the default of the family, ", NumberText(default_), ", is used."),
        .expected = NumberText(default_),
        .fix = absl::StrCat("\"", first, "\": ", NumberText(default_))};
    if (null_theta.present()) {
      tower_.findings.Add(Rule::kThetaNull, null_theta, text);
    } else {
      tower_.findings.AddMissing(Rule::kThetaDefaulted, tower_.keys, first, text);
      NoteOldDefault(first);
    }
    return tower_.compat() == v1::COMPAT_V4_57 && tower_.family.rope.theta_v4 != 0
               ? tower_.family.rope.theta_v4
               : default_;
  }

  void NoteOldDefault(absl::string_view key) const {
    const double old = tower_.family.rope.theta_v4;
    if (old == 0) return;
    tower_.findings.AddMissing(
        Rule::kCompatDiffers, tower_.keys, key,
        {.message = absl::StrCat("Without a base transformers 4 takes ", NumberText(old),
                                 ", transformers 5 takes ", NumberText(default_), "."),
         .expected = NumberText(default_)});
  }

  void NoteTwoBases(const JsonValue& inner, const JsonValue& outer) const {
    tower_.findings.Add(
        Rule::kThetaMismatch, outer,
        {.message = absl::StrCat(outer.pointer(), " and ", inner.pointer(),
                                 " differ; readers of the new form use the latter, as here, "
                                 "readers of the old form the former."),
         .expected = inner.Text()});
  }

  // A file that an old reader takes for base 10000.
  void NoteNewFormOnly(const JsonValue& inner) const {
    if (inner.line() == 0) return;  // the family's own default map
    tower_.findings.Add(
        Rule::kThetaOnlyNewForm, inner,
        {.message = absl::StrCat("The base stands only inside rope_parameters; a reader of the "
                                 "old form takes its default instead."),
         .fix = absl::StrCat("\"rope_theta\": ", inner.Text())});
  }

  const Tower& tower_;
  const LayerGroup& group_;
  const absl::string_view keys_;
  const double default_;
};

// A factor where a reader of the map cannot see it.
void NoteMisplacedKeys(const Tower& tower, const RopeKeys& keys) {
  for (absl::string_view name : {"factor", "rope_condense_ratio", "rope_type"}) {
    const JsonValue value = tower.keys[name];
    if (!value.has_value()) continue;
    const bool scaled = keys.Find("factor").has_value();
    if (name == "rope_condense_ratio" && scaled) continue;  // the same, said in both ways
    tower.findings.Add(
        Rule::kRopeKeyIgnored, value,
        {.message = absl::StrCat(name,
                                 " stands outside rope_scaling, where no reader applies "
                                 "it; it is ignored here too."),
         .expected = "inside rope_scaling, beside its rope_type"});
  }
}

// The sections of M-RoPE: the map's, else the family's. Refuses sections that do
// not use every frequency.
absl::Status SetMrope(const Tower& tower, const RopeKeys& keys, v1::ResolvedEncoding* encoding) {
  const RopeTraits& traits = tower.family.rope;
  if (traits.mrope_scheme.empty()) return absl::OkStatus();
  JsonValue list = keys.Find("mrope_section");
  if (!list.has_value()) list = keys.Find("xdrope_section");
  std::vector<int64_t> sections(traits.mrope_section.begin(), traits.mrope_section.end());
  if (list.has_value()) {
    ASSIGN_OR_RETURN(sections, ReadInts(list));
  } else if (sections[0] == 0) {
    return absl::OkStatus();
  }
  int64_t sum = 0;
  for (const int64_t section : sections) sum += section;
  const int64_t frequencies = encoding->spec().rope().rotary_dim() / 2;
  if (sum != frequencies) {
    const std::string field = list.present()       ? list.field()
                              : keys.map.present() ? keys.map.FieldOf("mrope_section")
                                                   : tower.keys.FieldOf("rope_scaling");
    return FieldError(field, absl::StrCat("must sum to the ", frequencies,
                                          " frequencies of a head, sums to ", sum));
  }
  v1::MropeSections& mrope = *encoding->mutable_mrope();
  mrope.mutable_sections()->Assign(sections.begin(), sections.end());
  ASSIGN_OR_RETURN(const std::optional<bool> interleaved, ReadBool(keys.Find("mrope_interleaved")));
  std::string scheme(traits.mrope_scheme);
  if (interleaved.has_value() && scheme != "ernie" && scheme != "xdrope") {
    scheme = *interleaved ? "interleaved" : "contiguous";
  }
  mrope.set_scheme(scheme);
  return absl::OkStatus();
}

// Llama 4 and Ministral scale queries by their position, beside the table.
absl::Status SetQueryScale(const ScalingInput& input, v1::ResolvedEncoding* encoding) {
  const JsonValue& keys = input.tower.keys;
  switch (input.tower.family.rope.query_scale) {
    case QueryScaleRule::kNone:
      return absl::OkStatus();
    case QueryScaleRule::kLlama4: {
      ASSIGN_OR_RETURN(const std::optional<bool> tuned, ReadBool(keys["attn_temperature_tuning"]));
      if (!tuned.value_or(true)) return absl::OkStatus();
      ASSIGN_OR_RETURN(const std::optional<double> scale, ReadNumber(keys["attn_scale"]));
      ASSIGN_OR_RETURN(const std::optional<int64_t> floor, ReadPositiveInt(keys["floor_scale"]));
      v1::QueryScale& query = *encoding->mutable_query_scale();
      query.set_beta(scale.value_or(0.1));
      query.set_length(floor.value_or(8192));
      query.set_shift(1);
      query.set_nope_layers_only(true);
      return absl::OkStatus();
    }
    case QueryScaleRule::kMinistral: {
      ASSIGN_OR_RETURN(const std::optional<double> beta,
                       ReadNumber(input.keys.Find("llama_4_scaling_beta")));
      if (!beta.has_value()) return absl::OkStatus();
      ASSIGN_OR_RETURN(const int64_t original, OriginalLength(input));
      v1::QueryScale& query = *encoding->mutable_query_scale();
      query.set_beta(*beta);
      query.set_length(original);
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

// Which code's variant of the type it is; PhiMoE has one for its scaling only.
std::string VariantOf(const Tower& tower, absl::string_view rope_type) {
  const absl::string_view variant = tower.family.rope.variant;
  return variant == "phimoe" && rope_type != "longrope" ? "" : std::string(variant);
}

absl::Status AddGroup(const Tower& tower, const LayerGroup& group, int64_t max_position,
                      v1::ResolveModelConfigResponse* response) {
  const RopeTraits& traits = tower.family.rope;
  ASSIGN_OR_RETURN(const RopeTypeName type, RopeTypeOf(tower, group.keys));
  ASSIGN_OR_RETURN(const RopeWidth width, WidthOf(tower, group, type.rope_type));
  ASSIGN_OR_RETURN(const double theta, ThetaRule(tower, group).Resolve());
  NoteMisplacedKeys(tower, group.keys);

  v1::ResolvedEncoding encoding = NewEncoding(tower, "rope");
  encoding.set_layer_type(group.layer_type);
  encoding.mutable_layers()->Assign(group.layers.begin(), group.layers.end());
  encoding.mutable_nope_layers()->Assign(group.nope_layers.begin(), group.nope_layers.end());
  encoding.set_rope_type(type.rope_type);
  encoding.set_max_position_embeddings(max_position);
  encoding.set_rotation(std::string(RotationName(width.rotation)));
  encoding.set_rotary_channels_last(width.channels_last);
  encoding.set_variant(VariantOf(tower, type.rope_type));
  v1::RopeSpec& rope = *encoding.mutable_spec()->mutable_rope();
  rope.set_head_dim(width.head_dim);
  rope.set_rotary_dim(width.rotary_dim);
  rope.set_rope_theta(theta);
  rope.set_pairing(width.rotation == Rotation::kHalf ? v1::PAIRING_HALF : v1::PAIRING_INTERLEAVED);
  rope.set_arithmetic(tower.model.arithmetic() != v1::ARITHMETIC_UNSPECIFIED
                          ? tower.model.arithmetic()
                          : traits.arithmetic);
  const ScalingInput input = {tower,
                              group.keys,
                              type,
                              max_position,
                              width.head_dim,
                              width.rotary_dim,
                              group.attention_factor};
  RETURN_IF_ERROR(SetScaling(input, &rope));
  RETURN_IF_ERROR(SetMrope(tower, group.keys, &encoding));
  RETURN_IF_ERROR(SetQueryScale(input, &encoding));
  if (traits.mla_softmax_scale && width.channels_last) {
    encoding.set_softmax_scale_multiplier(MlaSoftmaxScale(input));
  }
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

// Kimi's linear models keep the rope part of a head without turning it; others
// have a switch.
absl::StatusOr<bool> Disabled(const Tower& tower) {
  ASSIGN_OR_RETURN(const std::optional<bool> mla_nope, ReadBool(tower.keys["mla_use_nope"]));
  if (mla_nope.value_or(false)) return true;
  if (tower.family.rope.layers != LayerRule::kGraniteHybrid) return false;
  const JsonValue type = tower.keys["position_embedding_type"];
  return !type.is_string() || type.string() != "rope";
}

v1::ResolvedEncoding NoRotation(const Tower& tower, int64_t num_layers) {
  v1::ResolvedEncoding encoding = NewEncoding(tower, "none");
  for (int64_t i = 0; i < num_layers; ++i) encoding.add_nope_layers(i);
  return encoding;
}

}  // namespace

absl::string_view RotationName(Rotation rotation) {
  switch (rotation) {
    case Rotation::kHalf:
      return "half";
    case Rotation::kInterleaved:
      return "interleaved";
    case Rotation::kInterleavedToHalf:
      return "interleaved_to_half";
    case Rotation::kComplex:
      return "complex";
    case Rotation::kHalfPerAxis:
      return "half_per_axis";
  }
  return "";
}

absl::Status ResolveRope(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const bool disabled, Disabled(tower));
  ASSIGN_OR_RETURN(const std::optional<int64_t> num_layers, NumLayers(tower));
  if (disabled) {
    *response->add_encodings() = NoRotation(tower, num_layers.value_or(0));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::optional<bool> grown, ReadBool(tower.keys["use_dynamic_ntk"]));
  if (grown.value_or(false)) {
    return FieldError(tower.keys["use_dynamic_ntk"].field(),
                      "the growing base of Qwen 1 is not supported yet");
  }
  ASSIGN_OR_RETURN(const RopeKeys keys, FindRopeKeys(tower));
  ASSIGN_OR_RETURN(const std::vector<LayerGroup> groups, GroupLayers(tower, keys));
  ASSIGN_OR_RETURN(const int64_t max_position, MaxPositionEmbeddings(tower));
  if (groups.empty()) *response->add_encodings() = NoRotation(tower, num_layers.value_or(0));
  for (const LayerGroup& group : groups) {
    RETURN_IF_ERROR(AddGroup(tower, group, max_position, response));
  }
  return absl::OkStatus();
}

}  // namespace posenc
