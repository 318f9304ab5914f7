#include "lib/model_config/bias_rules.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"

namespace posenc {
namespace {

constexpr absl::string_view kHeadKeys = "num_attention_heads n_head n_heads num_heads";

}  // namespace

absl::Status ResolveBloom(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const int64_t num_heads, RequiredInt(tower, kHeadKeys));
  v1::ResolvedEncoding encoding = NewEncoding(tower, "alibi");
  v1::AlibiSpec& alibi = *encoding.mutable_spec()->mutable_alibi();
  alibi.set_num_heads(num_heads);
  alibi.set_alibi_bias_max(8);
  alibi.set_slope_rounding(v1::SLOPE_ROUNDING_BLOOM);
  alibi.set_form(v1::ALIBI_FORM_RELATIVE_CAUSAL);
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

absl::Status ResolveMpt(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::optional<bool> enabled,
                   ReadBool(FirstOf(tower.keys, "attn_config/alibi alibi")));
  if (!enabled.value_or(true)) {
    return FieldError(tower.keys.FieldOf("attn_config"),
                      "an MPT model without ALiBi (alibi false) is not supported yet");
  }
  ASSIGN_OR_RETURN(const int64_t num_heads, RequiredInt(tower, "n_heads num_attention_heads"));
  ASSIGN_OR_RETURN(const JsonValue bias_max,
                   OneOf(tower.keys, "attn_config/alibi_bias_max alibi_bias_max"));
  ASSIGN_OR_RETURN(const std::optional<double> alibi_bias_max, ReadPositiveNumber(bias_max));
  v1::ResolvedEncoding encoding = NewEncoding(tower, "alibi");
  v1::AlibiSpec& alibi = *encoding.mutable_spec()->mutable_alibi();
  alibi.set_num_heads(num_heads);
  alibi.set_alibi_bias_max(alibi_bias_max.value_or(8));
  alibi.set_slope_rounding(v1::SLOPE_ROUNDING_MPT);
  alibi.set_form(v1::ALIBI_FORM_RELATIVE_CAUSAL);
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

absl::Status ResolveT5(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> num_buckets,
                   ReadPositiveInt(tower.keys["relative_attention_num_buckets"]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> max_distance,
                   ReadPositiveInt(tower.keys["relative_attention_max_distance"]));
  for (const bool encoder : {true, false}) {
    v1::ResolvedEncoding encoding = NewEncoding(tower, "t5");
    encoding.set_tower(encoder ? "encoder" : "decoder");
    v1::T5BiasSpec& t5 = *encoding.mutable_spec()->mutable_t5();
    t5.set_num_buckets(num_buckets.value_or(32));
    t5.set_max_distance(max_distance.value_or(128));
    t5.set_bidirectional(encoder);
    *response->add_encodings() = std::move(encoding);
  }
  return absl::OkStatus();
}

}  // namespace posenc
