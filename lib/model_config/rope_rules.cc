#include "lib/model_config/rope_rules.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/rope_scaling.h"

namespace posenc {
namespace {

// Channels of a head: its own key, else hidden_size / num_attention_heads, whole.
absl::StatusOr<int64_t> HeadDim(const Tower& tower) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> explicit_dim, ReadInt(tower.keys["head_dim"]));
  if (explicit_dim.value_or(0) > 0) return *explicit_dim;
  ASSIGN_OR_RETURN(const std::optional<int64_t> hidden, HiddenSize(tower));
  if (!hidden.has_value()) return FieldError(tower.keys.FieldOf("hidden_size"), "is required");
  ASSIGN_OR_RETURN(const std::optional<int64_t> heads, NumAttentionHeads(tower));
  if (!heads.has_value()) {
    return FieldError(tower.keys.FieldOf("num_attention_heads"), "is required");
  }
  if (*heads > *hidden) {
    return FieldError(tower.keys.FieldOf("num_attention_heads"),
                      absl::StrCat("must be at most hidden_size (", *hidden, "), got ", *heads));
  }
  return *hidden / *heads;
}

// How many of them rotate: trunc(head_dim * partial_rotary_factor), a double
// product as in the frameworks (100 * 0.29 gives 28).
absl::StatusOr<int64_t> RotaryDim(const Tower& tower, const RopeKeys& keys, int64_t head_dim) {
  JsonValue value = keys.Find("partial_rotary_factor");
  if (!value.present()) {
    ASSIGN_OR_RETURN(value, OneOf(tower.keys, tower.family.partial_keys));
  }
  ASSIGN_OR_RETURN(const std::optional<double> given, ReadPositiveNumber(value));
  const double factor = given.value_or(tower.family.partial_rotary_factor);
  if (factor > 1) {
    return FieldError(value.field(), absl::StrCat("must be at most 1, got ", value.Text()));
  }
  const int64_t rotary_dim = static_cast<int64_t>(static_cast<double>(head_dim) * factor);
  if (rotary_dim < 2 || rotary_dim % 2 != 0) {
    return FieldError(value.present() ? value.field() : tower.keys.FieldOf("head_dim"),
                      absl::StrCat("gives ", rotary_dim, " rotary channels (", factor, " of ",
                                   head_dim, "), must be even and at least 2"));
  }
  return rotary_dim;
}

// Inside the map, else beside it, else the family's default.
absl::StatusOr<double> RopeTheta(const Tower& tower, const RopeKeys& keys) {
  const std::string default_theta = absl::StrCat(tower.family.rope_theta);
  ASSIGN_OR_RETURN(const JsonValue outer, OneOf(tower.keys, tower.family.theta_keys));
  const JsonValue inner = keys.Find("rope_theta");
  ASSIGN_OR_RETURN(const std::optional<double> outer_theta, ReadPositiveNumber(outer));
  ASSIGN_OR_RETURN(const std::optional<double> inner_theta, ReadPositiveNumber(inner));
  if (inner_theta.has_value()) {
    if (outer_theta.has_value() && *outer_theta != *inner_theta) {
      tower.findings.Add(
          Rule::kThetaMismatch, outer,
          {.message = absl::StrCat(outer.pointer(), " and ", inner.pointer(),
                                   " differ; readers of the new form use the latter, as here, "
                                   "readers of the old form the former."),
           .expected = inner.Text()});
    }
    return *inner_theta;
  }
  if (outer_theta.has_value()) return *outer_theta;
  const JsonValue null_theta = tower.keys["rope_theta"];
  if (null_theta.present()) {
    tower.findings.Add(Rule::kThetaNull, null_theta,
                       {.message = absl::StrCat("rope_theta is null; the default of the family, ",
                                                default_theta, ", is used."),
                        .expected = default_theta});
  } else {
    tower.findings.AddMissing(
        Rule::kThetaDefaulted, tower.keys, "rope_theta",
        {.message = absl::StrCat("The base is not given; the default of the family, ",
                                 default_theta, ", is used."),
         .fix = absl::StrCat("\"rope_theta\": ", default_theta)});
  }
  return tower.family.rope_theta;
}

// A factor where a reader of the map cannot see it.
void NoteMisplacedKeys(const Tower& tower, const RopeKeys& keys) {
  for (absl::string_view name : {"factor", "rope_condense_ratio"}) {
    const JsonValue value = tower.keys[name];
    if (!value.has_value() || keys.Find("factor").present()) continue;
    tower.findings.Add(Rule::kRopeKeyIgnored, value,
                       {.message = absl::StrCat(name,
                                                " stands outside rope_scaling, where no "
                                                "reader applies it; it is ignored here too."),
                        .expected = "inside rope_scaling, beside its rope_type"});
  }
}

}  // namespace

absl::Status ResolveRope(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const RopeKeys keys, FindRopeKeys(tower));
  for (const JsonValue& value : keys.map.children()) {
    if (!value.is_object()) continue;
    return FieldError(value.field(), absl::StrCat("a map per layer type is not supported yet for ",
                                                  "this model_type"));
  }
  ASSIGN_OR_RETURN(const std::string rope_type, RopeType(keys));
  ASSIGN_OR_RETURN(const int64_t head_dim, HeadDim(tower));
  ASSIGN_OR_RETURN(const int64_t rotary_dim, RotaryDim(tower, keys, head_dim));
  ASSIGN_OR_RETURN(const double theta, RopeTheta(tower, keys));
  ASSIGN_OR_RETURN(const int64_t max_position, MaxPositionEmbeddings(tower));
  NoteMisplacedKeys(tower, keys);

  v1::ResolvedEncoding encoding = NewEncoding(tower, "rope");
  encoding.set_rope_type(rope_type);
  encoding.set_max_position_embeddings(max_position);
  v1::RopeSpec& rope = *encoding.mutable_spec()->mutable_rope();
  rope.set_head_dim(head_dim);
  rope.set_rotary_dim(rotary_dim);
  rope.set_rope_theta(theta);
  rope.set_pairing(tower.family.pairing);
  rope.set_arithmetic(tower.model.arithmetic());
  RETURN_IF_ERROR(SetScaling({tower, keys, rope_type, max_position}, &rope));
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

}  // namespace posenc
