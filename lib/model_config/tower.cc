#include "lib/model_config/tower.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/status.h"
#include "lib/model_config/fields.h"

namespace posenc {

absl::StatusOr<std::optional<int64_t>> NumAttentionHeads(const Tower& tower) {
  ASSIGN_OR_RETURN(const JsonValue value,
                   OneOf(tower.keys, "num_attention_heads n_head n_heads num_heads"));
  return ReadPositiveInt(value);
}

absl::StatusOr<std::optional<int64_t>> HiddenSize(const Tower& tower) {
  ASSIGN_OR_RETURN(const JsonValue value, OneOf(tower.keys, "hidden_size n_embd n_embed d_model"));
  return ReadPositiveInt(value);
}

absl::StatusOr<std::optional<int64_t>> NumLayers(const Tower& tower) {
  return ReadPositiveInt(FirstOf(tower.keys, "num_hidden_layers n_layer n_layers num_layers"));
}

absl::StatusOr<int64_t> MaxPositionEmbeddings(const Tower& tower) {
  // The order matters: several families keep a training length beside the limit.
  ASSIGN_OR_RETURN(
      const std::optional<int64_t> length,
      ReadPositiveInt(
          FirstOf(tower.keys, "max_position_embeddings n_positions max_seq_len n_ctx seq_length")));
  return length.value_or(0);
}

absl::StatusOr<int64_t> RequiredInt(const Tower& tower, absl::string_view names) {
  ASSIGN_OR_RETURN(const JsonValue value, OneOf(tower.keys, names));
  ASSIGN_OR_RETURN(const std::optional<int64_t> number, ReadPositiveInt(value));
  if (number.has_value()) return *number;
  const std::vector<std::string> all = absl::StrSplit(names, ' ');
  return FieldError(tower.keys.FieldOf(all.front()), "is required");
}

v1::ResolvedEncoding NewEncoding(const Tower& tower, absl::string_view kind) {
  v1::ResolvedEncoding encoding;
  encoding.set_tower(tower.name);
  encoding.set_layer_type("all");
  encoding.set_kind(std::string(kind));
  encoding.set_softmax_scale_multiplier(1.0);
  return encoding;
}

}  // namespace posenc
