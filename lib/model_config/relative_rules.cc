#include "lib/model_config/relative_rules.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/status.h"
#include "lib/model_config/bias_rules.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/places.h"
#include "lib/model_config/table_rules.h"

namespace posenc {
namespace {

// "c2p|p2c", or a list of them.
absl::StatusOr<std::vector<std::string>> AttentionTerms(const JsonValue& value) {
  if (value.is_string()) return std::vector<std::string>(absl::StrSplit(value.string(), '|'));
  std::vector<std::string> terms;
  if (!value.has_value()) return terms;
  if (!value.is_array() || value.size() > 8) {
    return FieldError(value.field(), absl::StrCat("must be a string like c2p|p2c or a list of "
                                                  "terms, got ",
                                                  value.Describe()));
  }
  for (const JsonValue& element : value.children()) {
    ASSIGN_OR_RETURN(const std::optional<std::string> term, ReadString(element));
    terms.push_back(term.value_or(""));
  }
  return terms;
}

// -1 where there is none.
absl::StatusOr<int64_t> ReadLimit(const JsonValue& value) {
  if (value.is_number() && value.number() < 0) return -1;
  ASSIGN_OR_RETURN(const std::optional<int64_t> limit, ReadInt(value));
  return limit.value_or(-1);
}

// Heads of each stage: one number, or a list.
absl::StatusOr<std::vector<int64_t>> StageHeads(const Tower& tower) {
  const JsonValue value = FirstOf(tower.keys, "num_heads num_attention_heads");
  if (value.is_array()) {
    if (value.size() > kMaxStages) {
      return FieldError(value.field(), absl::StrCat("must have at most ", kMaxStages,
                                                    " entries, has ", value.size()));
    }
    return ReadInts(value);
  }
  ASSIGN_OR_RETURN(const int64_t heads, RequiredHeads(tower));
  return std::vector<int64_t>{heads};
}

// The index is the same in every layer and stage; the table is the checkpoint's.
void SetWindow(const std::vector<int64_t>& sides, bool class_token,
               v1::ResolvedEncoding* encoding) {
  v1::WindowSpec& window = *encoding->mutable_spec()->mutable_window();
  window.set_window_height(sides[0]);
  window.set_window_width(sides[1]);
  window.set_class_token(class_token);
  v1::RelativeTable* table = encoding->mutable_relative();
  table->mutable_window()->Assign(sides.begin(), sides.end());
  // To, from and between the class token: three more.
  table->set_entries((2 * sides[0] - 1) * (2 * sides[1] - 1) + (class_token ? 3 : 0));
  table->set_bidirectional(true);
}

}  // namespace

absl::Status ResolveDeberta(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::optional<bool> relative, ReadBool(tower.keys["relative_attention"]));
  ASSIGN_OR_RETURN(const std::optional<bool> absolute,
                   ReadBool(tower.keys["position_biased_input"]));
  if (absolute.value_or(true)) RETURN_IF_ERROR(ResolveLearned(tower, response));
  if (!relative.value_or(false)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> terms,
                   AttentionTerms(tower.keys["pos_att_type"]));
  ASSIGN_OR_RETURN(const int64_t given, ReadLimit(tower.keys["max_relative_positions"]));
  ASSIGN_OR_RETURN(const int64_t buckets, ReadLimit(tower.keys["position_buckets"]));
  ASSIGN_OR_RETURN(const int64_t max_position, MaxPositionEmbeddings(tower));
  ASSIGN_OR_RETURN(const std::optional<int64_t> heads, NumAttentionHeads(tower));
  const int64_t limit = given > 0 ? given : max_position;
  if (limit == 0) {
    return FieldError(tower.keys.FieldOf("max_position_embeddings"), "is required");
  }
  v1::ResolvedEncoding encoding = NewEncoding(tower, "deberta_relative");
  v1::RelativeTable& table = *encoding.mutable_relative();
  if (heads.has_value()) table.add_heads(*heads);
  table.set_max_relative_positions(limit);
  table.set_position_buckets(buckets > 0 ? buckets : 0);
  table.set_entries(2 * (buckets > 0 ? buckets : limit));
  table.set_bidirectional(true);
  for (const std::string& term : terms) table.add_terms(term);
  v1::RelativeIndexSpec& index = *encoding.mutable_spec()->mutable_relative_index();
  if (tower.keys["model_type"].is_string() && tower.keys["model_type"].string() == "deberta") {
    index.mutable_deberta_v1()->set_max_relative_positions(limit);
  } else {
    index.mutable_deberta()->set_position_buckets(buckets > 0 ? buckets : 0);
    index.mutable_deberta()->set_max_relative_positions(limit);
  }
  const absl::string_view family = index.has_deberta() ? "deberta" : "deberta_v1";
  AddPlace(absl::StrCat(family, ".position_buckets"), tower.keys, "position_buckets", &encoding);
  AddPlace(absl::StrCat(family, ".max_relative_positions"), tower.keys,
           given > 0 ? "max_relative_positions" : "max_position_embeddings", &encoding);
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

absl::Status ResolveXlnet(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const int64_t clamp, ReadLimit(tower.keys["clamp_len"]));
  ASSIGN_OR_RETURN(const int64_t heads, RequiredHeads(tower));
  ASSIGN_OR_RETURN(const std::optional<std::string> attention, ReadString(tower.keys["attn_type"]));
  v1::ResolvedEncoding encoding = NewEncoding(tower, "xlnet_relative");
  v1::RelativeTable& table = *encoding.mutable_relative();
  table.add_heads(heads);
  table.set_max_relative_positions(clamp);
  table.set_bidirectional(attention.value_or("bi") == "bi");
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

absl::Status ResolveBeit(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::optional<bool> absolute,
                   ReadBool(tower.keys["use_absolute_position_embeddings"]));
  ASSIGN_OR_RETURN(const std::optional<bool> shared,
                   ReadBool(tower.keys["use_shared_relative_position_bias"]));
  ASSIGN_OR_RETURN(const std::optional<bool> each,
                   ReadBool(tower.keys["use_relative_position_bias"]));
  if (absolute.value_or(false)) RETURN_IF_ERROR(ResolveLearnedGrid(tower, response));
  if (!shared.value_or(false) && !each.value_or(false)) {
    return absolute.value_or(false) ? absl::OkStatus() : ResolveNone(tower, response);
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> grid, PatchGrid(tower));
  ASSIGN_OR_RETURN(const int64_t heads, RequiredHeads(tower));
  v1::ResolvedEncoding encoding = NewEncoding(tower, "relative_bias_2d");
  SetWindow(grid, true, &encoding);
  v1::RelativeTable& table = *encoding.mutable_relative();
  table.set_per_layer(!shared.value_or(false));
  table.add_heads(heads);
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

absl::Status ResolveSwin(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(std::vector<int64_t> window, ReadSides(tower.keys["window_size"]));
  if (window.empty()) window.assign(2, 7);
  ASSIGN_OR_RETURN(const std::vector<int64_t> heads, StageHeads(tower));
  if (std::max(window[0], window[1]) > kMaxGridSide) {
    return FieldError(
        tower.keys["window_size"].field(),
        absl::StrCat("must be at most ", kMaxGridSide, ", got ", std::max(window[0], window[1])));
  }
  v1::ResolvedEncoding encoding = NewEncoding(tower, "relative_bias_2d");
  SetWindow(window, false, &encoding);
  v1::RelativeTable& table = *encoding.mutable_relative();
  table.set_per_layer(true);
  table.mutable_heads()->Assign(heads.begin(), heads.end());
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

absl::Status ResolveGroundingDino(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  const JsonValue backbone = tower.keys["backbone_config"];
  const ModelFamily* swin = FindVisionFamily("swin");
  if (backbone.is_object() && backbone["model_type"].is_string() &&
      backbone["model_type"].string() == "swin") {
    RETURN_IF_ERROR(
        ResolveSwin(Tower{"vision", backbone, *swin, true, tower.model, tower.findings}, response));
  }
  ASSIGN_OR_RETURN(const int64_t d_model, RequiredHiddenSize(tower));
  const JsonValue temperature = tower.keys["positional_embedding_temperature"];
  ASSIGN_OR_RETURN(const std::optional<double> given, ReadPositiveNumber(temperature));
  v1::ResolvedEncoding encoding = NewEncoding(tower, "sine_2d");
  encoding.set_tower("encoder");
  v1::DetrSineSpec& sine = *encoding.mutable_spec()->mutable_detr_sine();
  sine.set_preset(v1::DETR_PRESET_DAB_DETR);
  sine.set_num_position_features(d_model / 2);
  if (given.has_value()) sine.set_temperature_height(*given);
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

absl::Status ResolveConvolution(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> kernel,
                   ReadPositiveInt(tower.keys["num_conv_pos_embeddings"]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> groups,
                   ReadPositiveInt(tower.keys["num_conv_pos_embedding_groups"]));
  v1::ResolvedEncoding encoding = NewEncoding(tower, "conv_positional");
  encoding.mutable_relative()->set_kernel(kernel.value_or(128));
  encoding.mutable_relative()->set_groups(groups.value_or(16));
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

absl::Status ResolveWavlm(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  RETURN_IF_ERROR(ResolveConvolution(tower, response));
  ASSIGN_OR_RETURN(const std::optional<int64_t> buckets,
                   ReadPositiveInt(tower.keys["num_buckets"]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> distance,
                   ReadPositiveInt(tower.keys["max_bucket_distance"]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> heads, NumAttentionHeads(tower));
  v1::ResolvedEncoding encoding = T5Encoding(
      tower, {buckets.value_or(320), distance.value_or(800), true, false}, heads.value_or(0));
  encoding.mutable_spec()->mutable_t5()->set_bucket_order(v1::BUCKET_ORDER_WAVLM);
  AddBucketPlaces(tower.keys, "num_buckets", "max_bucket_distance", &encoding);
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

absl::Status ResolveNone(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  for (absl::string_view key : {"rope_theta", "rope_scaling", "rope_parameters"}) {
    const JsonValue value = tower.keys[key];
    if (!value.has_value()) continue;
    tower.findings.Add(
        Rule::kRopeKeyIgnored, value,
        {.message = absl::StrCat("This family has no positions at all; ", key, " is not used.")});
  }
  *response->add_encodings() = NewEncoding(tower, "none");
  return absl::OkStatus();
}

}  // namespace posenc
