#include "lib/model_config/tower.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"

namespace posenc {
namespace {

// A size that only the class knows is said aloud: a reader of another stack may
// have another default.
std::optional<int64_t> ClassDefault(const Tower& tower, absl::string_view key, int64_t value) {
  if (!tower.nested || value == 0) return std::nullopt;
  tower.findings.AddMissing(Rule::kSizeDefaulted, tower.keys, key,
                            {.message = absl::StrCat(key,
                                                     " is not given; the default of the "
                                                     "model's class, ",
                                                     value, ", is used."),
                             .expected = absl::StrCat(value),
                             .fix = MemberText(key, absl::StrCat(value))});
  return value;
}

absl::StatusOr<int64_t> Required(const Tower& tower, std::optional<int64_t> value,
                                 absl::string_view key) {
  if (value.has_value()) return *value;
  return FieldError(tower.keys.FieldOf(key), "is required");
}

// The file's own name of the family, else its first.
absl::string_view FamilyName(const Tower& tower) {
  const std::vector<absl::string_view> names = absl::StrSplit(tower.family.model_types, ' ');
  const JsonValue written = tower.keys["model_type"];
  if (!written.is_string()) return names[0];
  const auto own = std::find(names.begin(), names.end(), written.string());
  return own == names.end() ? names[0] : *own;
}

}  // namespace

v1::Compat Tower::compat() const {
  return model.compat() == v1::COMPAT_UNSPECIFIED ? v1::COMPAT_LATEST : model.compat();
}

bool Tower::reads_as_v4() const {
  return compat() == v1::COMPAT_V4_57 && !family.since_v5 && !family.model_types.empty();
}

absl::StatusOr<std::optional<int64_t>> NumAttentionHeads(const Tower& tower) {
  ASSIGN_OR_RETURN(const JsonValue value,
                   OneOf(tower.keys,
                         "num_attention_heads n_head n_heads num_heads vt_num_attention_heads "
                         "encoder_attention_heads decoder_num_attention_heads"));
  ASSIGN_OR_RETURN(const std::optional<int64_t> heads, ReadPositiveInt(value));
  if (heads.has_value()) return heads;
  return ClassDefault(tower, "num_attention_heads", tower.family.num_attention_heads);
}

absl::StatusOr<std::optional<int64_t>> HiddenSize(const Tower& tower) {
  // Qwen2-VL's vision tower names the language model's width hidden_size.
  const JsonValue own = tower.keys["embed_dim"];
  ASSIGN_OR_RETURN(const JsonValue common,
                   OneOf(tower.keys, "hidden_size n_embd n_embed d_model dim vt_hidden_size"));
  ASSIGN_OR_RETURN(const std::optional<int64_t> hidden,
                   ReadPositiveInt(own.has_value() ? own : common));
  if (hidden.has_value()) return hidden;
  return ClassDefault(tower, "hidden_size", tower.family.hidden_size);
}

absl::StatusOr<std::optional<int64_t>> NumLayers(const Tower& tower) {
  const JsonValue value =
      FirstOf(tower.keys, "num_hidden_layers n_layer n_layers num_layers depth");
  ASSIGN_OR_RETURN(const std::optional<int64_t> layers, ReadPositiveInt(value));
  if (layers.value_or(0) > kMaxLayers) {
    return FieldError(value.field(),
                      absl::StrCat("must be at most ", kMaxLayers, ", got ", value.Text()));
  }
  if (layers.has_value()) return layers;
  return ClassDefault(tower, "num_hidden_layers", tower.family.num_hidden_layers);
}

absl::StatusOr<int64_t> MaxPositionEmbeddings(const Tower& tower) {
  // The order matters: several families keep a training length beside the limit.
  ASSIGN_OR_RETURN(const std::optional<int64_t> length,
                   ReadPositiveInt(FirstOf(tower.keys,
                                           "max_position_embeddings n_positions max_seq_len n_ctx "
                                           "seq_length model_max_length max_seq_length")));
  if (length.has_value()) return *length;
  const int64_t by_class = tower.family.max_position_embeddings;
  if (by_class == 0) return 0;
  tower.findings.AddMissing(
      Rule::kSizeDefaulted, tower.keys, "max_position_embeddings",
      {.message = absl::StrCat("max_position_embeddings is not given; the default of the model's "
                               "class, ",
                               by_class, ", is used."),
       .expected = absl::StrCat(by_class),
       .fix = MemberText("max_position_embeddings", absl::StrCat(by_class))});
  return by_class;
}

absl::StatusOr<int64_t> RequiredHeads(const Tower& tower) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> heads, NumAttentionHeads(tower));
  return Required(tower, heads, "num_attention_heads");
}

absl::StatusOr<int64_t> RequiredHiddenSize(const Tower& tower) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> hidden, HiddenSize(tower));
  return Required(tower, hidden, "hidden_size");
}

absl::StatusOr<int64_t> HiddenOverHeads(const Tower& tower, int64_t times) {
  ASSIGN_OR_RETURN(const int64_t hidden, RequiredHiddenSize(tower));
  ASSIGN_OR_RETURN(const int64_t heads, RequiredHeads(tower));
  if (heads > hidden) {
    return FieldError(tower.keys.FieldOf("num_attention_heads"),
                      absl::StrCat("must be at most hidden_size (", hidden, "), got ", heads));
  }
  return times * hidden / heads;
}

v1::ResolvedEncoding NewEncoding(const Tower& tower, absl::string_view kind) {
  v1::ResolvedEncoding encoding;
  encoding.set_tower(tower.name);
  encoding.set_model_type(std::string(FamilyName(tower)));
  encoding.set_layer_type("all");
  encoding.set_kind(std::string(kind));
  encoding.set_softmax_scale_multiplier(1.0);
  encoding.set_bias_scale(1.0);
  return encoding;
}

}  // namespace posenc
