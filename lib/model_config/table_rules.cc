#include "lib/model_config/table_rules.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/status.h"
#include "lib/model_config/bias_rules.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/rope_rules.h"

namespace posenc {
namespace {

// Row of the first token, where it is not the family's constant.
absl::StatusOr<int64_t> FirstRow(const Tower& tower) {
  const TableTraits& traits = tower.family.table;
  if (!traits.after_padding) return traits.offset;
  ASSIGN_OR_RETURN(const std::optional<int64_t> padding, ReadInt(tower.keys["pad_token_id"]));
  return padding.value_or(traits.padding_idx) + 1;
}

// A file that gives a table of which no length is left, or whose table is as long
// as the tokens it is meant for.
absl::Status CheckRows(const Tower& tower, const JsonValue& value, int64_t rows, int64_t offset) {
  if (offset >= rows) {
    return FieldError(
        value.present() ? value.field() : tower.keys.FieldOf("max_position_embeddings"),
        absl::StrCat("must be above the ", offset, " rows before the first token, got ", rows));
  }
  // 512 tokens need 514 rows where the first stands in row 2.
  if (tower.family.table.after_padding && (rows & (rows - 1)) == 0) {
    const absl::string_view key = value.present() ? value.key() : "max_position_embeddings";
    FindingText text = {
        .message = absl::StrCat("The first token has row ", offset, ", so ", rows,
                                " rows hold sequences of ", rows - offset, " tokens only."),
        .expected = absl::StrCat(rows + offset),
        .fix = MemberText(key, absl::StrCat(rows + offset))};
    if (value.present()) {
      tower.findings.Add(Rule::kRowsWithoutOffset, value, std::move(text));
    } else {
      tower.findings.AddMissing(Rule::kRowsWithoutOffset, tower.keys, key, std::move(text));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::ResolvedEncoding> Learned(const Tower& tower) {
  const TableTraits& traits = tower.family.table;
  const JsonValue value = FirstOf(tower.keys, traits.rows_keys);
  ASSIGN_OR_RETURN(const std::optional<int64_t> given, ReadPositiveInt(value));
  ASSIGN_OR_RETURN(const int64_t length, MaxPositionEmbeddings(tower));
  const int64_t rows = given.value_or(length) + traits.extra_rows;
  if (given.value_or(length) == 0) {
    return FieldError(tower.keys.FieldOf("max_position_embeddings"), "is required");
  }
  ASSIGN_OR_RETURN(const int64_t offset, FirstRow(tower));
  RETURN_IF_ERROR(CheckRows(tower, value, rows, offset));
  ASSIGN_OR_RETURN(const std::optional<int64_t> dim, HiddenSize(tower));
  v1::ResolvedEncoding encoding = NewEncoding(tower, "learned");
  encoding.set_max_position_embeddings(rows - offset);
  v1::LearnedTable& table = *encoding.mutable_learned();
  table.set_rows(rows);
  table.set_dim(dim.value_or(tower.family.hidden_size));
  table.set_offset(offset);
  table.set_usable(rows - offset);
  return encoding;
}

// A BERT whose scores carry a learned embedding of the distance, beside or in
// place of its table.
absl::StatusOr<v1::ResolvedEncoding> RelativeKey(const Tower& tower, absl::string_view type) {
  ASSIGN_OR_RETURN(const int64_t max_position, MaxPositionEmbeddings(tower));
  if (max_position == 0) {
    return FieldError(tower.keys.FieldOf("max_position_embeddings"), "is required");
  }
  v1::ResolvedEncoding encoding = NewEncoding(tower, "relative_key");
  encoding.set_max_position_embeddings(max_position);
  v1::RelativeTable& table = *encoding.mutable_relative();
  table.set_entries(2 * max_position - 1);
  table.set_per_layer(true);
  table.set_bidirectional(true);
  table.add_terms("key");
  if (type == "relative_key_query") table.add_terms("query");
  encoding.mutable_spec()
      ->mutable_relative_index()
      ->mutable_unclipped()
      ->set_max_position_embeddings(max_position);
  return encoding;
}

absl::StatusOr<std::vector<int64_t>> CheckGrid(const Tower& tower, std::vector<int64_t> grid) {
  for (const int64_t side : grid) {
    if (side >= 1 && side <= kMaxGridSide) continue;
    return FieldError(
        tower.keys.FieldOf("image_size"),
        absl::StrCat("gives ", side, " patches a side, must be from 1 to ", kMaxGridSide));
  }
  return grid;
}

absl::StatusOr<std::string> PositionType(const Tower& tower) {
  ASSIGN_OR_RETURN(const std::optional<std::string> type,
                   ReadString(tower.keys["position_embedding_type"]));
  return type.value_or("absolute");
}

}  // namespace

absl::Status ResolveLearned(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const v1::ResolvedEncoding encoding, Learned(tower));
  for (absl::string_view name : absl::StrSplit(tower.family.tower, ' ')) {
    v1::ResolvedEncoding& added = *response->add_encodings();
    added = encoding;
    added.set_tower(std::string(name));
  }
  return absl::OkStatus();
}

absl::Status ResolveBert(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::string type, PositionType(tower));
  if (type == "alibi") return ResolveSymmetricAlibi(tower, response);
  if (type == "rotary" || type == "rope") return ResolveRope(tower, response);
  if (type == "relative_key" || type == "relative_key_query") {
    ASSIGN_OR_RETURN(*response->add_encodings(), RelativeKey(tower, type));
    return absl::OkStatus();
  }
  if (type == "absolute") return ResolveLearned(tower, response);
  return FieldError(tower.keys["position_embedding_type"].field(),
                    absl::StrCat("must be one of absolute, alibi, rotary, relative_key, "
                                 "relative_key_query, got string \"",
                                 type, "\""));
}

absl::Status ResolveEsm(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::string type, PositionType(tower));
  return type == "rotary" ? ResolveRope(tower, response) : ResolveBert(tower, response);
}

absl::StatusOr<std::vector<int64_t>> PatchGrid(const Tower& tower) {
  const TableTraits& traits = tower.family.table;
  ASSIGN_OR_RETURN(const std::optional<int64_t> patches,
                   ReadPositiveInt(tower.keys["num_patches"]));
  if (patches.has_value()) {
    // A square table that is resized for every image (NaFlex).
    int64_t side = 0;
    while ((side + 1) * (side + 1) <= *patches) ++side;
    if (side * side != *patches) {
      return FieldError(tower.keys.FieldOf("num_patches"),
                        absl::StrCat("must be a square, got ", *patches));
    }
    return CheckGrid(tower, {side, side});
  }
  ASSIGN_OR_RETURN(std::vector<int64_t> image, ReadSides(tower.keys["image_size"]));
  ASSIGN_OR_RETURN(std::vector<int64_t> patch, ReadSides(tower.keys["patch_size"]));
  if (image.empty()) image.assign(2, traits.image_size);
  if (patch.empty()) patch.assign(2, traits.patch_size);
  return CheckGrid(tower, {image[0] / patch[0], image[1] / patch[1]});
}

absl::Status ResolveLearnedGrid(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> grid, PatchGrid(tower));
  ASSIGN_OR_RETURN(const std::optional<int64_t> dim, HiddenSize(tower));
  v1::ResolvedEncoding encoding = NewEncoding(tower, "learned_2d");
  v1::LearnedTable& table = *encoding.mutable_learned();
  table.set_rows(grid[0] * grid[1] + tower.family.table.prefix_tokens);
  table.set_usable(table.rows());
  table.set_dim(dim.value_or(0));
  table.mutable_grid()->Assign(grid.begin(), grid.end());
  table.set_prefix_tokens(tower.family.table.prefix_tokens);
  encoding.set_variant(std::string(tower.family.table.variant));
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

absl::Status ResolveMpnet(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  RETURN_IF_ERROR(ResolveLearned(tower, response));
  ASSIGN_OR_RETURN(const std::optional<int64_t> buckets,
                   ReadPositiveInt(tower.keys["relative_attention_num_buckets"]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> heads, NumAttentionHeads(tower));
  // 128 stands in the code: the key of T5 is not read.
  v1::ResolvedEncoding encoding =
      T5Encoding(tower, {buckets.value_or(32), 128, true, false}, heads.value_or(0));
  AddBucketPlaces(tower.keys, "relative_attention_num_buckets", "", &encoding);
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

namespace {

// Width and rows of a sinusoid that fills a fixed table.
v1::ResolvedEncoding Sinusoid(const Tower& tower, int64_t d_model, int64_t rows) {
  v1::ResolvedEncoding encoding = NewEncoding(tower, "sinusoidal");
  encoding.set_max_position_embeddings(rows);
  v1::SinusoidalSpec& spec = *encoding.mutable_spec()->mutable_sinusoidal();
  spec.set_d_model(d_model);
  spec.set_layout(v1::SINUSOIDAL_LAYOUT_HALF_SIN_COS);
  spec.set_base(10000);
  spec.set_arithmetic(tower.model.arithmetic());
  return encoding;
}

// Rows of one side of a model whose encoder and decoder count theirs apart.
absl::StatusOr<int64_t> RowsOfSide(const Tower& tower, absl::string_view side, int64_t rows) {
  const int64_t source_rows = tower.family.table.source_rows;
  if (source_rows == 0) return rows;
  const bool encoder = side == "encoder";
  ASSIGN_OR_RETURN(
      const std::optional<int64_t> own,
      ReadPositiveInt(tower.keys[encoder ? "max_source_positions" : "max_target_positions"]));
  return own.value_or(encoder ? source_rows : rows);
}

absl::StatusOr<v1::ResolvedEncoding> WhisperSinusoid(const Tower& tower) {
  ASSIGN_OR_RETURN(const int64_t d_model, RequiredHiddenSize(tower));
  ASSIGN_OR_RETURN(const std::optional<int64_t> source,
                   ReadPositiveInt(tower.keys["max_source_positions"]));
  v1::ResolvedEncoding encoding = Sinusoid(tower, d_model, source.value_or(1500));
  encoding.mutable_spec()->mutable_sinusoidal()->set_frequency_rule(v1::FREQUENCY_RULE_T2T);
  return encoding;
}

}  // namespace

absl::Status ResolveSinusoidal(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const int64_t d_model, RequiredHiddenSize(tower));
  ASSIGN_OR_RETURN(const int64_t rows, MaxPositionEmbeddings(tower));
  v1::ResolvedEncoding encoding = Sinusoid(tower, d_model, rows);
  v1::SinusoidalSpec& spec = *encoding.mutable_spec()->mutable_sinusoidal();
  if (tower.family.table.fairseq) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> padding, ReadInt(tower.keys["pad_token_id"]));
    spec.set_frequency_rule(v1::FREQUENCY_RULE_T2T);
    const int64_t padding_row = padding.value_or(tower.family.table.padding_idx);
    spec.set_position_offset(padding_row + 1);
    spec.set_padding_row(padding_row);
  } else if (tower.family.table.cosine_first) {
    spec.set_frequency_rule(v1::FREQUENCY_RULE_T2T);
    spec.set_layout(v1::SINUSOIDAL_LAYOUT_HALF_COS_SIN);
  } else {
    spec.set_frequency_rule(v1::FREQUENCY_RULE_THETA);
  }
  for (absl::string_view name : absl::StrSplit(tower.family.tower, ' ')) {
    v1::ResolvedEncoding& added = *response->add_encodings();
    added = encoding;
    added.set_tower(std::string(name));
    ASSIGN_OR_RETURN(const int64_t own_rows, RowsOfSide(tower, name, rows));
    added.set_max_position_embeddings(own_rows);
  }
  return absl::OkStatus();
}

absl::Status ResolveWhisperEncoder(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(*response->add_encodings(), WhisperSinusoid(tower));
  return absl::OkStatus();
}

absl::Status ResolveWhisper(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const int64_t d_model, RequiredHiddenSize(tower));
  ASSIGN_OR_RETURN(const std::optional<int64_t> target,
                   ReadPositiveInt(tower.keys["max_target_positions"]));
  ASSIGN_OR_RETURN(v1::ResolvedEncoding encoder, WhisperSinusoid(tower));
  encoder.set_tower("encoder");
  *response->add_encodings() = std::move(encoder);
  v1::ResolvedEncoding decoder = NewEncoding(tower, "learned");
  decoder.set_tower("decoder");
  decoder.set_max_position_embeddings(target.value_or(448));
  decoder.mutable_learned()->set_rows(target.value_or(448));
  decoder.mutable_learned()->set_usable(target.value_or(448));
  decoder.mutable_learned()->set_dim(d_model);
  *response->add_encodings() = std::move(decoder);
  return absl::OkStatus();
}

}  // namespace posenc
