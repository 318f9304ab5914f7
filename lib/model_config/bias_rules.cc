#include "lib/model_config/bias_rules.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/places.h"
#include "lib/model_config/rope_rules.h"
#include "lib/model_config/table_rules.h"

namespace posenc {
namespace {

// The only Baichuan models with ALiBi are 5120 wide.
constexpr int64_t kBaichuan13BHiddenSize = 5120;

v1::ResolvedEncoding Alibi(const Tower& tower, int64_t num_heads, v1::SlopeRounding rounding) {
  v1::ResolvedEncoding encoding = NewEncoding(tower, "alibi");
  v1::AlibiSpec& alibi = *encoding.mutable_spec()->mutable_alibi();
  alibi.set_num_heads(num_heads);
  alibi.set_alibi_bias_max(8);
  alibi.set_slope_rounding(rounding);
  alibi.set_form(v1::ALIBI_FORM_RELATIVE_CAUSAL);
  AddPlace("num_heads", tower.keys, "num_attention_heads n_head n_heads num_heads", &encoding);
  return encoding;
}

}  // namespace

absl::Status ResolveBloom(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const int64_t num_heads, RequiredHeads(tower));
  *response->add_encodings() = Alibi(tower, num_heads, v1::SLOPE_ROUNDING_BLOOM);
  return absl::OkStatus();
}

absl::Status ResolveMpt(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::optional<bool> enabled,
                   ReadBool(FirstOf(tower.keys, "attn_config/alibi alibi")));
  const JsonValue rope = tower.keys["attn_config"]["rope"];
  if (rope.truthy()) {
    return FieldError(rope.field(),
                      "must be false: transformers has no MPT with RoPE, and the rope_impl of "
                      "llm-foundry's own code is not read here");
  }
  if (!enabled.value_or(true)) return ResolveLearned(tower, response);
  ASSIGN_OR_RETURN(const int64_t num_heads, RequiredHeads(tower));
  ASSIGN_OR_RETURN(const JsonValue bias_max,
                   OneOf(tower.keys, "attn_config/alibi_bias_max alibi_bias_max"));
  ASSIGN_OR_RETURN(const std::optional<double> alibi_bias_max, ReadPositiveNumber(bias_max));
  v1::ResolvedEncoding encoding = Alibi(tower, num_heads, v1::SLOPE_ROUNDING_MPT);
  encoding.mutable_spec()->mutable_alibi()->set_alibi_bias_max(alibi_bias_max.value_or(8));
  if (bias_max.present()) {
    AddPlace("alibi_bias_max", tower.keys, "attn_config/alibi_bias_max alibi_bias_max", &encoding);
  }
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

absl::Status ResolveFalcon(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::optional<bool> alibi, ReadBool(tower.keys["alibi"]));
  if (!alibi.value_or(false)) return ResolveRope(tower, response);
  ASSIGN_OR_RETURN(const int64_t num_heads, RequiredHeads(tower));
  ASSIGN_OR_RETURN(const int64_t head_dim, HiddenOverHeads(tower));
  // Its code rounds slopes, key positions and products to bfloat16, which depends on
  // where positions are counted from; and it adds the bias before it divides the scores.
  v1::ResolvedEncoding encoding = Alibi(tower, num_heads, v1::SLOPE_ROUNDING_FALCON_BF16);
  encoding.mutable_spec()->mutable_alibi()->set_form(v1::ALIBI_FORM_KEY_POSITION);
  encoding.set_bias_scale(1.0 / std::sqrt(static_cast<double>(head_dim)));
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

absl::Status ResolveBaichuan(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const int64_t hidden_size, RequiredHiddenSize(tower));
  if (hidden_size < kBaichuan13BHiddenSize) return ResolveRope(tower, response);
  ASSIGN_OR_RETURN(const int64_t num_heads, RequiredHeads(tower));
  *response->add_encodings() = Alibi(tower, num_heads, v1::SLOPE_ROUNDING_PRESS);
  return absl::OkStatus();
}

