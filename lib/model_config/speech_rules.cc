// Sources: SeamlessM4Tv2Config, SpeechT5Config, Gemma3nAudioConfig, Gemma4AudioConfig and the
// classes they build; reference/other-encodings.md, sections 1 and 4.1.
#include "lib/model_config/speech_rules.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status.h"
#include "lib/model_config/choice_rules.h"
#include "lib/model_config/fields.h"
#include "lib/model_config/relative_rules.h"
#include "lib/model_config/table_rules.h"

namespace posenc {
namespace {

// The only distance that Gemma 4's code counts from, whatever its config says.
constexpr int64_t kGemma4Farthest = 12;

v1::ResolvedEncoding Sinusoid(const Tower& tower, absl::string_view name,
                              v1::SinusoidalPreset preset, int64_t d_model, int64_t rows) {
  v1::ResolvedEncoding encoding = NewEncoding(tower, "sinusoidal");
  encoding.set_tower(std::string(name));
  encoding.set_max_position_embeddings(rows);
  v1::SinusoidalSpec& spec = *encoding.mutable_spec()->mutable_sinusoidal();
  spec.set_preset(preset);
  spec.set_d_model(d_model);
  spec.set_arithmetic(tower.model.arithmetic());
  return encoding;
}

// Shaw's, of query - key: the mirror of what most have, and a row less on the right.
absl::Status AddClippedDistances(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> limit,
                   ReadPositiveInt(tower.keys["encoder_max_relative_position"]));
  const int64_t farthest = limit.value_or(160);
  v1::ResolvedEncoding encoding = NewEncoding(tower, "relative_key");
  encoding.set_tower("encoder");
  v1::ClippedScheme& clipped =
      *encoding.mutable_spec()->mutable_relative_index()->mutable_clipped();
  clipped.set_left(farthest);
  clipped.set_right(farthest - 1);
  clipped.set_direction(v1::DISTANCE_DIRECTION_QUERY_MINUS_KEY);
  v1::RelativeTable& table = *encoding.mutable_relative();
  table.set_entries(2 * farthest);
  table.set_bidirectional(true);
  table.add_terms("key");
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveSeamless(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  RETURN_IF_ERROR(ResolveSinusoidal(tower, response));
  const Tower speech{"speech", tower.keys, tower.family, tower.nested, tower.model, tower.findings};
  return ResolveConformer(speech, response);
}

absl::Status ResolveSpeechT5(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  RETURN_IF_ERROR(AddClippedDistances(tower, response));
  ASSIGN_OR_RETURN(const std::optional<int64_t> hidden, HiddenSize(tower));
  const int64_t d_model = hidden.value_or(tower.family.hidden_size);
  ASSIGN_OR_RETURN(const std::optional<int64_t> speech,
                   ReadPositiveInt(tower.keys["max_speech_positions"]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> text,
                   ReadPositiveInt(tower.keys["max_text_positions"]));
  ASSIGN_OR_RETURN(const std::optional<int64_t> padding, ReadInt(tower.keys["pad_token_id"]));
  const int64_t padding_row = padding.value_or(1);
  const auto fairseq = [&](absl::string_view name, int64_t rows) {
    v1::ResolvedEncoding encoding =
        Sinusoid(tower, name, v1::SINUSOIDAL_PRESET_FAIRSEQ, d_model, rows);
    encoding.mutable_spec()->mutable_sinusoidal()->set_padding_row(padding_row);
    encoding.mutable_spec()->mutable_sinusoidal()->set_position_offset(padding_row + 1);
    return encoding;
  };
  // Multiplied by a number that was learned, 1 at first.
  const auto scaled = [&](absl::string_view name, int64_t rows) {
    v1::ResolvedEncoding encoding =
        Sinusoid(tower, name, v1::SINUSOIDAL_PRESET_TUTORIAL, d_model, rows);
    encoding.set_variant("learned_scale");
    return encoding;
  };
  const int before = response->encodings_size();
  RETURN_IF_ERROR(ResolveConvolution(tower, response));
  response->mutable_encodings(before)->set_tower("speech_encoder_prenet");
  *response->add_encodings() = fairseq("speech_encoder_prenet", speech.value_or(4000));
  *response->add_encodings() = scaled("text_encoder_prenet", text.value_or(450));
  *response->add_encodings() = scaled("speech_decoder_prenet", speech.value_or(4000));
  *response->add_encodings() = fairseq("text_decoder_prenet", text.value_or(450));
  return absl::OkStatus();
}

absl::Status ResolveChunkDistances(const Tower& tower, v1::ResolveModelConfigResponse* response) {
  const JsonValue left = FirstOf(tower.keys, "conf_attention_context_left attention_context_left");
  const JsonValue right =
      FirstOf(tower.keys, "conf_attention_context_right attention_context_right");
  ASSIGN_OR_RETURN(const std::optional<int64_t> before, ReadInt(left));
  ASSIGN_OR_RETURN(const std::optional<int64_t> after, ReadInt(right));
  ASSIGN_OR_RETURN(const std::optional<int64_t> hidden, HiddenSize(tower));
  // The frame itself is one of those on the left.
  const int64_t farthest = std::max<int64_t>(before.value_or(13) - 1, 0);
  const int64_t ahead = after.value_or(0);
  if (tower.family.table.fixed_distances && (farthest != kGemma4Farthest || ahead != 0)) {
    return FieldError(
        farthest != kGemma4Farthest ? left.field() : right.field(),
        absl::StrCat("must be ", farthest != kGemma4Farthest ? kGemma4Farthest + 1 : 0,
                     ": this family's code has the distances from ", kGemma4Farthest,
                     " down to 0 whatever the config says"));
  }
  v1::ResolvedEncoding encoding = Sinusoid(tower, tower.name, v1::SINUSOIDAL_PRESET_TENSOR2TENSOR,
                                           hidden.value_or(tower.family.hidden_size), farthest + 1);
  v1::SinusoidalSpec& spec = *encoding.mutable_spec()->mutable_sinusoidal();
  spec.set_row_order(v1::ROW_ORDER_DESCENDING);
  encoding.set_variant("relative_distances");
  *response->add_encodings() = std::move(encoding);
  return absl::OkStatus();
}

}  // namespace posenc