absl::Status ResolveSymmetricAlibi(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const int64_t num_heads, RequiredHeads(tower));
  ASSIGN_OR_RETURN(const int64_t max_position, MaxPositionEmbeddings(tower));
  v1::ResolvedEncoding encoding = Alibi(tower, num_heads, v1::SLOPE_ROUNDING_PRESS);
  encoding.mutable_spec()->mutable_alibi()->set_form(v1::ALIBI_FORM_SYMMETRIC);
  encoding.set_max_position_embeddings(max_position);
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

v1::ResolvedEncoding T5Encoding(const Tower& tower, const T5Buckets& buckets, int64_t heads) {
  v1::ResolvedEncoding encoding = NewEncoding(tower, "t5");
  v1::T5BiasSpec& t5 = *encoding.mutable_spec()->mutable_t5();
  t5.set_num_buckets(buckets.num_buckets);
  t5.set_max_distance(buckets.max_distance);
  t5.set_bidirectional(buckets.bidirectional);
  v1::RelativeTable& table = *encoding.mutable_relative();
  if (heads > 0) table.add_heads(heads);
  table.set_entries(buckets.num_buckets);
  table.set_per_layer(buckets.per_layer);
  table.set_bidirectional(buckets.bidirectional);
  return encoding;
}

void AddBucketPlaces(const JsonValue& keys, absl::string_view buckets_key,
                     absl::string_view distance_key, v1::ResolvedEncoding* encoding) {
  AddPlace("num_buckets", keys, buckets_key, encoding);
  if (!distance_key.empty()) AddPlace("max_distance", keys, distance_key, encoding);
}

absl::Status ResolveT5(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  const JsonValue buckets = tower.keys["relative_attention_num_buckets"];
  const JsonValue distance = tower.keys["relative_attention_max_distance"];
  ASSIGN_OR_RETURN(const std::optional<int64_t> num_buckets, ReadPositiveInt(buckets));
  ASSIGN_OR_RETURN(const std::optional<int64_t> max_distance, ReadPositiveInt(distance));
  ASSIGN_OR_RETURN(const std::optional<int64_t> heads, NumAttentionHeads(tower));
  const int64_t used_buckets = num_buckets.value_or(32);
  const int64_t used_distance = max_distance.value_or(128);
  // The decoder has the most exact buckets: half of them.
  if (used_distance <= used_buckets / 2) {
    return FieldError(
        distance.present() ? distance.field() : buckets.field(),
        absl::StrCat("max_distance must be above the ", used_buckets / 2,
                     " distances that have a bucket of their own, got ", used_distance));
  }
  for (const bool encoder : {true, false}) {
    if (encoder && tower.family.table.decoder_only) continue;
    if (!encoder && tower.name == "encoder") continue;  // MusicGen has that of a T5 alone
    v1::ResolvedEncoding encoding =
        T5Encoding(tower, {used_buckets, used_distance, encoder, tower.family.table.per_layer},
                   heads.value_or(0));
    encoding.set_tower(encoder ? "encoder" : "decoder");
    AddBucketPlaces(tower.keys, "relative_attention_num_buckets", "relative_attention_max_distance",
                    &encoding);
    *response->add_encodings() = std::move(encoding);
  }
  return absl::OkStatus();
}

absl::Status ResolveLongT5(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  const JsonValue value = tower.keys["encoder_attention_type"];
  ASSIGN_OR_RETURN(const std::optional<std::string> type, ReadString(value));
  const std::string reach = type.value_or("local");
  if (reach != "local" && reach != "transient-global") {
    return FieldError(value.field(),
                      absl::StrCat("must be local or transient-global, got ", value.Describe()));
  }
  ASSIGN_OR_RETURN(const std::optional<int64_t> block,
                   ReadPositiveInt(tower.keys["global_block_size"]));
  const int encoder = response->encodings_size();
  RETURN_IF_ERROR(ResolveT5(tower, response));
  response->mutable_encodings(encoder)->set_variant(reach);
  if (reach == "local") return absl::OkStatus();
  v1::ResolvedEncoding global = response->encodings(encoder);
  global.set_layer_type("global");
  global.mutable_spec()->mutable_t5()->set_global_block_size(block.value_or(16));
  *response->add_encodings() = std::move(global);
  return absl::OkStatus();
}

}  // namespace posenc
